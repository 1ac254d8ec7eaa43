"""What maintainers run through `make`: programs that write files of this repository."""

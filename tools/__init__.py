"""Programs that maintainers run through `make` to write files of this repository."""

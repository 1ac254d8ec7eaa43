"""JSON schemas of the documents that commands print: written by `make schema`, tested against real answers."""

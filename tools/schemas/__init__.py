"""JSON schemas of the documents that commands print: written by `make schema`, held against real answers by a test."""

"""The version, defined once for the package, `--version` and every document."""

__version__ = "0.1.0"

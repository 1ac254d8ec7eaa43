"""The version, in the one place that the package, `--version` and every document read."""

__version__ = "0.1.0"

"""The formats of a report, one module each; a module is imported only when its format is requested."""

from __future__ import annotations

FORMATS = ("html", "markdown", "terminal", "csv", "json", "pdf")
"""Names for `--format`; each is a module of this folder with `render`."""

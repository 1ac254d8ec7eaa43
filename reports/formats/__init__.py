"""The forms of a report: one file each, listed here; a module is imported only when its form is asked for."""

from __future__ import annotations

FORMATS = ("html", "markdown", "terminal", "csv", "json", "pdf")
"""Names for `--format`; each is a module of this folder with `render`."""

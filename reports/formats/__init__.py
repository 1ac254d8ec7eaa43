"""The formats of a report, one module each; a module is imported only when its format is requested."""

from __future__ import annotations

FORMATS = ("html", "markdown", "terminal", "csv", "json", "pdf")
"""Names for `--format`; each is a module of this folder with `render`."""

ENDINGS = {
    ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".txt": "terminal", ".csv": "csv",
    ".json": "json", ".pdf": "pdf",
}  # fmt: skip
"""Formats by the ending of a file's name."""


def format_by_name(name: str | None) -> str:
    """The format that a file's name ends in; HTML where it ends in none, or there is no name."""
    return next((form for ending, form in ENDINGS.items() if (name or "").lower().endswith(ending)), "html")

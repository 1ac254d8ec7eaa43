"""The formats of a report, one module each; a module is imported only when its format is requested."""

from __future__ import annotations

from pathlib import PurePath

from planner.errors import UsageError

FORMATS = ("html", "markdown", "terminal", "csv", "json", "pdf")
"""Names for `--format`; each is a module of this folder with `render`."""

ENDINGS = {
    ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".txt": "terminal", ".csv": "csv",
    ".json": "json", ".pdf": "pdf",
}  # fmt: skip
"""Formats by the ending of a file's name."""


def format_by_name(name: str | None, flag: str = "--output", *, instead: str = "") -> str:
    """The format that a file's name ends in; HTML where it has no ending, or there is no name.

    Args:
        name: the path, or `-`.
        flag: the flag that named it, for the message.
        instead: what else the user can do, for the hint.

    Raises:
        UsageError: it has an ending that stands for no format: its content would be another than it says.
    """
    ending = PurePath(name or "").suffix.lower()
    if ending and ending not in ENDINGS:
        raise UsageError(
            f"{flag}: no report is written as `{ending}`", hint=f"let the name end in {', '.join(ENDINGS)}{instead}"
        )
    return ENDINGS.get(ending, "html")

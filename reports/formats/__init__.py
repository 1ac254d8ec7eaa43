"""The formats of a report, one module each; a module is imported only when its format is requested."""

from __future__ import annotations

from pathlib import PurePath

from planner.errors import UsageError

FORMATS = ("html", "markdown", "terminal", "csv", "json", "pdf")
"""Values of `--format`; each is a module of this folder with a function `render`."""

ENDINGS = {
    ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".txt": "terminal", ".csv": "csv",
    ".json": "json", ".pdf": "pdf",
}  # fmt: skip
"""Format for each suffix of a file name."""


def format_by_name(name: str | None, flag: str = "--output", *, instead: str = "") -> str:
    """Return the format for the suffix of a file name; HTML if there is no suffix or no name.

    Args:
        name: the path, or `-`.
        flag: the flag that gave the name, for the message.
        instead: an alternative for the user, for the hint.

    Raises:
        UsageError: the suffix has no format, so the content would not match the name.
    """
    ending = PurePath(name or "").suffix.lower()
    if ending and ending not in ENDINGS:
        raise UsageError(
            f"{flag}: a report cannot be written as `{ending}`", hint=f"end the name in {', '.join(ENDINGS)}{instead}"
        )
    return ENDINGS.get(ending, "html")

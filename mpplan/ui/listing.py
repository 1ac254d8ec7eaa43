"""Lists on stdout: aligned columns for people, one line per row for `grep` and `cut`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from textwrap import wrap

from mpplan.ui.sink import folded

LEAST_COLUMNS = 40
"""Width of lines in a terminal that is narrower than what is readable."""


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their headers; columns of numbers are right-aligned, lines are cut at the width of a terminal.

    Output to a pipe or a file is never cut.
    """
    cells = [list(headers), *[[folded(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    right = [all(_is_figure(row[i]) for row in rows) for i in range(len(headers))]
    lines = []
    for row in cells:
        padded = [cell.rjust(widths[i]) if right[i] else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append(_fit("  ".join(padded).rstrip()))
    return "\n".join(lines) + "\n"


def details(pairs: Sequence[tuple[str, str]]) -> str:
    """One entry as `name  value` lines, long values wrapped under themselves."""
    width = max(len(name) for name, _ in pairs)
    return (
        "\n".join(wrapped(f"{name.ljust(width)}  {folded(value)}".rstrip(), width + 2) for name, value in pairs) + "\n"
    )


def wrapped(text: str, indent: int = 0) -> str:
    """A text in lines that fit the terminal (or `COLUMNS`), those after the first indented; words are never split."""
    width = max(shutil.get_terminal_size().columns, LEAST_COLUMNS)
    return "\n".join(wrap(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False))


def figure(value: float | None, scale: float = 1.0, digits: int = 4) -> str:
    """A number in a unit, rounded to significant digits; `-` where it is not known."""
    if value is None:
        return "-"
    rounded = float(f"{value / scale:.{digits}g}")
    return f"{rounded:.0f}" if rounded == int(rounded) else f"{rounded:g}"


def _is_figure(cell: str) -> bool:
    return cell == "-" or cell.replace(".", "", 1).replace(",", "").isdigit()


def _fit(line: str) -> str:
    if not sys.stdout.isatty():
        return line
    width = shutil.get_terminal_size((120, 24)).columns
    return line if len(line) <= width else line[: width - 1] + "…"

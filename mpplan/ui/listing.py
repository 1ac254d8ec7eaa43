"""Lists on stdout: aligned columns for people, and one line per row for `grep` and `cut`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from textwrap import wrap

from mpplan.ui.console import LEAST_COLUMNS
from mpplan.ui.sink import folded

UNKNOWN = "–"
"""Content of a cell for a value that is unknown."""
_RAISED = str.maketrans("0123456789-.", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻·")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under their headers; columns of numbers are right-aligned.

    Lines are cut at the width of a terminal; output to a pipe or a file is never cut.
    """
    cells = [list(headers), *[[folded(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    right = [all(_is_figure(row[i]) for row in rows) for i in range(len(headers))]
    lines = []
    for row in cells:
        padded = [cell.rjust(widths[i]) if right[i] else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append(_fit("  ".join(padded).rstrip()))
    return "\n".join(lines) + "\n"


def folding(headers: Sequence[str], rows: Sequence[Sequence[str]], keys: int = 1) -> str:
    """Return rows under their headers, without cutting any text if a width is known.

    Headers and long first columns wrap, and columns that do not fit continue in a further block.

    Args:
        headers: column headers, most important first.
        rows: cells of the rows.
        keys: number of leading columns that identify a row; each block begins with them.
    """
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return table(headers, rows)
    cells = [[folded(cell) for cell in row] for row in rows]
    right = [all(_is_figure(row[i]) for row in cells) for i in range(len(headers))]
    least = [
        max((*map(len, head.split()), *(len(row[i]) for row in cells)), default=1) for i, head in enumerate(headers)
    ]
    heads = [wrap(head, least[i]) for i, head in enumerate(headers)]
    widths = [max(len(text) for text in (*heads[i], *(row[i] for row in cells))) for i in range(len(headers))]
    width = max(shutil.get_terminal_size((120, 24)).columns, LEAST_COLUMNS)
    widths[:keys] = _key_widths(widths, [[headers[i], *(row[i] for row in cells)] for i in range(keys)], width)
    blocks = []
    for part in _parts(widths, width, keys):
        shown = _lines_of([heads[i] for i in part], last=True)
        for row in cells:
            shown += _lines_of([_wrapped(row[i], widths[i]) if i < keys else [row[i]] for i in part])
        lines = (
            "  ".join(
                text.rjust(widths[i]) if right[i] else text.ljust(widths[i]) for i, text in zip(part, row, strict=True)
            )
            for row in shown
        )
        blocks.append("\n".join(_fit(line.rstrip()) for line in lines) + "\n")
    return "\n".join(blocks)


def _key_widths(widths: Sequence[int], keys: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return widths of the first columns, wrapped between words so that the other columns need few blocks."""
    own, others = widths[: len(keys)], [other + 2 for other in widths[len(keys) :]]
    words = [max(len(word) for cell in cells for word in cell.split() or [""]) for cells in keys]
    room = 0
    for blocks in range(1, len(others) + 1):
        beside = sum(others) if blocks == 1 else -(-sum(others) // blocks) + max(others)
        room = width - 2 * (len(keys) - 1) - max(beside, max(others))
        if room >= sum(words):
            break
    if sum(own) <= room:
        return list(own)
    more = [w - longest for w, longest in zip(own, words, strict=True)]
    left = max(room - sum(words), 0)
    return [longest + left * want // (sum(more) or 1) for longest, want in zip(words, more, strict=True)]


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def _lines_of(cells: Sequence[Sequence[str]], *, last: bool = False) -> list[list[str]]:
    """Return the lines of a row whose cells have several lines; `last` aligns short cells at the bottom."""
    tall = max(len(lines) for lines in cells)
    filled = [
        [""] * (tall - len(lines)) + list(lines) if last else [*lines, *[""] * (tall - len(lines))] for lines in cells
    ]
    return [list(row) for row in zip(*filled, strict=True)]


def _parts(widths: Sequence[int], width: int, keys: int) -> list[list[int]]:
    """Return the columns of each block, by number."""
    parts: list[list[int]] = [list(range(keys))]
    for i in range(keys, len(widths)):
        if sum(widths[k] + 2 for k in parts[-1]) + widths[i] > width and len(parts[-1]) > keys:
            parts.append(list(range(keys)))
        parts[-1].append(i)
    return parts


def power_of_two(exponent: float) -> str:
    """Format a power of two as `2¹⁶`."""
    return f"2{f'{exponent:g}'.translate(_RAISED)}"


def counted(count: int, what: str) -> str:
    """Format a count with its noun: `1 step`, `20 steps`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def details(pairs: Sequence[tuple[str, str]]) -> str:
    """Format one entry as `name  value` lines; long values are wrapped under themselves."""
    width = max(len(name) for name, _ in pairs)
    return (
        "\n".join(wrapped(f"{name.ljust(width)}  {folded(value)}".rstrip(), width + 2) for name, value in pairs) + "\n"
    )


def wrapped(text: str, indent: int = 0) -> str:
    """Wrap text to the terminal (or `COLUMNS`), with later lines indented; words are never split."""
    width = max(shutil.get_terminal_size().columns, LEAST_COLUMNS)
    return "\n".join(wrap(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False))


def figure(value: float | None, scale: float = 1.0, digits: int = 4) -> str:
    """Format a number in a unit, rounded to significant digits; `-` if it is unknown."""
    if value is None:
        return "-"
    rounded = float(f"{value / scale:.{digits}g}")
    return f"{rounded:.0f}" if rounded == int(rounded) else f"{rounded:g}"


def _is_figure(cell: str) -> bool:
    return cell in ("-", UNKNOWN) or cell.replace(".", "", 1).replace(",", "").isdigit()


def _fit(line: str) -> str:
    if not sys.stdout.isatty():
        return line
    width = shutil.get_terminal_size((120, 24)).columns
    return line if len(line) <= width else line[: width - 1] + "…"

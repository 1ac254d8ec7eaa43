"""Repair the user's price book: good rows stay, bad lines move to a separate file, and none is discarded."""

from __future__ import annotations

from contextlib import nullcontext
from io import StringIO
from pathlib import Path

from planner.errors import InputFileError
from planner.lazy import dataclass
from pricing.book.reading import book_lines, parse_book, shipped_by_id, user_book_path
from pricing.book.rows import COLUMNS, MOST_NAMED, BadRow, PriceRow, SetAside
from pricing.book.user_book import book_lock, book_text, read_book_text, write_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What a repair of the book does, or would do."""

    book: Path
    aside: Path
    """File for the bad lines; it grows with every repair."""
    kept: int
    """Number of good rows."""
    bad: SetAside
    """Bad lines; all lines where the header itself is bad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    header: str
    good: list[str]
    bad: list[BadRow]


def aside_path() -> Path:
    """Return the file next to the user's book that takes its bad lines."""
    return user_book_path().with_suffix(".set-aside.csv")


def repair_book(*, write: bool) -> Repair:
    """Separate the good rows of the user's book from the bad lines and, if `write`, move the bad lines to their file.

    The bad lines are written first, so that at worst a line is in both files.

    Raises:
        UsageError: a file cannot be read or written; no line is lost.
        InputFileError: the book, or the file for the bad lines, is not a regular file.
    """
    path, aside = user_book_path(), aside_path()
    with book_lock() if write else nullcontext():
        text = read_book_text(path) if path.exists() else ""
        parts = _parts(text, str(path))
        if write and parts.bad:
            _write_aside(aside, parts)
            write_whole(path, _mended(parts, str(path)))
    bad = SetAside(file=str(path), rows=tuple(parts.bad[:MOST_NAMED]), count=len(parts.bad))
    return Repair(book=path, aside=aside, kept=len(parts.good), bad=bad)


def _parts(text: str, name: str) -> _Parts:
    header, good, bad = book_text(()), [], []
    if not text:
        return _Parts(header=header, good=[], bad=[])
    try:
        for line, row in book_lines(StringIO(text, newline=""), name, taken=shipped_by_id()):
            if isinstance(row, PriceRow):
                good.append(_ended(line))
            else:
                bad.append(row)
    except InputFileError as error:  # a bad header: no line can be interpreted
        lines = enumerate(StringIO(text, newline=""), 1)
        return _Parts(header=header, good=[], bad=[BadRow(line=at, text=line, error=error) for at, line in lines])
    return _Parts(header=_ended(next(iter(StringIO(text, newline="")))), good=good, bad=bad)


def _ended(line: str) -> str:
    return line if line.endswith(("\n", "\r")) else f"{line}\n"


def _write_aside(aside: Path, parts: _Parts) -> None:
    before = read_book_text(aside) if aside.exists() else parts.header
    write_whole(aside, _ended(before) + "".join(_ended(row.text) for row in parts.bad))


def _mended(parts: _Parts, name: str) -> str:
    """Return the text of the book without its bad lines.

    Raises:
        InputFileError: it would not read back as the good rows, and nothing is written.
    """
    text = parts.header + "".join(parts.good)
    book = parse_book(StringIO(text, newline=""), name, taken=shipped_by_id())
    if len(book.rows) != len(parts.good) or book.set_aside.count:
        hint = f"move the rows that you need to a new file with the columns {', '.join(COLUMNS)}"
        raise InputFileError(f"{name}: its rows depend on the bad lines; it is unchanged", hint=hint)
    return text

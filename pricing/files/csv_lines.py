"""Read a user's CSV line by line: a bad line is kept apart from the good ones with its text, so none is lost."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from planner.errors import InputFileError
from planner.lazy import dataclass
from planner.rows import Row, miscounted, not_csv, read_header


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One record of a file, which spans several lines where a cell holds a line end."""

    number: int
    """Line number of its end; the header is line 1."""
    text: str
    """Its text in the file, with the line end."""
    content: Row | InputFileError
    """Its cells, or the error in it."""


class _Remembering:
    """Yields lines one by one and keeps those that a reader has taken since the last call of `taken`."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._taken: list[str] = []

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._taken.append(line)
            yield line

    def taken(self) -> list[str]:
        taken, self._taken = self._taken, []
        return taken


def csv_lines(
    lines: Iterable[str], name: str, columns: Iterable[str], *, only: tuple[str, str] | None = None
) -> Iterator[Line]:
    """Yield the records of a CSV file, good and bad; blank lines are skipped.

    Quotes are read strictly, so an unclosed quote at the end is an error. A bad record of several lines is taken for an
    unclosed quote: its lines are then read one by one, to recover the good rows that it swallowed.

    Args:
        lines: the file's lines with their ends; a byte that is not UTF-8 appears as a lone surrogate
            (`surrogateescape`).
        name: the file's name, for errors.
        columns: required columns.
        only: a column and its text; good records with another text are skipped.

    Raises:
        InputFileError: the header lacks a column.
    """
    source = _Remembering(lines)
    reader = csv.reader(source, strict=True)
    header = read_header(reader, name, columns)
    source.taken()
    for record in _records(reader, source):
        number, taken, cells = record
        parts = [record]
        if len(taken) > 1 and (isinstance(cells, csv.Error) or len(cells) != len(header)):
            first = number - len(taken) + 1
            parts = [(first + index, [line], _cells(line)) for index, line in enumerate(taken)]
        for last, texts, own_cells in parts:
            if isinstance(own_cells, csv.Error) or any(own_cells):
                line = _line(last, "".join(texts), own_cells, header, name)
                if only is None or not isinstance(line.content, Row) or line.content.cells[only[0]] == only[1]:
                    yield line


_Cells = list[str] | csv.Error
_Record = tuple[int, list[str], _Cells]
"""Number of the record's last line, its lines, and its cells or the error in them."""


def _records(reader: Iterator[list[str]], source: _Remembering) -> Iterator[_Record]:
    number = 1
    while True:
        cells: _Cells
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells = error
        taken = source.taken()
        number += len(taken)
        yield number, taken, cells


def _cells(line: str) -> _Cells:
    try:
        return next(csv.reader((line,), strict=True), [])
    except csv.Error as error:
        return error


def _line(number: int, text: str, cells: _Cells, header: list[str], name: str) -> Line:
    content: Row | InputFileError
    if isinstance(cells, csv.Error):
        content = not_csv(name, number, cells)
    elif len(cells) != len(header):
        content = miscounted(name, number, len(header), len(cells))
    elif any("\udc80" <= letter <= "\udcff" for cell in cells if not cell.isprintable() for letter in cell):
        content = InputFileError(f"{name}:{number}: expected text in UTF-8", hint="save the file as UTF-8")
    else:
        content = Row(file=name, line=number, cells=dict(zip(header, map(str.strip, cells), strict=True)))
    return Line(number=number, text=text, content=content)

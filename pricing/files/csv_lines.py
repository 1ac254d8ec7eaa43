"""Reads a CSV of the user line by line: a bad line is told from the others and keeps its text, so that none is lost."""

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
    """Line on which it ends, the header being line 1."""
    text: str
    """As it stands in the file, with its line end."""
    content: Row | InputFileError
    """Its cells, or what is wrong with it."""


class _Remembering:
    """Hands out lines one by one and keeps those that a reader took since it was last asked."""

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
    """The records of a CSV file, good and bad ones; blank lines are skipped.

    Quotes are read strictly, so that none is left open at the end. A bad record of several lines is an open quote: its
    lines are then read one by one, so that the good rows which it swallowed are found again.

    Args:
        lines: the file's lines with their ends; a byte that is no UTF-8 stands as a lone surrogate (`surrogateescape`).
        name: the file's name, for errors.
        columns: columns that must be there.
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
"""Number of its last line, its lines, and its cells."""


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

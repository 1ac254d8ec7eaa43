"""Rows of a table of steps, read column by column in blocks, since a table may have millions of rows.

A block is read only if its rows are plain: each on one line, with a number and, where the table has them, a time, and
with numbers written as most tools write them. Any other block is left to `planner.runlog.formats.table`, which reads
row by row and names what is damaged; both give the same steps. The cells are those of CSV here, and those of JSON Lines
in `planner.runlog.json_columns`.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from planner.csv_table import separator_of
from planner.lazy import dataclass
from planner.runlog.amounts import DECIMAL, LARGEST_AMOUNT, LONGEST_NUMBER, SMALLEST_AMOUNT
from planner.runlog.formats.base import MFU_KEYS, MFU_PERCENT_KEYS, PERCENT_FROM, TFLOPS_KEYS, TPS_KEYS, optional
from planner.runlog.formats.table import BATCH, DATA, DURATIONS, MEMORY, NUMBERS, TIMES, grouped_by_points, names_of
from planner.runlog.lines import LONGEST_LINE, RANK
from planner.runlog.moments import EPOCH_S
from planner.units import MILLI

Floats = npt.NDArray[np.float64]

NAN = float("nan")
SPECIAL = ("\x1b", "\r")
"""Text that makes the rows of a block other than plain: colours, and lines that were written over."""
_DIGITS = frozenset("0123456789.eE+-\n")
_STAMP = frozenset("0123456789-:T .\n")
_ZONES = ("Z", "+00:00")
_DATE = len("2026-03-01T00:00:00")
_LONGEST_STAMP = len("2026-03-01T00:00:00.000000")


class OtherwiseError(Exception):
    """A cell of a block has another form."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Steps of consecutive rows."""

    rows: npt.NDArray[np.int64]
    """Index of the row of each step among the rows of the block, `[row]`; rows without duration and time have none."""
    number: npt.NDArray[np.int64] | None
    """Number of each step, `[row]`; None in a table without one."""
    figures: dict[str, Floats]
    """Fields of `Step`, with `end` as `end_s` in seconds since 1970, `[row]`; NaN where a row has none."""
    zoned: bool
    """Whether the times have a time zone."""
    memory_gib: float | None
    """Largest peak memory."""


class Cells(Protocol):
    """Cells of consecutive rows of a table. Every method raises `OtherwiseError` if a cell has another form."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def numbers(self, name: str, *, blank: bool) -> Floats:
        """Return the numbers of a column as `as_number` reads them, `[row]`; NaN for a blank cell, if there may be."""

    def rates(self, name: str, number: Callable[[str], float | None]) -> Floats:
        """Return what `number` reads of each cell of a column, `[row]`; NaN for None."""

    def counts(self, name: str) -> Floats:
        """Return the numbers of a column that counts, without separators between their thousands, `[row]`."""

    def times(self, name: str) -> tuple[Floats, bool]:
        """Return seconds since 1970, `[row]`, and whether the times have a time zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of the columns of a block."""

    names: tuple[str, ...]

    def first(self, names: Sequence[str]) -> str | None:
        """Return the first of these columns that the table has."""
        return next((name for name in names if name in self.names), None)

    def only(self, names: Sequence[str]) -> bool:
        """Return whether the table has one of these columns, so that no other fills its blank cells."""
        return len({*names} & {*self.names}) == 1

    def rate(self, names: Sequence[str]) -> str | None:
        """Return the first of these columns, named in lower case, that the table has in any case."""
        by_small = {name.lower(): name for name in self.names}
        return next((by_small[name] for name in names if name in by_small), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where a CSV table has the columns that count, and how its cells are separated."""

    names: tuple[str, ...]
    separator: str

    @classmethod
    def of(cls, header: str) -> Columns | None:
        """Return the columns of a plain header; None if it has another form, or a column twice."""
        separator = separator_of(header)
        parsed = _parsed([header], separator)
        names = tuple(name.strip() for name in parsed[0]) if parsed else ()
        small = {name.lower() for name in names}
        special = any(mark in header for mark in (*SPECIAL, "{")) or RANK.match(header)
        if special or len(small) != len(names) or names_of(header) != {*names}:
            return None
        return cls(names=names, separator=separator)

    def read(self, rows: Sequence[str]) -> Block | None:
        """Read rows, the first of which is not the header; None if one of them is not plain."""
        text = "\n".join(rows)
        if '"' in text or (self.separator != "\t" and f"{self.separator} " in text):
            split = _parsed(rows, self.separator)
        else:
            split = [row.split(self.separator) for row in rows]
        if split is None or set(map(len, split)) != {len(self.names)} or not all(rows):
            return None
        if ("[" in text or ": " in text) and any(map(RANK.match, rows)):
            return None
        if self.separator == ";" and "," in text and "." in text:  # points may separate thousands
            return None
        if any(mark in text for mark in SPECIAL) or max(map(len, rows)) > LONGEST_LINE:
            return None

        names = Names(names=self.names)
        try:
            return block_of(names, names.first(NUMBERS), _TextCells(self, split))
        except OtherwiseError:
            return None


class _TextCells:
    """Cells of CSV."""

    def __init__(self, columns: Columns, rows: Sequence[Sequence[str]]) -> None:
        self._columns, self._rows = columns, rows
        self._comma = columns.separator == ";"

    def __len__(self) -> int:
        return len(self._rows)

    def numbers(self, name: str, *, blank: bool) -> Floats:
        return _numbers(self._of(name), comma=self._comma, blank=blank)

    def rates(self, name: str, number: Callable[[str], float | None]) -> Floats:
        try:
            return self.numbers(name, blank=True)
        except OtherwiseError:
            if self._comma:
                raise
        return np.array([NAN if (value := number(cell.strip())) is None else value for cell in self._of(name)])

    def counts(self, name: str) -> Floats:
        if self._columns.separator != "," and any(map(grouped_by_points, self._of(name))):
            raise OtherwiseError
        return self.numbers(name, blank=False)

    def times(self, name: str) -> tuple[Floats, bool]:
        cells = self._of(name)
        return times_of(cells) if "-" in cells[0] else (since_1970(self.numbers(name, blank=False)), True)

    def _of(self, name: str) -> Sequence[str]:
        place = self._columns.names.index(name)
        return [cells[place] for cells in self._rows]


def block_of(names: Names, counter: str | None, cells: Cells) -> Block:
    """Return the steps of consecutive rows.

    Args:
        names: columns of the rows.
        counter: column of the number of a step; None if the table has none.
        cells: cells of the rows, at least one.

    Raises:
        OtherwiseError: a row is not plain.
    """

    def read(name: str | None, *, blank: bool) -> Floats | None:
        return None if name is None else cells.numbers(name, blank=blank)

    def rate(name: str | None, number: Callable[[str], float | None] = optional) -> Floats | None:
        return None if name is None else _known(cells.rates(name, number))

    duration_name, data_name = names.first(tuple(DURATIONS)), names.first(tuple(DATA))
    duration = _above_zero(read(duration_name, blank=names.only(tuple(DURATIONS))))
    data = read(data_name, blank=names.only(tuple(DATA)))
    stamps = names.first(TIMES)
    end, zoned = (None, False) if stamps is None else cells.times(stamps)
    number = None if counter is None else cells.counts(counter)
    memory = read(names.first(MEMORY), blank=True)
    figures = {
        "duration_s": None if duration is None else duration * DURATIONS[duration_name or ""],
        "end_s": end,
        "sequences": _above_zero(read(names.first((BATCH,)), blank=True)),
        "data_s": data,
        "tflops_per_gpu": rate(names.rate(TFLOPS_KEYS)),
        "tokens_per_s_per_gpu": rate(names.rate(TPS_KEYS)),
        "mfu_ratio": _mfu(names, rate),
    }
    if memory is not None and end is None and duration is not None:
        memory = memory[~np.isnan(duration)]
    peak = None if memory is None else _known(memory)
    timed = np.arange(len(cells)) if end is not None or duration is None else np.flatnonzero(~np.isnan(duration))
    return Block(
        rows=timed,
        number=None if number is None else number.astype(np.int64)[timed],
        figures={name: values[timed] for name, values in figures.items() if values is not None},
        zoned=zoned,
        memory_gib=None if peak is None or np.all(np.isnan(peak)) else float(np.nanmax(peak)),
    )


def _numbers(cells: Sequence[str], *, comma: bool, blank: bool) -> Floats:
    """Read numbers as `as_number` does; NaN for a blank cell.

    Args:
        cells: cells of a column.
        comma: whether a comma is a decimal comma.
        blank: whether a cell may be blank.

    Raises:
        OtherwiseError: a cell is no such number, or is written in another form.
    """
    joined = "\n".join(cells)
    if comma and "," in joined:
        if "." in joined or ",\n" in f"{joined}\n" or any(cell.count(",") > 1 for cell in cells):
            raise OtherwiseError
        joined = joined.replace(",", ".")
        cells = joined.split("\n")
    if not _DIGITS.issuperset(joined) or any(sign in f"\n{joined}" for sign in ("\n-", "\n+")):
        raise OtherwiseError
    if ("e" in joined or "E" in joined) and not all(map(DECIMAL.fullmatch, filter(None, cells))):
        raise OtherwiseError
    if max(map(len, cells)) > LONGEST_NUMBER:
        raise OtherwiseError
    values = _floats(cells, joined, blank=blank)
    return plausible(values, values[~np.isnan(values)] if blank else values)


def plausible(values: Floats, present: Floats) -> Floats:
    """Return the values of a column if those that are present have sizes that `as_number` accepts.

    Raises:
        OtherwiseError: one of them has not.
    """
    if not np.all((present == 0) | ((present >= SMALLEST_AMOUNT) & (present <= LARGEST_AMOUNT))):
        raise OtherwiseError
    return values


def _floats(cells: Sequence[str], joined: str, *, blank: bool) -> Floats:
    """Read numbers, of which the second argument has all, each on its line."""
    if "" in cells:
        if not blank:
            raise OtherwiseError
        try:
            return np.array([float(cell) if cell else NAN for cell in cells], dtype=np.float64)
        except ValueError:
            raise OtherwiseError from None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns of a text that is not read to its end
        try:
            values = np.fromstring(joined, dtype=np.float64, sep="\n")
        except (DeprecationWarning, ValueError):
            raise OtherwiseError from None
    if len(values) != len(cells):
        raise OtherwiseError
    return values


def _above_zero(values: Floats | None) -> Floats | None:
    if values is not None and np.any(values <= 0):
        raise OtherwiseError
    return values


def _known(values: Floats | None) -> Floats | None:
    """Return a rate with 0 as unknown."""
    return None if values is None else np.where(values == 0, NAN, values)


def _without_unit(text: str) -> float | None:
    """Read an MFU that no row gives in percent.

    Raises:
        OtherwiseError: it has a unit.
    """
    if "%" in text:
        raise OtherwiseError
    return optional(text)


def _parsed(rows: Sequence[str], separator: str) -> list[list[str]] | None:
    """Return the cells of rows that may be quoted; None if a row does not end on its line."""
    try:
        cells = list(csv.reader(rows, delimiter=separator, skipinitialspace=separator != "\t"))
    except csv.Error:
        return None
    return cells if len(cells) == len(rows) else None


def _mfu(names: Names, rate: Callable[..., Floats | None]) -> Floats | None:
    percent = names.rate(MFU_PERCENT_KEYS)
    values = rate(names.rate(MFU_KEYS) if percent is None else percent, _without_unit)
    if values is None:
        return None
    with np.errstate(invalid="ignore"):
        return values / 100 if percent is not None else np.where(values >= PERCENT_FROM, values / 100, values)


def since_1970(amounts: Floats) -> Floats:
    """Return times in seconds since 1970 that are given in seconds or in milliseconds.

    Raises:
        OtherwiseError: they are neither.
    """
    low, high = EPOCH_S
    for seconds in (amounts, amounts * MILLI):
        if np.all((seconds >= low) & (seconds <= high)):
            return seconds
    raise OtherwiseError


def times_of(cells: Sequence[str]) -> tuple[Floats, bool]:
    """Read times in ISO 8601, in UTC or without a zone, as seconds since 1970; say whether with a zone.

    Raises:
        OtherwiseError: a cell has another form.
    """
    zone = next((zone for zone in _ZONES if cells[0].endswith(zone)), "")
    bare = [cell.removesuffix(zone) for cell in cells] if zone else cells
    lengths = {len(cell) for cell in bare}
    plain = _STAMP.issuperset("\n".join(bare)) and min(lengths) >= _DATE and max(lengths) <= _LONGEST_STAMP
    if not plain or (zone and any(not cell.endswith(zone) for cell in cells)):
        raise OtherwiseError
    if any(cell[10] not in "T " or cell[_DATE:][:1] not in ("", ".") or cell[-1] == "." for cell in bare):
        raise OtherwiseError
    try:
        moments = np.array(bare, dtype="datetime64[us]")
    except ValueError:
        raise OtherwiseError from None
    seconds = (moments - np.datetime64(0, "us")) / np.timedelta64(1, "s")
    if not np.all((seconds >= EPOCH_S[0]) & (seconds <= EPOCH_S[1])):
        raise OtherwiseError
    return seconds, bool(zone)


def blocks_of(text: str) -> Iterator[list[str]]:
    """Yield the lines of a text of whole lines in blocks of at most `MOST_ROWS`."""
    lines = text.split("\n")
    for begin in range(0, len(lines), MOST_ROWS):
        yield lines[begin : begin + MOST_ROWS]


MOST_ROWS = 4096
"""Most rows of a block, so that one row of another form leaves few to be read one by one."""

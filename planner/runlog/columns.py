"""Rows of a CSV table of steps, read column by column in blocks, since a table may have millions of rows.

A block is read only if its rows are plain: each on one line, with a number and, where the table has them, a time, and
with numbers written as most tools write them. Any other block is left to `planner.runlog.formats.table`, which reads
row by row and names what is damaged; both give the same steps.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator, Sequence

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
Cells = Sequence[str]

NAN = float("nan")
SPECIAL = ("\x1b", "\r")
"""Text that makes the rows of a block other than plain: colours, and lines that were written over."""
_DIGITS = frozenset("0123456789.eE+-\n")
_STAMP = frozenset("0123456789-:T .\n")
_ZONES = ("Z", "+00:00")
_DATE = len("2026-03-01T00:00:00")
_LONGEST_STAMP = len("2026-03-01T00:00:00.000000")


class _OtherwiseError(Exception):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where a table has the columns that count, and how its cells are separated."""

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

        def cells_of(name: str) -> Cells | None:
            if name not in self.names:
                return None
            place = self.names.index(name)
            return [cells[place] for cells in split]

        try:
            return _block(cells_of, len(rows), self)
        except _OtherwiseError:
            return None

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


def _block(cells_of: Callable[[str], Cells | None], rows: int, columns: Columns) -> Block:
    comma = columns.separator == ";"

    def read(name: str | None, *, blank: bool = False) -> Floats | None:
        cells = None if name is None else cells_of(name)
        return None if cells is None else _numbers(cells, comma=comma, blank=blank)

    def rate(name: str | None, number: Callable[[str], float | None] = optional) -> Floats | None:
        try:
            return read(name, blank=True)
        except _OtherwiseError:
            cells = None if comma or name is None else cells_of(name)
            if cells is None:
                raise
        return np.array([NAN if (value := number(cell.strip())) is None else value for cell in cells])

    duration_name, data_name = columns.first(tuple(DURATIONS)), columns.first(tuple(DATA))
    duration = _above_zero(read(duration_name, blank=columns.only(tuple(DURATIONS))))
    data = read(data_name, blank=columns.only(tuple(DATA)))
    stamps = columns.first(TIMES)
    stamp_cells = None if stamps is None else cells_of(stamps)
    end, zoned = (None, False) if stamp_cells is None else _times(stamp_cells, comma=comma)
    counter = columns.first(NUMBERS)
    counted = None if counter is None else cells_of(counter)
    if columns.separator != "," and counted is not None and any(map(grouped_by_points, counted)):
        raise _OtherwiseError
    number = read(counter)
    memory = read(columns.first(MEMORY), blank=True)
    figures = {
        "duration_s": None if duration is None else duration * DURATIONS[duration_name or ""],
        "end_s": end,
        "sequences": _above_zero(read(columns.first((BATCH,)), blank=True)),
        "data_s": None if data is None else data * 1.0,
        "tflops_per_gpu": _known(rate(columns.rate(TFLOPS_KEYS))),
        "tokens_per_s_per_gpu": _known(rate(columns.rate(TPS_KEYS))),
        "mfu_ratio": _mfu(columns, rate),
    }
    if memory is not None and end is None and duration is not None:
        memory = memory[~np.isnan(duration)]
    peak = None if memory is None else _known(memory)
    timed = np.arange(rows) if end is not None or duration is None else np.flatnonzero(~np.isnan(duration))
    return Block(
        rows=timed,
        number=None if number is None else number.astype(np.int64)[timed],
        figures={name: values[timed] for name, values in figures.items() if values is not None},
        zoned=zoned,
        memory_gib=None if peak is None or np.all(np.isnan(peak)) else float(np.nanmax(peak)),
    )


def _numbers(cells: Cells, *, comma: bool, blank: bool) -> Floats:
    """Read numbers as `as_number` does; NaN for a blank cell.

    Args:
        cells: cells of a column.
        comma: whether a comma is a decimal comma.
        blank: whether a cell may be blank.

    Raises:
        _OtherwiseError: a cell is no such number, or is written in another form.
    """
    joined = "\n".join(cells)
    if comma and "," in joined:
        if "." in joined or ",\n" in f"{joined}\n" or any(cell.count(",") > 1 for cell in cells):
            raise _OtherwiseError
        joined = joined.replace(",", ".")
        cells = joined.split("\n")
    if not _DIGITS.issuperset(joined) or any(sign in f"\n{joined}" for sign in ("\n-", "\n+")):
        raise _OtherwiseError
    if ("e" in joined or "E" in joined) and not all(map(DECIMAL.fullmatch, filter(None, cells))):
        raise _OtherwiseError
    if max(map(len, cells)) > LONGEST_NUMBER:
        raise _OtherwiseError
    values = _floats(cells, joined, blank=blank)
    size = values[~np.isnan(values)] if blank else values
    if not np.all((size == 0) | ((size >= SMALLEST_AMOUNT) & (size <= LARGEST_AMOUNT))):
        raise _OtherwiseError
    return values


def _floats(cells: Cells, joined: str, *, blank: bool) -> Floats:
    """Read numbers, of which the second argument has all, each on its line."""
    if "" in cells:
        if not blank:
            raise _OtherwiseError
        try:
            return np.array([float(cell) if cell else NAN for cell in cells], dtype=np.float64)
        except ValueError:
            raise _OtherwiseError from None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns of a text that is not read to its end
        try:
            values = np.fromstring(joined, dtype=np.float64, sep="\n")
        except (DeprecationWarning, ValueError):
            raise _OtherwiseError from None
    if len(values) != len(cells):
        raise _OtherwiseError
    return values


def _above_zero(values: Floats | None) -> Floats | None:
    if values is not None and np.any(values <= 0):
        raise _OtherwiseError
    return values


def _known(values: Floats | None) -> Floats | None:
    """Return a rate with 0 as unknown."""
    return None if values is None else np.where(values == 0, NAN, values)


def _without_unit(text: str) -> float | None:
    """Read an MFU that no row gives in percent.

    Raises:
        _OtherwiseError: it has a unit.
    """
    if "%" in text:
        raise _OtherwiseError
    return optional(text)


def _parsed(rows: Sequence[str], separator: str) -> list[list[str]] | None:
    """Return the cells of rows that may be quoted; None if a row does not end on its line."""
    try:
        cells = list(csv.reader(rows, delimiter=separator, skipinitialspace=separator != "\t"))
    except csv.Error:
        return None
    return cells if len(cells) == len(rows) else None


def _mfu(columns: Columns, rate: Callable[..., Floats | None]) -> Floats | None:
    percent = columns.rate(MFU_PERCENT_KEYS)
    values = _known(rate(columns.rate(MFU_KEYS) if percent is None else percent, _without_unit))
    if values is None:
        return None
    with np.errstate(invalid="ignore"):
        return values / 100 if percent is not None else np.where(values >= PERCENT_FROM, values / 100, values)


def _times(cells: Cells, *, comma: bool) -> tuple[Floats, bool]:
    """Read times: seconds or milliseconds since 1970, or ISO 8601 in UTC or without a zone; say whether with one.

    Raises:
        _OtherwiseError: a cell has another form.
    """
    if "-" not in cells[0]:
        amounts, (low, high) = _numbers(cells, comma=comma, blank=False), EPOCH_S
        for seconds in (amounts, amounts * MILLI):
            if np.all((seconds >= low) & (seconds <= high)):
                return seconds, True
        raise _OtherwiseError
    zone = next((zone for zone in _ZONES if cells[0].endswith(zone)), "")
    bare = [cell.removesuffix(zone) for cell in cells] if zone else cells
    lengths = {len(cell) for cell in bare}
    plain = _STAMP.issuperset("\n".join(bare)) and min(lengths) >= _DATE and max(lengths) <= _LONGEST_STAMP
    if not plain or (zone and any(not cell.endswith(zone) for cell in cells)):
        raise _OtherwiseError
    if any(cell[10] not in "T " or cell[_DATE:][:1] not in ("", ".") or cell[-1] == "." for cell in bare):
        raise _OtherwiseError
    try:
        moments = np.array(bare, dtype="datetime64[us]")
    except ValueError:
        raise _OtherwiseError from None
    seconds = (moments - np.datetime64(0, "us")) / np.timedelta64(1, "s")
    if not np.all((seconds >= EPOCH_S[0]) & (seconds <= EPOCH_S[1])):
        raise _OtherwiseError
    return seconds, bool(zone)


def blocks_of(text: str) -> Iterator[list[str]]:
    """Yield the lines of a text of whole lines in blocks of at most `MOST_ROWS`."""
    lines = text.split("\n")
    for begin in range(0, len(lines), MOST_ROWS):
        yield lines[begin : begin + MOST_ROWS]


MOST_ROWS = 4096
"""Most rows of a block, so that one row of another form leaves few to be read one by one."""

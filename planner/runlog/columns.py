"""Rows of a CSV table of steps, read column by column in blocks, since a table may have millions of rows.

A block is read only if its rows are plain: without quotes, every cell that counts filled, and numbers written as most
tools write them. Any other block is left to `planner.runlog.formats.table`, which reads row by row and names what is
damaged; both give the same steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from planner.csv_table import separator_of
from planner.lazy import dataclass
from planner.runlog.amounts import DECIMAL, LARGEST_AMOUNT, LONGEST_NUMBER, SMALLEST_AMOUNT
from planner.runlog.formats.base import MFU_KEYS, MFU_PERCENT_KEYS, PERCENT_FROM, TFLOPS_KEYS, TPS_KEYS
from planner.runlog.formats.table import BATCH, DATA, DURATIONS, MEMORY, NUMBERS, TIMES, grouped_by_points
from planner.runlog.lines import LONGEST_LINE
from planner.runlog.moments import EPOCH_S
from planner.units import MILLI

Floats = npt.NDArray[np.float64]
Cells = Sequence[str]

NAN = float("nan")
SPECIAL = ('"', "\x1b", "[", ": ", "\r")
"""Text that makes the rows of a block other than plain: quotes, colours, and the prefix of a rank."""
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

    rows: int
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
        names = tuple(name.strip() for name in header.split(separator))
        small = {name.lower() for name in names}
        if any(mark in header for mark in (*SPECIAL, "{")) or len(small) != len(names):
            return None
        return cls(names=names, separator=separator)

    def read(self, rows: Sequence[str]) -> Block | None:
        """Read rows, the first of which is not the header; None if one of them is not plain."""
        split = [row.split(self.separator) for row in rows]
        if set(map(len, split)) != {len(self.names)} or not all(rows):
            return None
        text = "\n".join(rows)
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

    def rate(self, names: Sequence[str]) -> str | None:
        """Return the first of these columns, named in lower case, that the table has in any case."""
        by_small = {name.lower(): name for name in self.names}
        return next((by_small[name] for name in names if name in by_small), None)


def _block(cells_of: Callable[[str], Cells | None], rows: int, columns: Columns) -> Block:
    comma = columns.separator == ";"

    def read(name: str | None, *, blank: bool = False) -> Floats | None:
        cells = None if name is None else cells_of(name)
        return None if cells is None else _numbers(cells, comma=comma, blank=blank)

    duration_name, data_name = columns.first(tuple(DURATIONS)), columns.first(tuple(DATA))
    duration, data = _above_zero(read(duration_name)), read(data_name)
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
        "sequences": _above_zero(read(columns.first((BATCH,)))),
        "data_s": None if data is None else data * 1.0,
        "tflops_per_gpu": _known(read(columns.rate(TFLOPS_KEYS), blank=True)),
        "tokens_per_s_per_gpu": _known(read(columns.rate(TPS_KEYS), blank=True)),
        "mfu_ratio": _mfu(columns, read),
    }
    peak = None if memory is None else _known(memory)
    return Block(
        rows=rows,
        number=None if number is None else number.astype(np.int64),
        figures={name: values for name, values in figures.items() if values is not None},
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
    if values is not None and not np.all(values > 0):
        raise _OtherwiseError
    return values


def _known(values: Floats | None) -> Floats | None:
    """Return a rate with 0 as unknown."""
    return None if values is None else np.where(values == 0, NAN, values)


def _mfu(columns: Columns, read: Callable[..., Floats | None]) -> Floats | None:
    percent = columns.rate(MFU_PERCENT_KEYS)
    values = _known(read(columns.rate(MFU_KEYS) if percent is None else percent, blank=True))
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

"""Rows of a table of steps in JSON Lines, read column by column in blocks, as `planner.runlog.columns` reads CSV.

Rows may have different keys, as those of an evaluation between those of training have: a key that a row lacks is a
blank cell, and rows without a time or a duration are no steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.runlog.columns import NAN, SPECIAL, Block, Floats, Names, OtherwiseError, block_of, plausible, since_1970
from planner.runlog.columns import times_of as texts_to_times
from planner.runlog.formats.base import MFU_KEYS, TFLOPS_KEYS, TPS_KEYS
from planner.runlog.formats.table import BATCH, DATA, DURATIONS, MEMORY, NUMBERS, RATES, TIMES, names_of
from planner.runlog.lines import LONGEST_LINE

_READ = frozenset((*DURATIONS, *TIMES, *DATA, *MEMORY, BATCH))
_FAMILIES = (TFLOPS_KEYS, MFU_KEYS, TPS_KEYS)
_NUMBER = frozenset((int, float))
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonColumns:
    """The columns of a table in JSON Lines."""

    counter: str | None
    """Key of the number of a step; None if the first row has none, and no number counts."""

    @classmethod
    def of(cls, first: str) -> JsonColumns | None:
        """Return the columns of a table by its first row; None if that is no plain row."""
        names = names_of(first)
        plain = first.startswith("{") and not any(mark in first for mark in SPECIAL)
        return cls(counter=next((name for name in NUMBERS if name in names), None)) if names and plain else None

    def read(self, rows: Sequence[str]) -> Block | None:
        """Read rows; None if one of them is not plain."""
        text = "\n".join(rows)
        if any(mark in text for mark in SPECIAL) or max(map(len, rows)) > LONGEST_LINE:
            return None
        try:
            parsed = _parsed(rows)
            try:
                return self._block(parsed)
            except OtherwiseError:
                return self._among_others(parsed)
        except OtherwiseError:
            return None

    def _block(self, rows: Sequence[Mapping[str, Any]]) -> Block:
        keys = dict.fromkeys(chain.from_iterable(rows))
        names = tuple(key for key in keys if key in _READ or key.lower() in RATES)
        cells = _JsonCells(rows)
        for family in _FAMILIES:  # the row by row reader takes the first that a row has, in any case
            if len([name for name in names if name.lower() in family]) > 1:
                raise OtherwiseError
        return block_of(Names(names=names), self.counter, cells)

    def _among_others(self, rows: Sequence[Mapping[str, Any]]) -> Block | None:
        """Read the rows about steps among others, which have neither a time nor a duration."""
        timed = [any(row.get(name) not in (None, "") for name in (*TIMES, *DURATIONS)) for row in rows]
        steps = np.flatnonzero(timed)
        if len(steps) in (0, len(rows)):
            return None
        others = [row for row, is_step in zip(rows, timed, strict=True) if not is_step]
        if self.counter is not None:  # an unreadable number is damage, wherever it is
            _JsonCells(others).numbers(self.counter, blank=True)
        block = self._block([row for row, is_step in zip(rows, timed, strict=True) if is_step])
        return Block(
            rows=steps[block.rows], number=block.number, figures=block.figures, zoned=block.zoned,
            memory_gib=block.memory_gib,
        )  # fmt: skip


class _JsonCells:
    """Values of JSON objects."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def numbers(self, name: str, *, blank: bool) -> Floats:
        values = self._of(name)
        kinds = {*map(type, values)}
        if kinds <= _NUMBER:
            array = _array(values)
            return plausible(array, array)
        if not blank or not kinds <= _NUMBER | {type(None)}:
            raise OtherwiseError
        array = _array([NAN if value is None else value for value in values])
        present: npt.NDArray[np.bool_] = np.array([value is not None for value in values])
        return plausible(array, array[present])

    def rates(self, name: str, number: Callable[[str], float | None]) -> Floats:
        try:
            return self.numbers(name, blank=True)
        except OtherwiseError:
            texts = ("" if value is None else str(value).strip() for value in self._of(name))
            return np.array([NAN if (value := number(text)) is None else value for text in texts])

    def counts(self, name: str) -> Floats:
        return self.numbers(name, blank=False)

    def times(self, name: str) -> tuple[Floats, bool]:
        values = self._of(name)
        if {*map(type, values)} == {str}:
            return texts_to_times(values)
        return since_1970(self.numbers(name, blank=False)), True

    def _of(self, name: str) -> list[Any]:
        return [row.get(name) for row in self._rows]


def _parsed(rows: Sequence[str]) -> list[dict[str, Any]]:
    """Parse rows, each of which must be one object without white space around it.

    Raises:
        OtherwiseError: one is not.
    """
    parsed = []
    try:
        for row in rows:
            value, end = _decode(row)
            if end != len(row) or type(value) is not dict:
                raise OtherwiseError
            parsed.append(value)
    except (ValueError, RecursionError):
        raise OtherwiseError from None
    return parsed


def _array(values: Sequence[Any]) -> Floats:
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:  # a whole number of hundreds of digits
        raise OtherwiseError from None

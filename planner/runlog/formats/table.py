"""Steps in a table, the user's own or exported from W&B or TensorBoard: CSV with a header, or JSON Lines.

The cells of CSV are separated by commas, semicolons or tabs. Between semicolons, a comma in a number is a decimal
comma, and beside one, a point separates thousands: spreadsheets use semicolons in the countries that write it.

These columns are read in any order, and others are ignored: `step_time_s` or `step_time_ms` (the duration of a step),
`timestamp` (when it ended), `step` (its number), `global_batch` (sequences). TensorBoard exports a scalar as `Wall
time,Step,Value`. torchtitan's metrics in W&B (`MetricsProcessor.log` of torchtitan/components/metrics.py,
pytorch/torchtitan b5bcd76c) are columns, too: `time_metrics/end_to_end(s)`, `time_metrics/data_loading(s)`,
`throughput(tps)`, `tflops`, `mfu(%)`, beside W&B's `_step` and `_timestamp`; so are the step times of NeMo,
Megatron-LM and nanotron.

W&B's `_step` counts calls of `wandb.log`. Hugging Face's Trainer and Lightning pass it no step, and log the number of
the step as `train/global_step` (`WandbCallback.on_log` of src/transformers/integrations/integration_utils.py,
huggingface/transformers 0101dc05) or `trainer/global_step` (`WandbLogger.log_metrics` of
src/lightning/pytorch/loggers/wandb.py, Lightning-AI/pytorch-lightning 7f0c3436).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from planner.csv_table import COMMA, decimal_mark, separator_of, with_point
from planner.runlog.amounts import as_number
from planner.runlog.events import DamagedError, Step
from planner.runlog.formats.base import MFU_KEYS, TFLOPS_KEYS, TPS_KEYS, optional, rates_of
from planner.runlog.moments import parse_moment
from planner.units import MILLI, ungrouped

DURATIONS = {
    "step_time_s": 1.0, "step_time_ms": MILLI, "time_metrics/end_to_end(s)": 1.0, "train_step_timing in s": 1.0,
    "iteration-time": 1.0, "time_per_iteration_ms": MILLI, "elapsed_time_per_iteration_ms": MILLI,
}  # fmt: skip
"""Columns of the duration of a step, with their unit in seconds."""
DATA = {"data_loading_s": 1.0, "time_metrics/data_loading(s)": 1.0}
NUMBERS = ("train/global_step", "trainer/global_step", "global_step", "step", "_step", "Step")
"""Columns of the number of a step. The first that a table has is the only one read, in rows that leave it blank, too:
the others count something else."""
TIMES = ("timestamp", "_timestamp", "Wall time")
MEMORY = ("memory/max_reserved(GiB)",)
MOST_CHARACTERS = 100_000
"""Most characters of the first line that are read as JSON; Python's CSV reader rejects cells longer than 131,072."""


BATCH = "global_batch"
_POINTS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+")
_DECIMAL_COMMA = re.compile(r"[0-9]{0,15},[0-9]{1,20}")


@lru_cache(maxsize=1)
def names_of(first: str) -> frozenset[str]:
    """Names of the columns of a table, from its first line; empty if it is JSON but not a row."""
    if not first.startswith("{"):
        return frozenset(name.strip().strip('"') for name in first.split(separator_of(first)))
    try:
        row = json.loads(first[:MOST_CHARACTERS])
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(row) if isinstance(row, dict) else frozenset()


def is_table(first: str) -> bool:
    """Whether a line is the first line of a table of steps."""
    names = names_of(first)
    return bool(names & {*DURATIONS}) or any(names >= {number, time} for number in NUMBERS for time in TIMES)


def columns_without_time(first: str) -> tuple[str, ...]:
    """Return the columns of a table that has the number of a step and no time; none for anything else."""
    names = names_of(first)
    return () if is_table(first) or names.isdisjoint(NUMBERS) else tuple(sorted(names))


def cells_of(first: str, line: str) -> Mapping[str, Any]:
    """Read the cells of a row, by column.

    Args:
        first: first line of the table.
        line: a later line or, for JSON Lines, any line.

    Raises:
        DamagedError: the line is not such a row.
    """
    if first.startswith("{"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise DamagedError("row", line, "JSON of ordinary size") from None
        if not isinstance(row, dict):
            raise DamagedError("row", line, "a JSON object")
        return row
    delimiter = separator_of(first)
    try:
        header, cells = (
            next(csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=delimiter != "\t"))
            for text in (first, line)
        )
    except (csv.Error, StopIteration):
        raise DamagedError("row", line, "cells between commas") from None
    if len(cells) != len(header):
        raise DamagedError("row", str(len(cells)), f"{len(header)} cells")
    if delimiter == ";" and any(decimal_mark(cell) == COMMA for cell in cells):
        cells = [with_point(cell) for cell in cells]
    elif delimiter == ";":
        cells = [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell for cell in cells]
    return {name.strip(): cell for name, cell in zip(header, cells, strict=True)}


def row_steps(first: str, line: str) -> Iterator[Step]:
    """Read the step of a row in a table.

    Raises:
        DamagedError: the line is not a row, or holds an invalid duration, time or batch.
    """
    row = cells_of(first, line)
    counter = next((name for name in NUMBERS if name in names_of(first)), None)
    number = None if counter is None else _counted(row.get(counter), by_commas=separator_of(first) == ",")
    column = next((name for name in DURATIONS if row.get(name) not in (None, "")), None)
    duration = None if column is None else _above_zero(column, row[column]) * DURATIONS[column]
    stamp = _cell(row, TIMES)
    moment = None if stamp in (None, "") else parse_moment(stamp)
    if stamp not in (None, "") and moment is None:
        raise DamagedError("timestamp", str(stamp), "ISO 8601 or seconds since 1970")
    if duration is None and moment is None:
        return
    rates = {str(name): str(value) for name, value in row.items() if str(name).lower() in RATES and value is not None}
    data = next((name for name in DATA if row.get(name) not in (None, "")), None)
    yield Step(
        number=None if number is None else int(number),
        duration_s=duration,
        end=moment,
        sequences=None if row.get(BATCH) in (None, "") else _above_zero(BATCH, row[BATCH]),
        data_s=None if data is None else as_number(row[data]),
        memory_gib=optional(str(_cell(row, MEMORY) or "")),
        **rates_of(rates),
    )


def grouped_by_points(text: str) -> bool:
    """Whether points may separate the thousands of a whole number, as in `12.000`."""
    return _POINTS.fullmatch(text.strip()) is not None


def _counted(value: object, *, by_commas: bool) -> float | None:
    """Read the number of a step; None if the cell is blank.

    Args:
        value: cell of the table.
        by_commas: whether commas separate cells, so that a point in a number is a decimal point.

    Raises:
        DamagedError: the cell is no number, or may have points between its thousands.
    """
    if value in (None, ""):
        return None
    number = as_number(ungrouped(value) if by_commas and isinstance(value, str) else value)
    if number is None or (not by_commas and isinstance(value, str) and grouped_by_points(value)):
        raise DamagedError("step", str(value), "a whole number without separators between its thousands")
    return number


RATES = {*TFLOPS_KEYS, *MFU_KEYS, *TPS_KEYS}


def _cell(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _above_zero(key: str, value: object) -> float:
    number = as_number(value)
    if not number:
        raise DamagedError(key, str(value))
    return number

"""Tables in JSON Lines, read in columns: the same run as row by row, which a colour in each row enforces."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from planner.runlog.columns import MOST_ROWS
from planner.runlog.json_columns import JsonColumns
from planner.runlog.log import RunLog
from tests.planner.runlog.reading import read
from tests.planner.runlog.test_columns import alike

KEYS = [
    ("step", "step_time_s"), ("step", "timestamp"), ("_step", "_timestamp", "train/global_step", "tflops"),
    ("step_time_ms", "global_batch"), ("step", "step_time_ms", "step_time_s", "MFU", "tps"),
    ("step", "timestamp", "step_time_s", "global_batch", "data_loading_s", "mfu(%)", "TFLOPS",
     "memory/max_reserved(GiB)", "note"),
]  # fmt: skip
ODD = [None, "", 0, -1, 1e-13, 1e16, 10**400, True, "7", "1,000", "12%", float("nan"), float("inf"), [], {}, "x",
       "2026-03-01T00:00:00Z", "2026-03-01", 1772323200000, 1772323200]  # fmt: skip


def cell(name: str, row: int, form: str) -> Any:
    """A value of an ordinary row."""
    if name in ("timestamp", "_timestamp"):
        plain = f"2026-03-01T{row // 3600 % 24:02d}:{row // 60 % 60:02d}:{row % 60:02d}"
        return {"iso": plain, "utc": f"{plain}.25Z"}.get(form, 1772323200.5 + row)
    return row if name in ("step", "_step", "train/global_step") else 1 + row % 7 + row % 10 / 10


def both(rows: list[str], *, end: str = "\n") -> tuple[RunLog | str, RunLog | str]:
    """Read rows in columns and row by row; the message where they are refused."""
    runs: list[RunLog | str] = []
    for colour in ("", "\x1b[32m"):
        lines = [row.replace("{", f"{{{colour}", 1) for row in rows]
        try:
            runs.append(read((end.join(lines) + end).encode()))
        except Exception as error:  # the message is compared
            runs.append(str(error))
    return runs[0], runs[1]


@pytest.mark.parametrize("form", ["epoch", "iso", "utc"])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_plain_tables_are_read_alike(keys: tuple[str, ...], form: str, end: str) -> None:
    rows = [json.dumps({name: cell(name, row, form) for name in keys}) for row in range(1, MOST_ROWS + 200)]
    by_columns, by_rows = both(rows, end=end)

    assert not isinstance(by_columns, str)
    alike(by_columns, by_rows)


@pytest.mark.parametrize("seed", range(80))
def test_odd_values_rows_and_orders_are_read_alike(seed: int) -> None:
    draw = random.Random(seed)
    keys, form = draw.choice(KEYS), draw.choice(["epoch", "iso", "utc"])
    column, odd = draw.choice(keys), draw.choice(ODD)
    rows = []
    for row in range(1, 60):
        values = {name: odd if name == column and draw.random() < 0.3 else cell(name, row, form) for name in keys}
        if draw.random() < 0.2:
            del values[draw.choice(keys)]
        rows.append(json.dumps(values))
    rows.insert(
        1 + draw.randrange(len(rows)),
        draw.choice(["", "[]", "3", "{}", "{", '{"a": 1} ', ' {"a": 1}', rows[-1] + rows[0]]),
    )
    alike(*both(rows))


def test_every_value_of_a_key_may_be_odd() -> None:
    for odd in ODD:
        for keys in KEYS:
            for column in keys:
                rows = [json.dumps({name: odd if name == column else cell(name, row, "") for name in keys})
                        for row in range(1, 12)]  # fmt: skip
                alike(*both(rows))


def test_rows_of_an_evaluation_are_passed_over_without_reading_the_others_one_by_one() -> None:
    columns = JsonColumns.of('{"_step": 1, "_timestamp": 1772323200.5, "mfu": 0.4}')
    assert columns is not None

    block = columns.read(
        ['{"_step": 1, "_timestamp": 1772323200.5, "mfu": 0.4}', '{"_step": 1, "eval/loss": 2.5}',
         '{"_step": 2, "_timestamp": 1772323203.0, "mfu": 41.0, "note": {"a": [1]}}', '{"eval/loss": 2.0}']
    )  # fmt: skip

    assert block is not None
    assert block.number is not None
    assert (block.rows.tolist(), block.number.tolist()) == ([0, 2], [1, 2])
    assert block.figures["mfu_ratio"].tolist() == [0.4, 0.41]
    assert columns.read(['{"_step": "x", "eval/loss": 2.5}', '{"_step": 2, "_timestamp": 1772323203.0}']) is None


def test_what_is_no_plain_row_is_left_to_the_row_by_row_reader() -> None:
    columns = JsonColumns.of('{"step": 1, "step_time_s": 2.5}')

    assert columns == JsonColumns(counter="step")
    for row in (
        '{"step": 1, "step_time_s": 2.5} ', '{"step": 1, "step_time_s": "2.5"}', '{"step": 1', "[1]", "",
        '{"step": 1, "step_time_s": 2.5, "mfu": 1, "MFU": 2}', '{"step": true, "step_time_s": 2.5}',
    ):  # fmt: skip
        assert columns.read(['{"step": 1, "step_time_s": 2.5}', row]) is None, row
    assert JsonColumns.of("step,step_time_s") is None

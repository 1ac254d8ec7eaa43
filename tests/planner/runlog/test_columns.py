"""Tables read in columns: the same run as row by row, which a colour in each row enforces."""

from __future__ import annotations

import random

import numpy as np
import pytest

from planner.runlog.columns import MOST_ROWS, Columns
from planner.runlog.log import RunLog, Steps
from tests.planner.runlog.reading import read

HEADERS = [
    "step,step_time_s", "step,timestamp", "_step,_timestamp,train/global_step,tflops", "step_time_ms,global_batch",
    "step,timestamp,step_time_s,global_batch,data_loading_s,MFU,tps,TFLOPS,memory/max_reserved(GiB),note",
    "Wall time,Step,Value", "step;step_time_s;tps;mfu(%)", "step\ttimestamp\tmfu", "step,step_time_ms,step_time_s",
]  # fmt: skip
ODD = ["", "0", "-1", "1e3", "1E-05", ".5", "5.", "1,5", "1.000", "1_0", "nan", "inf", " 7", "7 ", "x", "1.2.3", ".",
       "1e", "9" * 41, "9e20", "2026-03-01T00:00:00Z", "2026-03-01", "12%", "+4", "0x10", "１", "[rank1]:",
       "3: "]  # fmt: skip


def cell(name: str, row: int, form: str) -> str:
    """A cell of an ordinary row."""
    if name in ("timestamp", "_timestamp", "Wall time"):
        plain = f"2026-03-01T{row // 3600 % 24:02d}:{row // 60 % 60:02d}:{row % 60:02d}"
        return {"iso": plain, "utc": f"{plain}.25Z", "offset": f"{plain}+00:00"}.get(form, f"{1772323200 + row}.5")
    if name in ("step", "_step", "Step", "train/global_step"):
        return str(row)
    return f"{1 + row % 7}.{row % 10}"


def both(header: str, rows: list[str], *, end: str = "\n") -> tuple[RunLog | str, RunLog | str]:
    """Read a table in columns and row by row; the message where it is refused."""
    separator = ";" if ";" in header else "\t" if "\t" in header else ","
    runs: list[RunLog | str] = []
    for note in ("q", "\x1b[32mq"):
        lines = [f"{header}{separator}q", *(f"{row}{separator}{note}" for row in rows)]
        try:
            runs.append(read((end.join(lines) + end).encode()))
        except Exception as error:  # the message is compared
            runs.append(str(error))
    return runs[0], runs[1]


def alike(one_way: RunLog | str, other: RunLog | str) -> None:
    if isinstance(one_way, str) or isinstance(other, str):
        assert one_way == other
        return
    for name in Steps.__slots__:
        assert np.array_equal(getattr(one_way.steps, name), getattr(other.steps, name), equal_nan=True), name
    for name in RunLog.__slots__:
        if name != "steps":
            assert getattr(one_way, name) == getattr(other, name), name


@pytest.mark.parametrize("form", ["epoch", "iso", "utc", "offset"])
@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_plain_tables_are_read_alike(header, form, end):
    separator = ";" if ";" in header else "\t" if "\t" in header else ","
    names = header.split(separator)
    rows = [separator.join(cell(name, row, form) for name in names) for row in range(1, MOST_ROWS + 200)]
    by_columns, by_rows = both(header, rows, end=end)

    assert not isinstance(by_columns, str)
    alike(by_columns, by_rows)


@pytest.mark.parametrize("seed", range(60))
def test_odd_cells_rows_and_orders_are_read_alike(seed):
    draw = random.Random(seed)
    header = draw.choice(HEADERS)
    separator = ";" if ";" in header else "\t" if "\t" in header else ","
    names, form = header.split(separator), draw.choice(["epoch", "iso", "utc"])
    column, odd = draw.choice(names), draw.choice(ODD)
    rows = []
    for row in range(1, 40):
        cells = [odd if name == column and draw.random() < 0.3 else cell(name, row, form) for name in names]
        rows.append(separator.join(cells[: len(cells) - (draw.random() < 0.02)]))
    if draw.random() < 0.3:
        rows.insert(20, "")
    alike(*both(header, rows))


@pytest.mark.parametrize("seed", range(40))
def test_quoted_cells_are_read_alike(seed):
    draw = random.Random(seed)
    header = draw.choice(HEADERS)
    separator = ";" if ";" in header else "\t" if "\t" in header else ","
    names = header.split(separator)
    rows = []
    for row in range(1, 60):
        cells = [f'"{cell(name, row, "iso")}"' if draw.random() < 0.5 else cell(name, row, "iso") for name in names]
        if draw.random() < 0.05:
            cells[draw.randrange(len(cells))] = draw.choice(['"', '"1,5"', '""', '"a"b', ' "2"', "NaN", '"1""2"'])
        rows.append(separator.join(cells))
    quoted = separator.join(f'"{name}"' for name in names) if draw.random() < 0.5 else header
    alike(*both(quoted, rows))


def test_every_cell_of_a_column_may_be_odd():
    for odd in ODD:
        for header in HEADERS:
            separator = ";" if ";" in header else "\t" if "\t" in header else ","
            names = header.split(separator)
            for column in names:
                rows = [separator.join(odd if name == column else cell(name, row, "") for name in names)
                        for row in range(1, 12)]  # fmt: skip
                alike(*both(header, rows))


def test_plain_rows_are_read_in_columns_and_those_with_colours_are_not():
    columns = Columns.of("step,step_time_s,note")

    assert columns is not None
    block = columns.read(["1,2.5,a", "2,2.75,b"])
    assert block is not None
    assert (block.number is not None, block.figures["duration_s"].tolist()) == (True, [2.5, 2.75])
    quoted = columns.read(['"1","2.5","a, b"', "2,,b", "3,2.75,[info]: c"])
    assert quoted is not None
    assert (quoted.rows.tolist(), quoted.figures["duration_s"].tolist()) == ([0, 2], [2.5, 2.75])
    assert columns.read(["1,2.5,\x1b[32ma"]) is None
    assert columns.read(['1,2.5,"a']) is not None
    assert columns.read(['1,2.5,"a', '2,2.5,b"']) is None
    assert Columns.of('"step","step_time_s"') == Columns(names=("step", "step_time_s"), separator=",")


def test_a_table_that_ends_within_a_row_or_breaks_no_line_is_read_as_far_as_it_goes():
    whole = "step,step_time_s\n" + "".join(f"{row},2.5\n" for row in range(1, 50))
    cut, endless = read((whole + "50,").encode()), read((whole + "x" * 200_000).encode())

    assert (cut.reached, cut.cut) == (49, True)
    assert (endless.reached, endless.damaged_count) == (49, 1)

"""The check of a contributor's rows: every kind of fault is named by line and column; the shipped rows have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.rows import CATALOG
from pricing.base.folder import DATA
from tools.rows import FILES, DataFile, faults

HEADER = "id,gpu,low,high,date,source\n"
GOOD = "a1,h100-sxm5-80gb,1.0,2.0,2026-11,vendor's datasheet"


def listed(folder: Path, *lines: str) -> list[str]:
    path = folder / "new.csv"
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    file = DataFile(path=path, key=("id",), dates=("date",), gpu="gpu", ordered=("low", "high"))
    return list(faults(file, today="2026-11-22"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.name)
def test_the_shipped_rows_have_no_fault(file):
    assert list(faults(file)) == []


def test_every_data_file_is_checked():
    assert {file.path for file in FILES} == {
        *CATALOG.glob("*.csv"),
        *DATA.glob("*.csv"),
    }


def test_a_good_row_has_no_fault(tmp_path):
    assert listed(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("b1,h100-sxm5-80gb,1.0,2.0,2026-11,", "new.csv:3: source: expected where it can be looked up, found ``"),
        ("b1,h100-sxm5-80gb,1.0,2.0,2027-01,the datasheet", "date: expected a date that is not in the future"),
        ("b1,h100-sxm5-80gb,1.0,2.0,,the datasheet", "date: expected a year, a month or a day"),
        ("b1,h100-sxm5-80gb,1.0,2.0,2026-13,the datasheet", "date: expected a year, a month or a day"),
        ("b1,h100,1.0,2.0,2026-11,the datasheet", "gpu: expected an id of gpus.csv, found `h100`"),
        ("b1,h100-sxm5-80gb,3.0,2.0,2026-11,the datasheet", "high: expected at least `low`, 3.0, found `2.0`"),
        ("a1,h100-sxm5-80gb,1.0,2.0,2026-11,the datasheet", "new.csv:3: id: the same as in line 2"),
        ("b1,h100-sxm5-80gb,1.0,2.0,2026-11,the \x1b[31mdatasheet", "source: expected no control characters"),
        ("b1,h100-sxm5-80gb,1.0,2.0,2026-11", "new.csv:3: expected 6 cells, found 5"),
    ],
)
def test_a_fault_is_named_by_line_and_column(tmp_path, line, fault):
    (message,) = listed(tmp_path, GOOD, line)

    assert fault in message

"""CSV of nvidia-smi: units, columns, what could not be read."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from tests.planner.imported.readings import context_of, reading, sample, text_file

TIMED = [f"2026/11/20 10:00:{s:02d}.000" for s in range(10, 40)]


def test_the_gpu_and_its_driver_are_those_of_the_file() -> None:
    read = reading(sample("nvidia-smi.csv"), context_of("megatron.log"))

    assert (read.device_name, read.memory_total_bytes) == ("NVIDIA H100 80GB HBM3", 81559 * 2**20)
    assert (read.software.driver_version, read.date) == ("570.124.06", "2026-11-20T10:00:00")


@pytest.mark.parametrize(
    ("header", "row", "field"),
    [
        ("timestamp, power.draw [W]", "{}, 600.00", "average"),  # --format=csv,nounits
        ("timestamp, power.draw [W], power.draw.instant [W]", "{}, 400.00 W, 600.00 W", "instant"),
        ("index, power.draw.average [W], timestamp", "3, 600.00 W, {}", "average"),
    ],
)
def test_columns_are_found_by_their_names_and_the_better_power_wins(header: str, row: str, field: str) -> None:
    text = "\n".join([header, *(row.format(moment) for moment in TIMED)])

    (point,) = reading(text_file(text), context_of("steps.csv")).points

    assert (point.power.mean_w, point.energy.source) == (600.0, field)


def test_samples_that_could_not_be_read_are_left_out_and_counted() -> None:
    rows = [f"{moment}, 0, {'[N/A]' if n % 10 == 0 else '600 W'}" for n, moment in enumerate(TIMED)]

    read = reading(text_file("\n".join(["timestamp, index, power.draw [W]", *rows])), context_of("steps.csv"))

    assert read.points[0].power.mean_w == 600.0
    assert "3 samples could not be read and are left out" in read.doubts


def test_a_header_that_comes_again_is_no_sample() -> None:
    header = "timestamp, index, power.draw [W]"
    rows = [f"{moment}, 0, 600 W" for moment in TIMED]

    (point,) = reading(text_file("\n".join([header, *rows[:15], header, *rows[15:]])), context_of("steps.csv")).points

    assert point.power.mean_w == 600.0


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("2026/11/20 10:00:10.000, 0, nan W", "power.draw: expected a number of at least 0, found `nan`"),
        ("2026/11/20 10:00:10.000, 0, -600 W", "found `-600`"),
        ("2026/11/20 10:00:10.000, 0, 1e999 W", "found `1e999`"),
        ("2026/11/20 10:00:10.000, 0", "expected 3 cells, found 2"),
        ("sometime, 0, 600 W", "timestamp: expected a time, found `sometime`"),
    ],
)
def test_a_damaged_row_is_refused_with_its_line(row: str, what: str) -> None:
    with pytest.raises(InputFileError) as caught:
        reading(text_file(f"timestamp, index, power.draw [W]\n{row}\n", "power.csv"), context_of("steps.csv"))
    assert str(caught.value).startswith("power.csv:2: ")
    assert what in str(caught.value)

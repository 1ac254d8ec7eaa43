"""The parameters: plausible, sourced, found by the most specific name."""

from __future__ import annotations

import csv
import math
import re

import pytest

from planner.rates.parameters import Z90, load_parameters, parameter
from planner.rows import CATALOG

ROWS = tuple(load_parameters().values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_parameter_lies_in_its_range_and_says_where_it_comes_from(row):
    assert row.low <= row.value <= row.high
    assert len(row.source) > 5
    assert len(row.meaning) > 5
    assert re.fullmatch(r"20\d\d(-\d\d-\d\d)?", row.date)


@pytest.mark.parametrize("row", [r for r in ROWS if r.unit == "ratio"], ids=lambda row: row.id)
def test_no_ratio_hides_a_slip_of_units(row):
    assert 0 <= row.value <= 3
    # Winograd's transforms save products: only convolutions can beat the rate of matrix products
    if re.search("efficiency|bandwidth|overlap|power_", row.id) and not row.id.startswith("conv_"):
        assert row.value <= 1


def test_ids_are_unique():
    with (CATALOG / "parameters.csv").open(encoding="utf-8", newline="") as lines:
        ids = [line["id"] for line in csv.DictReader(lines)]

    assert len(ids) == len(set(ids)) == len(ROWS)


def test_the_range_of_90_percent_gives_the_spread_of_the_logarithm():
    row = parameter("hop_latency_s")

    assert math.exp(2 * Z90 * row.log_sd) == pytest.approx(row.high / row.low)
    assert pytest.approx(1.6449, abs=1e-4) == Z90  # 95th percentile of the standard normal


def test_where_the_low_end_is_nothing_the_upper_half_gives_the_spread():
    row = parameter("evaluation_share")

    assert row.low == 0
    assert row.value * math.exp(Z90 * row.log_sd) == pytest.approx(row.high)


def test_the_most_specific_row_is_found():
    assert parameter("matmul_efficiency", "fp8", "Hopper").id == "matmul_efficiency.fp8.Hopper"
    assert parameter("matmul_efficiency", "fp32", "Hopper").id.startswith("matmul_efficiency.")
    assert parameter("fusion", "eager").id == "fusion.eager"
    assert parameter("kernel_s", "no such qualifier").id == "kernel_s"


def test_a_missing_row_is_named():
    with pytest.raises(KeyError, match="no_such_parameter"):
        parameter("no_such_parameter", "Hopper")

"""The fit: how parameters move, how rows weigh, and what a summary of residuals says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.calibration.fit import describe, moved
from planner.evidence import EvidenceKind
from planner.rates.parameters import Parameter


def parameter(name: str, value: float, low: float, high: float) -> Parameter:
    return Parameter(
        id=name, value=value, low=low, high=high, unit="ratio", meaning="", kind=EvidenceKind.ASSUMED, source="",
        date="2026-11-21",
    )  # fmt: skip


def test_a_time_moves_by_the_factor_of_its_shift():
    latency = parameter("nic_latency_s", 3e-5, 1e-5, 9e-5)

    assert moved(latency, math.log(2.0)) == pytest.approx(6e-5)


@pytest.mark.parametrize("name", ["matmul_efficiency.Hopper", "overlap_dp.tuned", "nic_efficiency"])
def test_a_share_bends_towards_one_and_never_reaches_it(name):
    share = parameter(name, 0.8, 0.7, 0.9)

    # e^0.5 x 0.8 would be 1.32; the odds of 0.8, which are 4, grow by e^(0.5 / 0.2) = 12.18 instead
    assert moved(share, 0.5) == pytest.approx(48.73 / 49.73, rel=1e-4)
    assert moved(share, 5.0) < 1.0
    assert moved(share, 0.001) / 0.8 == pytest.approx(math.exp(0.001), rel=1e-5)


def test_a_summary_gives_weighted_median_ninetieth_percentile_and_bias():
    residual = np.log([1.1, 0.9, 1.3, 1.0, 1.2])

    summary = describe(residual, np.ones(5))

    assert summary == pytest.approx({"n": 5, "median_abs_error": 0.1, "p90_abs_error": 0.3, "bias": 0.1})

"""A calibration: the range that a fitted parameter gets, and which rows each kind of fit takes."""

from __future__ import annotations

import math

import pytest

from planner.calibration.run import posterior
from planner.evidence import EvidenceKind
from planner.rates.parameters import Z90, Parameter


def parameter(name: str, value: float, low: float, high: float) -> Parameter:
    return Parameter(
        id=name, value=value, low=low, high=high, unit="ratio", meaning="", kind=EvidenceKind.ASSUMED, source="",
        date="2026-11-21",
    )  # fmt: skip


def test_a_fitted_range_is_never_narrower_than_half_of_its_prior():
    prior = parameter("nic_latency_s", 1.0, math.exp(-Z90 * 0.4), math.exp(Z90 * 0.4))

    sure, unsure = (posterior(prior, 0.0, sd, share=False) for sd in (0.01, 0.3))

    assert sure.log_sd == pytest.approx(0.2)  # half of 0.4
    assert unsure.log_sd == pytest.approx(0.3)


def test_a_fitted_value_moves_with_its_range():
    prior = parameter("nic_latency_s", 2.0, 1.0, 4.0)

    fitted = posterior(prior, math.log(1.5), 0.5, share=False)

    assert fitted.value == pytest.approx(3.0)
    assert fitted.low == pytest.approx(3.0 * math.exp(-Z90 * 0.5))
    assert fitted.high == pytest.approx(3.0 * math.exp(Z90 * 0.5))

"""Goodput: Young's interval, the published rates of large jobs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.failures import load_failures
from planner.goodput import goodput_ratio
from tests.planner.build import ROUNDING, cluster, mid_rates, plain_rates, recipe

H100 = mid_rates(recipe(), cluster())


def test_llama_3_on_16384_gpus_trains_more_than_90_percent_of_the_time():
    # arXiv 2407.21783: 419 unexpected interruptions in 54 days; effective training time above 90 %
    assert pytest.approx(419 / (16384 * 54 * 24), rel=0.01) == H100.mtbf_failures_per_gpu_h
    assert load_failures()["llama3-effective-time"].ratio == 0.9
    assert 0.90 < float(goodput_ratio(np.array([16384.0]), H100)[0]) < 0.95


def test_a_single_node_hardly_notices():
    rates = replace(H100, evaluation_share=0.0)

    assert 0.995 < float(goodput_ratio(np.array([8.0]), rates)[0]) < 1


@given(stall=st.floats(1, 300), mtbf_h=st.floats(1, 10_000), restart=st.floats(0, 3600))
def test_no_other_checkpoint_interval_loses_less(stall, mtbf_h, restart):
    rates = plain_rates(checkpoint_s=stall, mtbf_failures_per_gpu_h=1 / mtbf_h, restart_s=restart)
    ours = float(goodput_ratio(np.array([1.0]), rates)[0])

    def at(interval_s: float) -> float:
        lost = stall / interval_s + (restart + interval_s / 2) / (mtbf_h * 3600)
        return 1 / (1 + lost)

    best = math.sqrt(2 * stall * mtbf_h * 3600)  # Young 1974
    assert ours == pytest.approx(at(best), rel=1e-12)
    assert all(ours >= at(best * factor) for factor in (0.1, 0.5, 0.9, 1.1, 2, 10))


def test_evaluation_and_start_up_come_on_top():
    rates = plain_rates(evaluation_share=0.02)

    assert float(goodput_ratio(np.array([64.0]), rates)[0]) == pytest.approx(1 / 1.02, rel=1e-3)


@given(fewer=st.integers(1, 100_000), more=st.integers(1, 100_000))
def test_more_gpus_never_lose_less_to_failures(fewer, more):
    low, high = (float(goodput_ratio(np.array([float(n)]), H100)[0]) for n in sorted((fewer, more)))

    assert 0 < high <= low * ROUNDING <= ROUNDING


def test_stops_lengthen_a_run_and_never_shorten_it():
    draws = np.array([0.5, 1.0, 1.7])
    found = goodput_ratio(np.array([8.0]), replace(H100, stops=draws))
    plain = float(goodput_ratio(np.array([8.0]), H100)[0])

    assert list(found) == pytest.approx([plain, plain, plain / 1.7])

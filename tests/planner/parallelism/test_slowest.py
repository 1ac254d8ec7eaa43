from __future__ import annotations

import numpy as np
import pytest

from planner.parallelism.slowest import busiest_ratio, expected_max
from tests.planner.build import shape

MOE = shape(experts=128, top_k=8, expert_ffn=768)


def busiest(ep: int, sd: float, model=MOE) -> float:
    return float(np.ravel(busiest_ratio(model, np.array([ep]), sd))[0])


@pytest.mark.parametrize(
    ("gpus", "expected"), [(1, 0), (2, 0.564), (8, 1.424), (100, 2.508), (1000, 3.241), (10000, 3.852)]
)
def test_the_slowest_of_n_gpus_is_the_largest_of_n_normal_draws(gpus, expected):
    # Harter 1961, expected values of normal order statistics
    assert float(expected_max(np.array([float(gpus)]))[0]) == pytest.approx(expected, abs=0.1)


def test_every_gpu_more_makes_the_slowest_slower():
    spread = [float(expected_max(np.array([float(n)]))[0]) for n in range(1, 5000)]

    assert spread == sorted(spread)


def test_a_gpu_that_holds_all_experts_is_as_busy_as_any():
    assert busiest(1, 0.3) == 1.0


def test_the_busiest_of_more_gpus_that_hold_fewer_experts_has_more_tokens():
    ratios = [busiest(ep, 0.1) for ep in (1, 2, 8, 32, 128)]

    assert ratios == sorted(ratios)
    assert busiest(8, 0.2) - 1 == pytest.approx(2 * (busiest(8, 0.1) - 1))


@pytest.mark.parametrize("ep", [8, 32])
def test_the_busiest_gpu_has_what_drawing_the_loads_of_its_experts_gives(ep):
    loads = np.random.default_rng(1).normal(1.0, 0.2, (4000, 128))
    ranks = loads.reshape(4000, ep, -1).mean(axis=2) / loads.mean(axis=1, keepdims=True)

    assert busiest(ep, 0.2) == pytest.approx(ranks.max(axis=1).mean(), abs=0.02)


def test_a_dense_model_has_no_busiest_gpu():
    assert busiest(1, 0.3, shape()) == 1.0

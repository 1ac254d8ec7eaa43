"""A layer is planted whose input FP8 with one scale per tensor cannot hold: it must be found, and kept high."""

from __future__ import annotations

import math
import time

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.policy import order_of, policy  # noqa: E402 - it needs torch
from probes.numerics.instruments.sensitivity import (  # noqa: E402
    Bench,
    Turned,
    by_halving,
    damage,
    one_at_a_time,
    sensitivity,
)
from probes.numerics.instruments.time import OutOfTimeError, Slice, keep_nothing  # noqa: E402
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from tests.probes.numerics.planted import PLACE, task_with_a_sensitive_layer  # noqa: E402

PLANTED = "layer2"


def ample() -> Slice:
    return Slice(ends=time.monotonic() + 20.0)


def test_the_planted_layer_is_found_one_at_a_time_and_the_policy_keeps_it_high():
    task, recipe = task_with_a_sensitive_layer(), lower_by_id("fp8")

    found, bench = sensitivity(task, PLACE, recipe, ample(), keep_nothing)
    advice = policy(bench, found, 0.005, ample(), keep_nothing)

    assert found["method"] == "one at a time"
    assert found["layers"][0]["layers"] == (PLANTED,)
    others = [row["loss_change"] for row in found["layers"][1:]]
    assert found["layers"][0]["loss_change"] > 5.0 * max(abs(change) for change in others)
    assert advice["keep_high"] == [PLANTED]
    assert advice["loss_change"] <= 0.005 < advice["all_lowered_loss_change"]
    assert advice["lowered_parameters_ratio"] == pytest.approx(0.75)


def test_halving_finds_it_too_with_fewer_runs():
    bench = Bench(task_with_a_sensitive_layer(), PLACE, lower_by_id("fp8"), warm_steps=5)
    names = list(bench.kinds)
    base = bench.turned((), 20, None).loss

    found = by_halving(names, lambda layers: bench.turned(layers, 20, base))

    worst = max(found, key=damage)
    assert worst.layers == (PLANTED,)


def a_measure(bad: set[int], limit: int = 10**6):
    """Damage of numbered layers, for as many measurements as there is time."""
    calls: list[tuple[str, ...]] = []

    def measure(layers: object) -> Turned:
        if len(calls) == limit:
            raise OutOfTimeError
        calls.append(tuple(layers))  # type: ignore[arg-type]
        hurt = float(sum(int(layer) in bad for layer in calls[-1]))
        return Turned(layers=calls[-1], loss=hurt, loss_change=hurt, gradient_error_ratio=hurt)

    return measure, calls


def test_halving_needs_far_fewer_measurements_to_reach_the_worst_layer():
    names = [str(number) for number in range(64)]
    measure, calls = a_measure({37}, limit=14)

    found = by_halving(names, measure)

    assert max(found, key=damage).layers == ("37",)
    assert len(calls) == 14
    assert sorted(int(name) for row in found for name in row.layers) == list(range(64))


def test_one_at_a_time_stops_with_what_it_has():
    measure, _ = a_measure({2}, limit=3)

    assert [row.layers for row in one_at_a_time(["0", "1", "2", "3"], measure)] == [("0",), ("1",), ("2",)]


def test_a_run_that_breaks_down_is_the_worst():
    broken = Turned(layers=("a",), loss=None, loss_change=None, gradient_error_ratio=None)

    assert damage(broken) == math.inf
    assert order_of([{"layers": ["b"], "loss_change": 0.1}, {"layers": ["a"], "loss_change": None}]) == ["a", "b"]


def test_without_time_nothing_is_claimed():
    found, bench = sensitivity(
        task_with_a_sensitive_layer(), PLACE, lower_by_id("fp8"), Slice(ends=time.monotonic() - 1.0), keep_nothing
    )

    assert (found["layers"], bench) == ([], None)
    advice = policy(bench, found, 0.02, ample(), keep_nothing)
    assert advice["words"].startswith("unknown")
    assert advice["keep_high"] == []

"""A layer is planted whose input FP8 with one scale per tensor cannot hold: it must be found, and kept high."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.policy import order_of, policy  # noqa: E402
from probes.numerics.instruments.sensitivity import (  # noqa: E402
    by_halving,
    damage,
    errors_only,
    notes,
    one_at_a_time,
    planned,
    ranked,
    sensitivity,
    words,
)
from probes.numerics.instruments.time import OutOfTimeError, Plain, TimeBudget  # noqa: E402
from probes.numerics.instruments.warm_starts import Turned, WarmStarts  # noqa: E402 - it needs torch
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from probes.numerics.tasks import find_task  # noqa: E402
from tests.probes.numerics.planted import PLACE, ample, keep_nothing, task_with_a_sensitive_layer  # noqa: E402

PLANTED = "layer2"


PLAN = {"method": "one at a time", "seeds": 3, "warm_steps": 20, "steps": 60, "trained": 4, "run_s": 0.0}
"""The same on every machine, whatever a step takes there."""


def keep_the_plan(key: str, compute: Callable[[], Plain]) -> Plain:
    """Computes all but the plan."""
    return PLAN if key == "plan" else compute()


def test_the_planted_layer_is_found_one_at_a_time_and_the_policy_keeps_it_high():
    task, recipe = task_with_a_sensitive_layer(), lower_by_id("fp8")

    answer, warm_starts = sensitivity(task, PLACE, recipe, ample(), keep_the_plan)
    advice = policy(warm_starts, answer, 0.005, ample(), keep_nothing)

    assert answer["method"] == "one at a time"
    assert (answer["seeds"], answer["steps"]) == (3, 60)
    worst, *others = answer["layers"]
    assert worst["layers"] == (PLANTED,)
    assert worst["told_from_next"]
    trained = [row for row in others if row["seeds"]]
    assert trained
    assert worst["loss_change_low"] > 5.0 * max(abs(row["loss_change"]) for row in trained)
    assert answer["words"].startswith(f"{PLANTED} suffers most; lowering one layer alone raises the loss: {PLANTED}")
    assert (answer["repeat_error_ratio"], answer["notes"]) == (0.0, [])
    assert (advice["verdict"], advice["keep_high"]) == ("within", [PLANTED])
    assert advice["loss_change_high"] <= 0.005 < advice["all_lowered_loss_change_low"]
    assert advice["lowered_parameters_ratio"] == pytest.approx(0.75)
    assert {answer[name] == advice[name] for name in ("baseline", "start", "warm_steps", "steps", "seeds")} == {True}


def test_halving_finds_it_too_with_fewer_runs():
    warm_starts = WarmStarts(task_with_a_sensitive_layer(), PLACE, lower_by_id("fp8"))
    warm_starts.start_from(seeds=3, warm_steps=5)

    rows = by_halving(
        list(warm_starts.kinds),
        lambda layers: errors_only(layers, [warm_starts.of(seed).gradient_error(layers) for seed in range(3)]),
    )

    assert max(rows, key=damage).layers == (PLANTED,)


def test_the_layers_of_a_network_that_differ_little_cannot_be_told_apart_and_no_order_is_claimed():
    """The first figures of three seeds each: the ranks change from seed to seed, as those of losses did."""
    rows = ranked([errors_only(("a",), (0.05, 0.03, 0.06)), errors_only(("b",), (0.03, 0.06, 0.04)),
                   errors_only(("c",), (0.002, 0.001, 0.003))])  # fmt: skip

    assert [row.layers[0] for row in rows] == ["a", "b", "c"]
    assert [row.told_from_next for row in rows] == [False, True, None]
    assert words(rows).startswith("the worst 2 of 3 cannot be told apart; what one layer does to the loss was not")
    assert words(rows[1:]).startswith("b suffers most")


def test_a_layer_whose_gradient_is_not_finite_comes_first():
    rows = ranked([errors_only(("a",), (0.05, 0.03)), errors_only(("b",), (0.03, None))])

    assert [(row.layers, row.told_from_next) for row in rows] == [(("b",), True), (("a",), None)]


def test_what_does_not_repeat_itself_is_told():
    assert notes(0.0) == []
    assert notes(1e-7) == []  # kernels of a GPU that add in any order
    assert "changes by 0.65 of itself" in notes(0.65)[0]
    assert "is not finite" in notes(None)[0]


@pytest.mark.parametrize(
    ("left_s", "layers", "expected"),
    [(15.0, 16, (3, 0, "one at a time")), (400.0, 16, (5, 16, "one at a time")), (27.0, 6, (3, 4, "one at a time")),
     (15.0, 400, (3, 0, "groups, halved"))],
)  # fmt: skip
def test_time_goes_to_seeds_first_then_to_the_losses_of_single_layers(left_s, layers, expected):
    plan = planned(0.04, 0.06, layers, left_s)

    assert (plan["seeds"], plan["trained"], plan["method"]) == expected
    steps_s = plan["seeds"] * plan["steps"] * (0.04 + 0.06 + plan["trained"] * 0.05)
    warm_s, gradients_s = plan["seeds"] * plan["warm_steps"] * 0.04, plan["seeds"] * (layers + 2) * 0.05
    assert plan["steps"] >= 8
    assert steps_s + warm_s + min(gradients_s, 0.4 * left_s) <= 0.9 * left_s + 1e-9


def test_the_worst_layer_of_a_decoder_is_the_same_whatever_the_seed():
    warm_starts = WarmStarts(find_task("char-lm"), PLACE, lower_by_id("nvfp4"))
    warm_starts.start_from(seeds=3, warm_steps=5)

    worst = {
        max(warm_starts.kinds, key=lambda layer: warm_starts.of(seed).gradient_error((layer,)) or math.inf)
        for seed in range(3)
    }

    assert len(worst) == 1


def a_measure(bad: set[int], limit: int = 10**6):
    """Damage of numbered layers, for as many measurements as there is time."""
    calls: list[tuple[str, ...]] = []

    def measure(layers: object) -> Turned:
        if len(calls) == limit:
            raise OutOfTimeError
        calls.append(tuple(layers))  # type: ignore[arg-type]
        hurt = float(sum(int(layer) in bad for layer in calls[-1]))
        return errors_only(calls[-1], (hurt, hurt))

    return measure, calls


def test_halving_needs_far_fewer_measurements_to_reach_the_worst_layer():
    names = [str(number) for number in range(64)]
    measure, calls = a_measure({37}, limit=14)

    rows = by_halving(names, measure)

    assert max(rows, key=damage).layers == ("37",)
    assert len(calls) == 14
    assert sorted(int(name) for row in rows for name in row.layers) == list(range(64))


def test_one_at_a_time_stops_with_what_it_has():
    measure, _ = a_measure({2}, limit=3)

    assert [row.layers for row in one_at_a_time(["0", "1", "2", "3"], measure)] == [("0",), ("1",), ("2",)]


def test_a_gradient_that_breaks_down_is_the_worst():
    assert damage(errors_only(("a",), (None, 0.1))) == math.inf
    rows = [{"layers": ["b"], "gradient_error_ratio": 0.1}, {"layers": ["a"], "gradient_error_ratio": None}]
    assert order_of(rows) == ["a", "b"]


def test_without_time_nothing_is_claimed():
    answer, warm_starts = sensitivity(
        task_with_a_sensitive_layer(), PLACE, lower_by_id("fp8"), TimeBudget(end_s=time.monotonic() - 1.0), keep_nothing
    )

    assert (answer["layers"], warm_starts, answer["cut_short"]) == ([], None, ["no time was left"])
    advice = policy(warm_starts, answer, 0.02, ample(), keep_nothing)
    assert (advice["verdict"], advice["words"][:7]) == ("not_run", "unknown")
    assert advice["keep_high"] == []

"""How many layers to keep: the fewest whose runs stay within the margin."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.policy import Tried, policy  # noqa: E402 - it needs torch
from probes.numerics.instruments.sensitivity import sensitivity  # noqa: E402
from probes.numerics.instruments.time import Plain, TimeBudget  # noqa: E402
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from tests.probes.numerics.planted import PLACE, ample, keep_nothing, task_with_a_sensitive_layer  # noqa: E402

PLAN = {"method": "one at a time", "seeds": 3, "warm_steps": 5, "steps": 50, "trained": 2, "run_s": 0.0}
"""Of few short runs, whatever time there is."""


def keep_the_plan(key: str, compute: Callable[[], Plain]) -> Plain:
    """Computes all but the plan."""
    return PLAN if key == "plan" else compute()


@pytest.fixture(scope="module")
def measured():
    return sensitivity(
        task_with_a_sensitive_layer(),
        PLACE,
        lower_by_id("fp8"),
        ample(),
        keep_the_plan,
    )


def test_a_wide_margin_keeps_no_layer_and_a_margin_of_nothing_keeps_all(measured):
    answer, warm_starts = measured

    wide = policy(warm_starts, answer, 1e6, ample(), keep_nothing)
    narrow = policy(warm_starts, answer, -1.0, ample(), keep_nothing)

    assert (wide["verdict"], wide["keep_high"]) == ("within", [])
    assert wide["words"].startswith("all 4 layers")
    assert (narrow["verdict"], len(narrow["keep_high"])) == ("none_within", 4)
    assert narrow["words"].startswith("no layer")
    assert narrow["loss_change"] == 0.0


def test_the_usual_policy_is_measured_beside_it(measured):
    answer, warm_starts = measured

    advice = policy(warm_starts, answer, 0.005, ample(), keep_nothing)

    assert set(advice["usual"]["layers"]) == {"layer0", "layer1", "layer2"}  # the last stays high
    assert advice["usual"]["loss_change_low"] > advice["loss_change_high"]


@pytest.mark.parametrize(
    ("low", "high", "diverged", "within", "beyond"),
    [(-0.01, 0.019, 0, True, False), (-0.02, 0.06, 0, False, False), (0.021, 0.06, 0, False, True),
     (None, None, 1, False, True), (None, None, 0, False, False)],
)  # fmt: skip
def test_a_policy_is_accepted_by_the_upper_end_of_its_interval_alone(low, high, diverged, within, beyond):
    middle = None if low is None or high is None else (low + high) / 2.0
    tried = Tried(
        keep_high=0, seeds=3, diverged=diverged, loss_change=middle, loss_change_low=low, loss_change_high=high
    )

    assert (tried.is_within(0.02), tried.is_beyond(0.02)) == (within, beyond)


def test_noise_that_reaches_over_the_margin_recommends_nothing(measured):
    answer, warm_starts = measured
    noisy = {"loss_change": 0.014, "loss_change_low": -0.08, "loss_change_high": 0.11, "seeds": 3, "diverged": 0}
    answer = answer | {"all_lowered": noisy}

    advice = policy(warm_starts, answer, 0.02, TimeBudget(end_s=time.monotonic() - 1.0), keep_nothing)

    assert (advice["verdict"], advice["keep_high"], advice["lowered_parameters_ratio"]) == ("cannot_tell", [], None)
    assert advice["words"].startswith("cannot be told")
    assert "-0.080 to +0.110" in advice["words"]
    assert advice["cut_short"]

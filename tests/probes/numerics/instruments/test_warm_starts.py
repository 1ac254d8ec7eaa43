"""Warm starts: equal for each seed, and changes of a loss with their interval."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.instruments.warm_starts import WarmStart, WarmStarts, change_of  # noqa: E402 - it needs torch
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from tests.probes.numerics.planted import PLACE, task_with_a_sensitive_layer  # noqa: E402
from tests.probes.numerics.test_training import with_dropout  # noqa: E402


def test_fp32_against_itself_changes_nothing_with_dropout_either():
    warm_start = WarmStart(with_dropout(), PLACE, lower_by_id("fp8"), warm_steps=5)

    losses = {warm_start.train((), 20)["loss"] for _ in range(4)}

    assert len(losses) == 1
    assert warm_start.gradient_error(()) == 0.0
    assert warm_start.gradient_error(("0",)) > 0.0


def test_every_seed_has_a_start_of_its_own_and_keeps_it():
    warm_starts = WarmStarts(task_with_a_sensitive_layer(), PLACE, lower_by_id("fp8"))
    warm_starts.start_from(seeds=2, warm_steps=5)

    first = warm_starts.of(0).train((), 10)
    other = warm_starts.of(1).train((), 10)

    assert first["loss"] != other["loss"]
    assert warm_starts.of(0).train((), 10) == first
    assert warm_starts.recipe_policy == ("layer0", "layer1", "layer2")
    assert warm_starts.sizes == {f"layer{number}": 32 * 32 + 32 for number in range(4)}


def test_a_change_is_paired_by_seed_and_has_the_interval_of_its_pairs():
    change = change_of([1.01, 2.00, 3.02, 4.01], [1.0, 2.01, 3.0, 4.01], margin=0.05)

    # differences 0.01, -0.01, 0.02, 0: mean 0.005, and 2.3534 errors of 0.006455 to either side
    assert change["loss_change"] == pytest.approx(0.005)
    assert (change["loss_change_low"], change["loss_change_high"]) == pytest.approx((-0.010191, 0.020191), abs=1e-5)
    assert (change["seeds"], change["diverged"], change["verdict"]) == (4, 0, "equivalent")


def test_a_run_without_a_finite_loss_has_diverged_and_a_broken_baseline_is_left_out():
    change = change_of([None, 1.0, 1.0], [1.0, None, 1.0])

    assert (change["seeds"], change["diverged"], change["loss_change"]) == (2, 1, None)
    assert change["verdict"] == "not_equivalent"
    assert change_of([], [])["loss_change"] is None

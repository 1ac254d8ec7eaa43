"""The loss scalers: PyTorch's row is what torch has."""

from __future__ import annotations

import pytest

from planner.training.loss_scalers import load_loss_scalers, loss_scaler_of
from planner.training.recipe import STACKS


def test_pytorchs_row_is_the_default_of_the_installed_torch():
    torch = pytest.importorskip("torch")
    scaler, row = torch.amp.GradScaler("cpu"), load_loss_scalers()["pytorch"]

    assert (row.initial_scale, row.growth_factor) == (scaler.get_scale(), scaler.get_growth_factor())
    assert (row.backoff_factor, row.growth_interval_steps) == (
        scaler.get_backoff_factor(),
        scaler.get_growth_interval(),
    )


def test_every_scaler_grows_and_backs_off():
    for row in load_loss_scalers().values():
        assert row.growth_factor > 1 > row.backoff_factor > 0


@pytest.mark.parametrize(
    ("stack", "scaler", "skipped"),
    [
        ("eager", "pytorch", 1 / 2001),
        ("fsdp-compile", "pytorch", 1 / 2001),
        ("classic", "deepspeed", 2 / 1002),
        ("typical", "megatron", 2 / 1002),
        ("tuned", "megatron", 2 / 1002),
    ],
)
def test_each_stack_has_one_scaler_and_its_hysteresis_costs_a_step_for_each_overflow(stack, scaler, skipped):
    assert loss_scaler_of(stack).id == scaler
    assert loss_scaler_of(stack).steady_skipped_step_ratio == pytest.approx(skipped, rel=1e-12)
    assert [row.id for row in load_loss_scalers().values() if stack in row.stacks] == [scaler]


def test_no_stack_is_without_a_scaler():
    assert {stack for row in load_loss_scalers().values() for stack in row.stacks} == set(STACKS)


def test_a_scale_that_is_played_through_skips_what_the_arithmetic_says():
    """Megatron-Core's rule, step by step, with gradients that overflow above one scale."""
    row = load_loss_scalers()["megatron"]
    limit, scale, good, left, skipped, steps = 2.0**16, 2.0**16, 0, row.hysteresis, 0, 100 * 1002
    for _ in range(steps):
        if scale > limit:
            good, left, skipped = 0, left - 1, skipped + 1
            scale *= row.backoff_factor if left <= 0 else 1.0
        else:
            good += 1
            if good == row.growth_interval_steps:
                good, left, scale = 0, row.hysteresis, scale * row.growth_factor

    assert skipped / steps == pytest.approx(row.steady_skipped_step_ratio, rel=1e-12)

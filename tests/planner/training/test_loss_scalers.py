"""The loss scalers: PyTorch's row is what torch has."""

from __future__ import annotations

import pytest

from planner.training.loss_scalers import load_loss_scalers


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

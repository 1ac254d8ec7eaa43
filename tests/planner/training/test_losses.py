"""Published differences of the loss, as their source states them."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.rows import CATALOG, Catalogue
from planner.training.losses import _row, published_loss, published_rates


def test_a_difference_is_quoted_with_the_model_the_steps_and_what_it_was_held_against():
    # pytorch/ao#4798, experiment 1: 16B, 1,500 steps, NVFP4 +0.050 nats, MXFP8 +0.010 nats against BF16
    nvfp4, mxfp8 = published_loss("nvfp4"), published_loss("mxfp8")

    assert nvfp4 is not None
    assert mxfp8 is not None
    assert (nvfp4.loss_difference, nvfp4.baseline, nvfp4.params, nvfp4.steps) == (0.050, "bf16", 16e9, 1500)
    assert (mxfp8.loss_difference, mxfp8.rate_gain_ratio) == (0.010, -0.078)
    assert nvfp4.source == "https://github.com/pytorch/ao/pull/4798"


def test_the_speed_of_another_model_is_not_taken_for_that_of_the_one_whose_loss_was_compared():
    # experiment 3: 671B on 64 GB300, 37.6 % more throughput at 16.6 % less power, no loss compared
    (fast,) = published_rates("nvfp4")

    assert (fast.rate_gain_ratio, fast.power_gain_ratio, fast.loss_difference) == (0.376, -0.166, None)


def test_a_precision_of_which_nobody_published_has_none():
    assert published_loss("fp8") is None


def test_a_difference_without_its_metric_is_refused(tmp_path):
    lines = (CATALOG / "precision_losses.csv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "losses.csv"
    path.write_text("\n".join([lines[0], lines[1].replace(",loss,", ",,")]), encoding="utf-8")

    with pytest.raises(InputFileError, match=r"losses.csv:2: metric: expected `loss` where there is a difference"):
        dict(Catalogue(path, _row).by_id)

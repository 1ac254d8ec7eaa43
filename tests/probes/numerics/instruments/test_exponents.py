"""Histograms of training: what the hooks see is what a hand-made backward pass gives."""

from __future__ import annotations

import math
import time

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.formats.histogram import magnitudes  # noqa: E402 - it needs torch
from probes.numerics.instruments.exponents import (  # noqa: E402
    TENSORS,
    LayerObserver,
    described,
    histograms,
    loss_scale,
    observe,
)
from probes.numerics.instruments.scaling import static_scale  # noqa: E402
from probes.numerics.instruments.time import TimeBudget  # noqa: E402
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from probes.numerics.tasks import find_task  # noqa: E402
from probes.numerics.training import Run  # noqa: E402
from tests.probes.numerics.planted import PLACE, ample, keep_nothing, task_of  # noqa: E402


@pytest.mark.parametrize(("gradient", "flushed"), [(2.0**-24, 0.0), (2.0**-25, 1.0), (2.0**-30, 1.0)])
def test_a_gradient_of_known_size_has_the_flushed_share_that_it_must(gradient, flushed):
    run = Run(task_of(gradient), 0, PLACE)
    observer = LayerObserver(run)

    observer.step()
    observer.close()

    (layer,) = described_layers(observer)
    for tensor in ("gradients", "weight_gradients"):
        assert layer[tensor]["least_exponent"] == math.log2(gradient)
        assert layer[tensor]["formats"]["fp16"]["flushed_ratio"] == flushed  # 2^-24 is the smallest FP16 number


def described_layers(observer: LayerObserver) -> list[dict[str, dict[str, object]]]:
    return [
        {name: described(counts) for name, counts in layer.histograms.items()} for layer in observer.layers.values()
    ] or [{}]


def test_an_observed_step_counts_each_tensor_once_and_leaves_no_hook():
    run = Run(find_task("char-lm"), 0, PLACE)
    observer, taken = observe(run, 1, TimeBudget(end_s=math.inf))

    layer = observer.layers["blocks.0.mlp.up"]
    assert taken == 1
    assert layer.histograms["activations"].total == layer.histograms["gradients"].total == 8 * 64 * 256
    assert layer.histograms["weights"].total == layer.histograms["weight_gradients"].total == 64 * 256 + 256
    assert all(not module._forward_hooks for module in run.switches.layers.values())
    weights = torch.cat([p.flatten() for p in run.switches.layers["blocks.0.mlp.up"].parameters()])
    assert layer.histograms["weights"].octaves() == magnitudes(weights).octaves()


def test_an_update_below_half_a_unit_of_bf16_is_swallowed_and_a_larger_one_is_not():
    def swallowed(gradient: float) -> list[int]:
        run = Run(task_of(gradient), 0, PLACE)
        with torch.no_grad():
            run.job.model.weight.fill_(1.5)
        observer = LayerObserver(run)
        observer.step()  # clipped to a norm of 1 and SGD at 0.1: the update is a tenth of the gradient
        observer.close()
        return next(iter(observer.layers.values())).swallowed["bf16"]

    assert swallowed(2.0**-8 * 10 * 0.9) == [1, 1]  # the next BF16 number above 1.5 is 2^-7 away
    assert swallowed(2.0**-8 * 10 * 1.1) == [0, 1]


def test_the_share_of_swallowed_updates_is_of_updates_not_of_tensors():
    """Rows of a table that no batch names have no update: they count neither as swallowed nor as kept."""
    run = Run(find_task("char-lm"), 0, PLACE)
    before = [parameter.detach().clone() for parameter in run.parameters]
    observer = LayerObserver(run)
    observer.step()
    observer.close()

    pairs = list(zip(before, run.parameters, strict=True))
    asked = sum(int((old != new).sum()) for old, new in pairs)
    kept = sum(
        int(((old != new) & ((old.bfloat16() + (new - old)).bfloat16() == old.bfloat16())).sum()) for old, new in pairs
    )
    counted = [layer.swallowed["bf16"] for layer in observer.layers.values()]
    assert [sum(column) for column in zip(*counted, strict=True)] == [kept, asked]


@pytest.mark.parametrize(("limit", "power"), [(None, 13), (20, 13), (10, 9)])
def test_a_recommended_scale_has_room_above_the_largest_gradient_and_below_the_limit(limit, power):
    gradients = magnitudes(torch.tensor([1.0, 2.0**-37, 2.0**-39]))  # 1 overflows at 2^16, and two octaves stay free

    recommended = loss_scale(gradients, limit)

    assert (recommended["scale_log2"], recommended["limit_log2"]) == (power, limit)
    assert recommended["flushed_ratio"] == pytest.approx(2 / 3 if power == 9 else 1 / 3)


@pytest.fixture
def ten_steps(monkeypatch):
    """Of a run, whatever time there is: every second one is looked at."""
    monkeypatch.setattr("probes.numerics.instruments.exponents.MOST_STEPS", 10)


@pytest.mark.parametrize("name", ["char-lm", "digits-vit"])
def test_the_recommended_scale_does_not_overflow(ten_steps, name):
    answer = histograms(find_task(name), PLACE, ample(), keep_nothing)
    scale = answer["overall"]["loss_scale"]["scale_log2"]
    run = Run(find_task(name), 0, PLACE)

    trained = static_scale(run, run.state(), scale, lower_by_id("fp16"))

    assert not trained.overflows
    for tensor in ("gradients", "weight_gradients"):
        assert answer["overall"]["tensors"][tensor]["formats"]["fp16"]["best_scale_log2"] == scale


def test_the_document_names_every_layer_and_tensor(ten_steps):
    answer = histograms(find_task("char-lm"), PLACE, ample(), keep_nothing)

    assert (answer["steps"], answer["cut_short"]) == (10, [])
    assert [row["layer"] for row in answer["layers"]][:3] == ["embedding", "position", "blocks.0.attention_norm"]
    assert all(set(row["tensors"]) == set(TENSORS) for row in answer["layers"])
    total = answer["overall"]["tensors"]["gradients"]
    assert sum(total["counts"]) + round(total["zeros_ratio"] * total["values"]) == total["values"]
    assert 0.0 < total["formats"]["fp16"]["flushed_ratio"] < 0.3
    by_scale = {row["scale_log2"]: row for row in answer["overall"]["gradients_by_scale"]["fp16"]}
    assert by_scale[0]["flushed_ratio"] == total["formats"]["fp16"]["flushed_ratio"]
    assert by_scale[0]["saturated_ratio"] < by_scale[40]["saturated_ratio"] <= 1.0
    assert total["formats"]["fp16"]["flushed_at_best_ratio"] < total["formats"]["fp16"]["flushed_ratio"]


def test_without_time_the_document_is_empty_and_says_so():
    answer = histograms(find_task("char-lm"), PLACE, TimeBudget(end_s=time.monotonic() - 1.0), keep_nothing)

    assert (answer["layers"], answer["cut_short"]) == ([], ["no time was left"])

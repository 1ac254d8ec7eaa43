"""Steps that were not run, from small ones: a made-up machine whose law is known is predicted exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.measured.device import measured_rates
from planner.measured.layers.steps import fit_step
from planner.measured.rates import MeasuredRates
from planner.records.measurement import Measurement
from tests.planner.recorded import H200, a_measurement, kernels

SHAPE = {"hidden": 2048, "heads": 32, "kv_heads": 8, "head_dim": 64, "ffn_hidden": 8192, "vocab": 128256}
PER_TOKEN_LAYER_S, PER_TOKEN_HEAD_S, PER_LAYER_S, PER_PARAM_S = 2e-7, 8e-7, 3e-4, 1e-11
"""The made-up machine: linear in tokens and layers, a fixed cost per layer, and one per updated parameter."""
FORWARD_ATTENTION_S, BACKWARD_ATTENTION_S = 2.0 * 32 * 64 / 400e12, 2.5 * 2.0 * 32 * 64 / 350e12
"""Per layer and squared token: as recorded.py's kernels, with heads of 64."""


def params(layers: int) -> int:
    return 60_821_504 * layers + 262_668_288


def step(
    layers: int, length: int, *, recompute: bool = False, noise: float = 0.0, slow: float = 1.0, quick: float = 1.0,
    **changes: object,
) -> Measurement:  # fmt: skip
    """A step; layers take `slow` times as long as usual, embedding and output layer `quick` times."""
    layer_s = slow * (length * PER_TOKEN_LAYER_S + PER_LAYER_S)
    forward = layers * layer_s + quick * length * PER_TOKEN_HEAD_S
    backward = 2.0 * forward + (layers * layer_s if recompute else 0.0)
    forward += layers * length**2 * FORWARD_ATTENTION_S
    backward += layers * length**2 * (BACKWARD_ATTENTION_S + (FORWARD_ATTENTION_S if recompute else 0.0))
    update = params(layers) * PER_PARAM_S
    factor = 1.0 + noise
    values: dict[str, object] = {
        "probe_id": f"end_to_end/L{layers}-s{length}{recompute}", "kind": "end_to_end", "model": "llama-llama-3.2-1b",
        "recipe": "bf16-autocast", "layers": layers, "seq_len": length, "micro_batch": 1, "tokens": length,
        "recompute": "full" if recompute else "none", "params": params(layers),
        "time_forward_median_s": forward * factor, "time_backward_median_s": backward * factor,
        "time_optimizer_median_s": update * factor, "time_median_s": (forward + backward + update) * factor,
    }  # fmt: skip
    return a_measurement(**(values | SHAPE | H200 | changes))


@pytest.fixture(scope="module")
def rates() -> MeasuredRates:
    return measured_rates(kernels())


ANCHORS = [step(2, 2048), step(4, 2048), step(2, 4096), step(4, 4096), step(2, 2048, recompute=True)]


@pytest.mark.parametrize(
    ("target", "within"),
    [
        (step(16, 2048), 0.025),
        (step(16, 8192), 0.055),
        (step(28, 4096), 0.025),
        (step(16, 4096, recompute=True), 0.025),
    ],
    ids=["deeper", "longer", "deepest", "recomputed"],
)
def test_a_deeper_or_longer_step_is_predicted_within_a_few_percent(
    target: Measurement, within: float, rates: MeasuredRates
) -> None:
    fit = fit_step(ANCHORS, rates)
    assert fit is not None

    predicted = fit.seconds(target, rates)

    assert predicted is not None
    assert predicted.total_s == pytest.approx(target.time.median_s, rel=within)


def test_an_anchor_is_met_closely(rates: MeasuredRates) -> None:
    fit = fit_step(ANCHORS, rates)
    assert fit is not None

    predicted = fit.seconds(step(4, 4096), rates)

    assert predicted is not None
    assert predicted.total_s == pytest.approx(step(4, 4096).time.median_s, rel=1e-4)


def test_the_measured_time_of_the_target_is_never_looked_at(rates: MeasuredRates) -> None:
    fit = fit_step(ANCHORS, rates)
    assert fit is not None
    blind = step(16, 2048, time_median_s=1e9, time_forward_median_s=1e9, time_backward_median_s=1e9)

    assert fit.seconds(blind, rates) == fit.seconds(step(16, 2048), rates)


def test_two_anchors_are_enough_for_depth(rates: MeasuredRates) -> None:
    fit = fit_step([step(1, 2048), step(4, 2048)], rates)
    assert fit is not None

    predicted = fit.seconds(step(16, 2048), rates)

    assert predicted is not None
    assert predicted.total_s == pytest.approx(step(16, 2048).time.median_s, rel=0.005)


def test_without_an_anchor_there_is_no_prediction(rates: MeasuredRates) -> None:
    assert fit_step([], rates) is None
    assert fit_step([step(2, 2048, status="oom", time_median_s=None, reason="x")], rates) is None


def test_without_kernels_anchors_alone_still_carry_depth() -> None:
    bare = measured_rates([a_measurement(kind="canary", probe_id="canary", **H200)])
    fit = fit_step(ANCHORS, bare)
    assert fit is not None

    predicted = fit.seconds(step(16, 2048), bare)

    assert predicted is not None
    assert predicted.total_s == pytest.approx(step(16, 2048).time.median_s, rel=0.01)


def test_beside_a_canary_a_disturbed_anchor_still_shows_the_depth(rates: MeasuredRates) -> None:
    canary = {"clock": "canary", "canary_ratio": 1.4}
    anchors = [
        step(1, 2048, quality="ok", **canary),
        step(2, 2048, quality="ok", **canary),
        step(12, 2048, quality="contended", **canary),
    ]

    fit = fit_step(anchors, rates)

    assert fit is not None
    assert anchors[2].probe_id in fit.probe_ids


def launches(launch_s: float) -> list[Measurement]:
    facts = {"kind": "launch", "recipe": None, "precision": None}
    return [
        a_measurement(probe_id=f"launch/{role}", role=role, time_median_s=seconds, **(facts | H200))
        for role, seconds in (("host", launch_s), ("graph", 2e-6))
    ]


def test_a_step_takes_as_long_as_the_host_needs_to_launch_it_where_that_is_longer() -> None:
    # 135 kernels a layer and 60 of the ends, each four times as dear as a bare one
    rates = measured_rates([*kernels(), *launches(7e-6)])
    fit = fit_step(ANCHORS, rates)
    assert fit is not None

    tiny = fit.seconds(step(16, 256), rates)

    assert tiny is not None
    assert tiny.total_s == tiny.host_s > tiny.device_s
    assert fit.host.launch_s == pytest.approx(4.0 * 7e-6)


def launched(point: Measurement, held_up: float = 1.0) -> Measurement:
    """An anchor whose host takes 2 ms for any step and 15 us for each kernel: 45 of a layer forward, 90 backward."""
    kernels = (point.shape.layers or 0) * (180 if point.setup.recompute == "full" else 135) + 60
    return replace(point, time=replace(point.time, host_median_s=held_up * (2e-3 + 15e-6 * kernels)))


def test_the_measured_time_of_the_host_is_carried_to_a_step_of_more_kernels(rates: MeasuredRates) -> None:
    fit = fit_step([launched(point) for point in ANCHORS], rates)
    assert fit is not None

    tiny = fit.seconds(step(16, 256), rates)

    assert tiny is not None
    assert (fit.host.step_s, fit.host.launch_s) == (pytest.approx(2e-3), pytest.approx(15e-6))
    assert tiny.total_s == tiny.host_s == pytest.approx(2e-3 + 15e-6 * (135 * 16 + 60))


def test_an_anchor_counts_for_the_device_although_its_host_was_held_up_once(rates: MeasuredRates) -> None:
    # As BERT on an H100: 39 ms for one launch of a step of 26, where 21 ms are usual for as many kernels
    delays = {ANCHORS[1].probe_id: 3.0}
    steps = [launched(point, delays.get(point.probe_id, 1.0)) for point in ANCHORS]

    fit = fit_step(steps, rates)

    assert fit is not None
    assert ANCHORS[1].probe_id in fit.device.forward.probe_ids


def test_depth_is_told_from_the_ends_where_layers_take_longer_than_their_kernels(rates: MeasuredRates) -> None:
    # As on an H200 in TF32: layers took 1.3 times their kernels, embedding and output layer 0.8 times.
    speeds = {"slow": 1.3, "quick": 0.8}
    fit = fit_step([step(2, 4096, **speeds), step(4, 4096, **speeds), step(2, 2048, **speeds)], rates)
    assert fit is not None
    target = step(16, 2048, **speeds)

    predicted = fit.seconds(target, rates)

    assert predicted is not None
    assert predicted.total_s == pytest.approx(target.time.median_s, rel=0.03)


def test_on_a_cpu_launches_are_part_of_the_work() -> None:
    on_cpu = [replace(point, device=replace(point.device, kind="cpu")) for point in ANCHORS]
    rates = measured_rates([*kernels(), *launches(15e-6)])
    fit = fit_step(on_cpu, rates)
    assert fit is not None

    assert fit.host.seconds(1000.0) == 0.0

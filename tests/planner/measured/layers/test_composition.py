"""Layers measured whole against the sum of their kernels."""

from __future__ import annotations

import pytest

from planner.measured.device import measured_rates
from planner.measured.layers.composition import PRIOR_SD, composed_seconds
from planner.measured.layers.phases import phase_seconds
from planner.measured.layers.workloads import work_of
from planner.measured.rates import LayerRun
from planner.records.measurement import Measurement
from tests.planner.recorded import BANDWIDTH, FIXED_S, H200, RATE, SHAPES, a_measurement, gemm, kernels


def block(layers: int, slowdown: float, **changes: object) -> Measurement:
    """A stack of 8B layers that takes `slower` times the sum of its kernels."""
    shape = {"hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn_hidden": 14336}
    values = {
        "probe_id": f"block/L{layers}", "kind": "block", "recipe": "bf16-autocast", "layers": layers, "seq_len": 8192,
        "micro_batch": 1, "tokens": 8192, "recompute": "none", "compiled": False,
    } | shape | H200 | changes  # fmt: skip
    point = a_measurement(**values)
    rates = measured_rates([*kernels(), point])
    work = work_of(point)
    assert work is not None
    composed = composed_seconds(rates, work, "bf16-autocast")
    assert composed is not None
    return a_measurement(**(values | {"time_median_s": slowdown * sum(composed)}))


def test_layers_measured_whole_against_the_sum_of_their_kernels_give_the_composition_ratio() -> None:
    ratio = measured_rates([*kernels(), block(1, 1.10), block(4, 1.10)]).composition_ratio[
        LayerRun(recipe="bf16-autocast")
    ]

    assert ratio.value == pytest.approx(1.10, rel=1e-6)
    assert ratio.relative_sd == pytest.approx(PRIOR_SD * (2 / 3) ** 0.5)  # two alike, against a prior worth two
    assert ratio.probe_ids == ("block/L1", "block/L4")


def test_a_small_layer_that_waits_for_the_host_hardly_moves_the_ratio() -> None:
    small = {"hidden": 1024, "heads": 16, "kv_heads": 8, "ffn_hidden": 3072, "tokens": 2048, "seq_len": 2048}
    layers = [block(4, 1.0), block(4, 1.1, probe_id="second"), block(4, 2.7, probe_id="small", **small)]
    ratio = measured_rates([*kernels(), *layers]).composition_ratio[LayerRun(recipe="bf16-autocast")]

    assert ratio.value == pytest.approx(1.06, abs=0.02)
    assert 0.05 < ratio.relative_sd < 0.15


def test_a_single_layer_is_known_by_the_prior_alone() -> None:
    ratio = measured_rates([*kernels(), block(4, 1.3)]).composition_ratio[LayerRun(recipe="bf16-autocast")]

    assert (ratio.value, ratio.relative_sd) == (pytest.approx(1.3), pytest.approx(PRIOR_SD))


def test_recomputed_layers_have_a_ratio_of_their_own() -> None:
    rates = measured_rates([*kernels(), block(4, 1.1), block(4, 1.2, probe_id="r", recompute="full")])

    assert rates.composition_ratio[LayerRun(recipe="bf16-autocast", recomputed=True)].value == pytest.approx(1.2)


def test_recomputing_adds_one_forward_pass() -> None:
    rates = measured_rates(kernels())
    plain, recomputed = (work_of(block(4, 1.0, recompute=how)) for how in ("none", "full"))
    assert plain is not None
    assert recomputed is not None
    forward, backward = composed_seconds(rates, plain, "bf16-autocast") or (0.0, 0.0)

    assert composed_seconds(rates, recomputed, "bf16-autocast") == pytest.approx((forward, backward + forward))


def test_a_precision_without_products_cannot_be_composed() -> None:
    work = work_of(block(4, 1.0))
    assert work is not None

    assert composed_seconds(measured_rates(kernels()), work, "fp8") is None


def test_without_a_measured_bandwidth_memory_bound_work_is_unknown_and_so_is_the_sum() -> None:
    work = work_of(block(4, 1.0))
    assert work is not None

    rates = measured_rates([point for point in kernels() if point.kind != "bandwidth"])

    assert composed_seconds(rates, work, "bf16-autocast") is None


@pytest.mark.parametrize(("recipe", "gradient_bytes"), [("bf16-autocast", 14), ("fp8", 12)])
def test_the_sum_of_weight_gradients_comes_on_top_of_the_kernels(recipe: str, gradient_bytes: int) -> None:
    work = work_of(block(1, 1.0))
    assert work is not None
    rates = measured_rates([*kernels(), *(gemm(*shape, recipe="fp8") for shape in SHAPES)])
    forward, backward = phase_seconds(rates, work, recipe)

    composed = composed_seconds(rates, work, recipe)

    assert composed is not None
    # the gradients of 218 103 808 weights are added up in the backward pass, at the 4.2 TB/s of a copy
    assert composed[0] == pytest.approx(forward.total)
    assert composed[1] - backward.total == pytest.approx(gradient_bytes * 218_103_808 / 4.2e12)


PER_BYTE_S = 1 / 4.2e12  # of `copy()`, the only bandwidth among these kernels


def composed(recipe: str = "bf16-autocast", **changes: object) -> tuple[float, float]:
    """Forward and backward seconds of four layers of the 8B, added up from kernels."""
    work = work_of(block(4, 1.0, **changes))
    assert work is not None
    points = [gemm(*shape, recipe=recipe) for shape in SHAPES] + kernels()
    seconds = composed_seconds(measured_rates(points), work, recipe)
    assert seconds is not None
    return seconds


def test_the_ends_of_a_model_add_the_output_layer_the_loss_and_the_embedding():
    whole = composed(kind="end_to_end", model="llama-8b", vocab=128_256, params=8_030_261_248)
    forward, backward = (a - b for a, b in zip(whole, composed(), strict=True))

    # the law of the kernels for 8192 x 128 256 x 4096, once and twice
    moved = 2 * (8192 * 4096 + 128_256 * 4096 + 8192 * 128_256)
    head_s = 2 * 8192 * 128_256 * 4096 / RATE + moved / BANDWIDTH + FIXED_S
    # 12 passes over the logits and 6 over the hidden state, 2 bytes each: two fifths forward, three backward
    passes_s = 8192 * (12 * 128_256 + 6 * 4096) * 2 * PER_BYTE_S
    # the library makes q, k and v, and gate and up, one by one: three more products a layer, each with its input
    split_s = 4 * 3 * (FIXED_S + 2 * 8192 * 4096 / BANDWIDTH)
    assert forward == pytest.approx(head_s + split_s + 0.4 * passes_s, rel=1e-3)
    assert backward == pytest.approx(2 * head_s + 2 * split_s + 0.6 * passes_s, rel=1e-3)


@pytest.mark.parametrize(
    ("recipe", "bytes_per_weight"),
    [
        ("bf16-autocast", 14),  # written in 2 bytes, read and added to one of 4: 2 + 4 + 4 + 4
        ("bf16-fsdp", 12),
        ("bf16-pure", 6),  # 2 + 2 + 2
    ],
)
def test_the_gradients_of_the_weights_are_written_read_and_added_in_their_types(recipe, bytes_per_weight):
    plain, other = composed(), composed(recipe)

    # 4 layers of 218 103 808 weights, backward only
    assert other[0] == pytest.approx(plain[0])
    assert other[1] - plain[1] == pytest.approx((bytes_per_weight - 14) * 4 * 218_103_808 * PER_BYTE_S, abs=1e-9)

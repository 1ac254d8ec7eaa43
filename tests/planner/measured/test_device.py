"""From records to rates: kernels made up by a known law give that law back; what was not measured is absent."""

from __future__ import annotations

import random

import pytest

from planner.errors import InputFileError
from planner.measured.device import composed_seconds, measured_rates
from planner.measured.kernels import product_seconds
from planner.measured.workloads import work_of
from planner.records.measurement import Measurement
from tests.planner.recorded import BANDWIDTH, FIXED_S, H200, RATE, SHAPES, a_measurement, gemm, kernels


def block(layers: int, slower: float, **changes: object) -> Measurement:
    """A stack of 8B layers that takes `slower` times the sum of its kernels."""
    shape = {"hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn_hidden": 14336}
    values = {
        "probe_id": f"block/L{layers}", "kind": "block", "recipe": "bf16-autocast", "layers": layers, "seq_len": 8192,
        "micro_batch": 1, "tokens": 8192, "recompute": "none", "compiled": False,
    } | shape | H200 | changes  # fmt: skip
    one = a_measurement(**values)
    rates = measured_rates([*kernels(), one])
    work = work_of(one)
    assert work is not None
    composed = composed_seconds(rates, work, "bf16-autocast")
    assert composed is not None
    return a_measurement(**(values | {"time_median_s": slower * sum(composed)}))


def test_the_law_behind_the_products_is_found_again() -> None:
    rates = measured_rates([gemm(*shape) for shape in SHAPES])

    assert rates.gpu == "h200-sxm-141gb"
    assert rates.matmul_flop_per_s["bf16"].value == pytest.approx(RATE, rel=1e-3)
    assert rates.operand_bytes_per_s["bf16"].value == pytest.approx(BANDWIDTH, rel=1e-2)
    assert rates.matmul_fixed_s["bf16"].value == pytest.approx(FIXED_S, rel=1e-2)
    assert rates.matmul_flop_per_s["bf16"].relative_sd < 0.01


def test_noise_of_three_percent_leaves_the_rate_within_two_and_shows_in_its_spread() -> None:
    rng = random.Random(0)
    noisy = [gemm(*shape, noise=rng.gauss(0.0, 0.03)) for shape in SHAPES]

    rate = measured_rates(noisy).matmul_flop_per_s["bf16"]

    assert rate.value == pytest.approx(RATE, rel=0.03)
    assert 0.01 < rate.relative_sd < 0.06


def test_the_fastest_product_is_kept_beside_the_asymptote() -> None:
    best = measured_rates(kernels()).best_matmul_flop_per_s["bf16"]

    assert best.probe_ids == ("gemm/16384x16384x16384/forward/bf16-autocast",)
    assert best.value < RATE


def test_a_shape_that_was_measured_is_met_exactly_and_a_new_one_by_the_law() -> None:
    slow = gemm(8192, 7168, 8192, noise=0.2)  # a shape that the chip does not like
    rest = [gemm(*shape) for shape in SHAPES if shape != (8192, 7168, 8192)]
    fit = measured_rates([*rest, slow]).product_fits["bf16"]

    assert product_seconds(fit, "bf16", 8192, 7168, 8192) == pytest.approx(slow.time_median_s, rel=0.01)
    law = 2.0 * 512**3 / RATE + 6.0 * 512**2 / BANDWIDTH + FIXED_S
    # one shape of eight that is 20 % slow raises the fixed part, which is most of so small a product, by 3 %
    assert product_seconds(fit, "bf16", 512, 512, 512) == pytest.approx(law, rel=0.04)


def test_one_product_alone_gives_a_rate_and_nothing_that_it_cannot_tell() -> None:
    rates = measured_rates([gemm(16384, 16384, 16384)])

    assert rates.matmul_flop_per_s["bf16"].value == pytest.approx(RATE, rel=0.05)  # operands and start included
    assert rates.operand_bytes_per_s == {}


def test_attention_is_counted_causally_and_backward_at_two_and_a_half_times_the_arithmetic() -> None:
    rates = measured_rates(kernels())

    assert rates.attention_forward_flop_per_s["bf16"].value == pytest.approx(400e12, rel=1e-3)
    assert rates.attention_backward_flop_per_s["bf16"].value == pytest.approx(350e12, rel=1e-3)


def test_what_was_not_measured_is_absent_and_not_zero() -> None:
    rates = measured_rates([gemm(8192, 8192, 8192)])

    assert "fp8" not in rates.matmul_flop_per_s
    assert rates.copy_bytes_per_s is None
    assert rates.kernel_s is None
    assert rates.power_w == {}


def test_layers_measured_whole_against_the_sum_of_their_kernels_give_the_composition_ratio() -> None:
    ratio = measured_rates([*kernels(), block(1, 1.10), block(4, 1.10)]).composition_ratio["bf16-autocast"]

    assert ratio.value == pytest.approx(1.10, rel=1e-6)
    assert ratio.relative_sd == pytest.approx(0.0, abs=1e-9)
    assert ratio.probe_ids == ("block/L1", "block/L4")


def test_recomputed_layers_have_a_ratio_of_their_own() -> None:
    rates = measured_rates([*kernels(), block(4, 1.1), block(4, 1.2, probe_id="r", recompute="full")])

    assert rates.composition_ratio["bf16-autocast+recompute"].value == pytest.approx(1.2)


def test_recomputing_adds_one_forward_pass() -> None:
    rates = measured_rates(kernels())
    plain, again = (work_of(block(4, 1.0, recompute=how)) for how in ("none", "full"))
    assert plain is not None
    assert again is not None
    forward, backward = composed_seconds(rates, plain, "bf16-autocast") or (0.0, 0.0)

    assert composed_seconds(rates, again, "bf16-autocast") == pytest.approx((forward, backward + forward))


def test_a_precision_without_products_cannot_be_composed() -> None:
    work = work_of(block(4, 1.0))
    assert work is not None

    assert composed_seconds(measured_rates(kernels()), work, "fp8") is None


@pytest.mark.parametrize(
    ("changes", "activity"),
    [
        ({"kind": "idle", "role": "bare", "recipe": None}, "idle"),
        ({"kind": "idle", "role": "context", "recipe": None}, "context"),
        ({"kind": "power", "role": "forward", "recipe": "fp8"}, "matmul:fp8"),
        ({"kind": "power", "role": "copy", "recipe": None}, "memory"),
        ({"kind": "block", "recompute": "none", "compiled": False}, "block:bf16-autocast"),
        ({"kind": "optimizer", "optimizer": "adamw"}, "optimizer:adamw"),
    ],
)
def test_power_is_kept_by_activity(changes: dict[str, object], activity: str) -> None:
    one = a_measurement(power_mean_w=612.0, energy_quality="ok", **(H200 | changes))

    rates = measured_rates([one])

    assert rates.power_w[activity].value == 612.0
    assert rates.power_w[activity].relative_sd == 0.02


@pytest.mark.parametrize("quality", ["inconsistent", "short"])
def test_power_from_a_bad_window_is_not_used(quality: str) -> None:
    one = a_measurement(kind="power", role="copy", power_mean_w=612.0, energy_quality=quality, **H200)

    assert measured_rates([one]).power_w == {}


def test_an_optimizer_is_seconds_per_parameter() -> None:
    one = a_measurement(
        kind="optimizer", optimizer="adamw", params=500_000_000, time_median_s=0.004,
        optimizer_state_bytes_per_param=8.0, **H200,
    )  # fmt: skip

    rates = measured_rates([one])

    assert rates.optimizer_s_per_param["adamw"].value == pytest.approx(8e-12)
    assert rates.optimizer_state_bytes_per_param["adamw"].value == 8.0


def test_contended_points_widen_the_spread_and_points_with_retries_are_left_out() -> None:
    retried = gemm(8192, 8192, 8192, noise=5.0, alloc_retries=3)

    rates = measured_rates([*kernels(), retried])

    assert rates.matmul_flop_per_s["bf16"].value == pytest.approx(RATE, rel=1e-3)


def test_no_points_at_all_is_an_invalid_input() -> None:
    with pytest.raises(InputFileError):
        measured_rates([])


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
    assert forward == pytest.approx(head_s + 0.4 * passes_s, rel=1e-3)
    assert backward == pytest.approx(2 * head_s + 0.6 * passes_s, rel=1e-3)


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

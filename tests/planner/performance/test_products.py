from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.hardware.cluster import make_cluster
from planner.kernels.catalogue import load_surface
from planner.kernels.surface import Surface, large_flop_per_s, product_s
from planner.parallelism.layout import Layouts
from planner.performance.evaluation import UnitPrices, evaluate
from planner.performance.operations import MatMul, count_work, distinct_splits, work_of
from planner.performance.products import ProductTimes, cast_s, law_s, product_times, products_draw_ratio
from planner.rates.terms import Rates
from tests.planner.build import (
    ROUNDING,
    cluster,
    layout,
    layouts,
    mid_rates,
    plain_rates,
    recipe,
    settings_of_recipes,
    shape,
)

FAST = 1e30
"""A rate at which something takes no time."""


def compute_bound(rate: float = 1e12, surface: Surface | None = None, **changes: float) -> Rates:
    """Only FLOP take time."""
    free = {"operand_bytes_per_s": FAST, "memory_bytes_per_s": FAST}
    surfaces = {} if surface is None else {"linear_flop_per_s": surface}
    return plain_rates(surfaces, **({"linear_flop_per_s": rate, "other_flop_per_s": rate} | free | changes))


def product(**changes: object) -> MatMul:
    values: dict[str, object] = {"m": np.array([8192.0]), "n": 4096.0, "k": 1024.0}
    return MatMul(**(values | changes))  # type: ignore[arg-type]


def test_a_product_takes_two_m_n_k_flop_at_the_rate_of_its_type():
    fp8 = recipe(policy="fp8")
    rates = compute_bound(linear_flop_per_s=2e12, other_flop_per_s=1e12)

    assert float(law_s(product(), fp8, rates)[0]) == pytest.approx(2 * 8192 * 4096 * 1024 / 2e12)
    assert float(law_s(product(low_precision=False), fp8, rates)[0]) == pytest.approx(2 * 8192 * 4096 * 1024 / 1e12)


@pytest.mark.parametrize(
    ("policy", "in_bytes", "out_bytes"), [("fp32", 4, 4), ("bf16", 2, 2), ("fp8", 1, 2), ("nvfp4", 0.5, 2)]
)
def test_a_product_reads_both_operands_and_writes_its_result_in_their_types(policy, in_bytes, out_bytes):
    rates = compute_bound(FAST, operand_bytes_per_s=1e12)

    moved = (8192 * 1024 + 1024 * 4096) * in_bytes + 8192 * 4096 * out_bytes
    assert float(law_s(product(), recipe(policy=policy), rates)[0]) == pytest.approx(moved / 1e12)


@pytest.mark.parametrize(("overlap", "expected"), [(0.0, 3.0), (0.5, 2.5), (1.0, 2.0)])
def test_the_lesser_of_arithmetic_and_traffic_hides_behind_the_greater_as_far_as_it_overlaps(overlap, expected):
    # 2 s of arithmetic and 1 s of traffic
    op = product(m=np.array([1000.0]), n=1000.0, k=1000.0)
    rates = compute_bound(1e9, operand_bytes_per_s=6e6, matmul_overlap_ratio=overlap)

    assert float(law_s(op, recipe(), rates)[0]) == pytest.approx(expected)


def test_grouped_products_run_at_their_own_rate_in_one_kernel():
    rates = compute_bound(kernel_s=1e-3, grouped_matmul_ratio=0.5)
    single, of_eight = product(grouped=True), product(grouped=True, mean_count=8.0)

    assert float(law_s(single, recipe(), rates)[0]) == pytest.approx(2 * 8192 * 4096 * 1024 / 0.5e12 + 1e-3)
    assert float(law_s(of_eight, recipe(), rates)[0]) == pytest.approx(8 * 2 * 8192 * 4096 * 1024 / 0.5e12 + 1e-3)


def test_casts_cost_memory_traffic_in_fp8_and_nothing_otherwise():
    rates = plain_rates(memory_bytes_per_s=1e12, cast_fusion_ratio=0.5)
    elements = 8192 * 1024 + 8192 * 4096 + 4096 * 1024

    # tensorwise scaling: 6 bytes per element (read for the maximum, read, write in both layouts)
    assert float(cast_s(product(), recipe(policy="fp8"), rates)[0]) == pytest.approx(0.5 * 6 * elements / 1e12)
    assert cast_s(product(low_precision=False), recipe(policy="fp8"), rates) == 0
    assert cast_s(product(), recipe(policy="bf16"), rates) == 0


H100 = load_surface("matmul:h100-sxm5-80gb:bf16")


def measured(surface: Surface = H100, **changes: float) -> Rates:
    """Rates of a GPU whose products were measured, in a step that slows nothing down."""
    return compute_bound(surface=surface, linear_flop_per_s=large_flop_per_s(surface), **changes)


def times(op: MatMul, rates: Rates, method: str = "pretrain") -> ProductTimes:
    return product_times((op,), recipe(method=method), rates)


def test_a_measured_product_takes_what_its_surface_says_forward_and_with_permuted_shapes_backward():
    # [8192, 1024] x [1024, 4096]; gradients: [8192, 4096] x [4096, 1024] and [4096, 8192] x [8192, 1024]
    backward = product_s(H100, 8192.0, 1024.0, 4096.0) + product_s(H100, 4096.0, 1024.0, 8192.0)

    assert times(product(), measured()).forward == pytest.approx(product_s(H100, 8192.0, 4096.0, 1024.0))
    assert times(product(), measured()).backward == pytest.approx(backward)


def test_a_layer_may_have_any_number_of_measured_products():
    single, of_forty = (product_times((product(),) * count, recipe(), measured()).forward for count in (1, 40))

    assert np.ravel(of_forty) == pytest.approx(40 * np.ravel(single))


@pytest.mark.parametrize("surface", [None, H100])
@pytest.mark.parametrize(
    ("n", "k", "policy", "times_as_long"),
    [
        (4096.0, 1024.0, "bf16", 1.0),
        (4096.0, 14400 / 8, "bf16", 1 / 0.9**3),  # 3 600 bytes: a multiple of 16 and not of 32, eight short of 128
        (4096.0 + 32, 1024.0, "bf16", 1 / 0.9),
        (4096.0 + 32, 1024.0, "fp8", 1 / 0.9**2),  # half as many bytes
        (4096.0 + 32, 1024.0, "tf32", 1.0),  # twice as many
        (4096.0, 14400 / 8, "fp32", 1.0),  # CUDA cores
    ],
)
def test_rows_that_end_within_a_line_of_memory_make_a_product_of_a_layer_slower(n, k, policy, times_as_long, surface):
    trained, at = recipe(policy=policy), {"aligned_bytes": 128.0, "unaligned_product_ratio": 0.9}
    op, (plain, slow) = product(n=n, k=k), (compute_bound(surface=surface, **more) for more in ({}, at))
    seconds = [product_times((op,), trained, rates).total for rates in (plain, slow)]
    vocabulary = replace(op, low_precision=False)
    padded = [product_times((vocabulary,), trained, rates).total for rates in (plain, slow)]

    assert float(np.max(seconds[1])) == pytest.approx(times_as_long * float(np.max(seconds[0])))
    assert padded[0] == padded[1]


def test_frozen_weights_get_no_gradient():
    backward = times(product(), measured(), "lora").backward

    assert backward == pytest.approx(product_s(H100, 8192.0, 1024.0, 4096.0))


def test_what_a_surface_says_is_not_told_again_by_bandwidths_and_launches():
    slow = measured(operand_bytes_per_s=1.0, kernel_s=1.0, matmul_overlap_ratio=0.0)

    assert times(product(), slow).forward == pytest.approx(times(product(), measured()).forward)


def test_a_product_is_as_much_slower_than_its_surface_as_a_large_product_is():
    half = measured().replaced(linear_flop_per_s=large_flop_per_s(H100) / 2)

    assert times(product(), half).total == pytest.approx(2 * times(product(), measured()).total)


def test_grouped_products_are_as_one_that_is_as_many_times_wider():
    eight = product(m=np.array([512.0]), grouped=True, mean_count=8.0)
    wide = product(m=np.array([512.0]), n=8 * 4096.0)

    assert times(eight, measured()).forward == pytest.approx(times(wide, measured()).forward)
    assert times(eight, measured(grouped_matmul_ratio=0.5)).forward == pytest.approx(
        2 * times(wide, measured()).forward
    )


def test_products_without_a_surface_of_their_own_keep_the_law():
    # the output layer of FP8 recipes: 2 m n k at 1 TFLOP/s, three times
    other = times(product(low_precision=False), measured())

    assert other.total == pytest.approx(3 * 2 * 8192 * 4096 * 1024 / 1e12)


def test_kernels_that_only_cast_run_as_measured_and_casts_within_others_at_the_bandwidth_of_memory():
    fp8 = load_surface("matmul:h100-sxm5-80gb:fp8")
    rates = plain_rates({"linear_flop_per_s": fp8}, memory_bytes_per_s=1e12)
    elements = 8192 * 1024 + 8192 * 4096 + 4096 * 1024

    # kernels.csv: 2628 GB/s on an H100
    assert float(cast_s(product(), recipe(policy="fp8", stack="eager"), rates)[0]) == pytest.approx(
        6 * elements / 2628e9
    )
    assert float(cast_s(product(), recipe(policy="fp8"), rates)[0]) == pytest.approx(6 * elements / 1e12)
    unknown = plain_rates({"linear_flop_per_s": replace(fp8, cast_bytes_per_s=None)}, memory_bytes_per_s=1e12)
    assert float(cast_s(product(), recipe(policy="fp8", stack="eager"), unknown)[0]) == pytest.approx(
        6 * elements / 1e12
    )


def test_layouts_that_split_a_layer_alike_are_looked_up_once_and_get_the_same_time():
    at = Layouts.of(*(layout(tp=tp, dp=dp) for tp in (1, 2) for dp in range(1, 21)))
    alike, splits = distinct_splits(recipe(), at)

    assert len(alike) == 2
    once = product_times(count_work(recipe(), alike).dense_layer, recipe(), measured()).total
    alone = product_times(count_work(recipe(), at).dense_layer, recipe(), measured()).total
    assert splits.spread(once) == pytest.approx(alone)
    assert splits.take(np.array([39, 0])).spread(once) == pytest.approx(alone[[39, 0]])


def test_of_few_layouts_each_is_its_own():
    at = Layouts.of(layout(tp=1), layout(tp=1), layout(tp=2))
    alike, splits = distinct_splits(recipe(), at)

    assert len(alike) == 3
    assert splits.take(np.array([2, 0])).spread(np.array([1.0, 2.0, 3.0])) == pytest.approx(np.array([3.0, 1.0]))


def test_where_the_load_of_experts_is_drawn_all_other_products_are_still_looked_up_once():
    training = recipe(shape(experts=8, top_k=2, expert_ffn=4096))
    at = Layouts.of(*(layout(tp=tp, dp=8, ep=8) for tp in (1, 2) for _ in range(10)))
    load = np.linspace(0.0, 0.5, 7)
    work = work_of(training, at.column, plain_rates(expert_load_sd_ratio=load))

    assert {op.m.shape for op in work.moe_layer if not op.grouped} == {(2, 1)}
    assert {op.m.shape for op in work.moe_layer if op.grouped} == {(2, 7)}
    drawn = work.splits.spread(product_times(work.moe_layer, training, measured()).total)
    assert drawn.shape == (20, 7)
    for row, draw in ((0, 0), (19, 6)):
        alone = work_of(training, at.only(row), plain_rates(expert_load_sd_ratio=float(load[draw])))
        assert drawn[row, draw] == pytest.approx(float(product_times(alone.moe_layer, training, measured()).total[0]))


FREE = UnitPrices(usd_per_gpu_h=None, usd_per_kwh=None, pue=1.0, kg_co2e_per_kwh=0.0)


def draw(training, at, machine) -> float:
    return float(np.ravel(products_draw_ratio(training, at, mid_rates(training, machine)))[0])


def step_of(training, where, machine) -> tuple[float, float]:
    """Seconds of a step, and watts."""
    evaluated = evaluate(training, machine, Layouts.of(where), mid_rates(training, machine), FREE, 1e9)
    return float(np.ravel(evaluated.step_s)[0]), float(np.ravel(evaluated.gpu_power_w)[0])


@pytest.mark.parametrize("policy", ["bf16", "fp8"])
def test_the_products_of_a_large_model_hold_the_limit_in_every_type(policy):
    # docs/kernels.md: 691 and 688 of 700 W in BF16 and FP8
    assert draw(recipe(policy=policy), layouts(dp=8), cluster()) == pytest.approx(1.0, abs=0.01)


def test_narrow_products_save_the_energy_that_they_save_in_time():
    where = layout(dp=8, act_ckpt="full")
    (bf16_s, bf16_w), (fp8_s, fp8_w) = (step_of(recipe(policy=name), where, cluster()) for name in ("bf16", "fp8"))

    assert fp8_s < bf16_s
    assert fp8_w < bf16_w  # products are a smaller part of the step
    assert fp8_s * fp8_w < bf16_s * bf16_w


def test_small_products_draw_less_than_large_ones():
    small, large = (shape(hidden=hidden, ffn_hidden=4 * hidden, vocab=1000) for hidden in (512, 8192))
    drawn = [draw(recipe(model, seq_len=512, global_batch=8), layouts(dp=8), cluster("b200-sxm-180gb"))
             for model in (small, large)]  # fmt: skip

    assert drawn[0] < 0.9 < drawn[1] <= 1.0


def test_products_of_architectures_that_nobody_measured_are_taken_to_hold_the_limit():
    for policy in ("fp16", "fp32"):
        assert draw(recipe(policy=policy), layouts(dp=8), cluster("v100-sxm2-32gb")) == 1.0


def test_products_without_a_surface_draw_what_their_flop_take():
    # H20: 13 % of 400 W idle; TF32 at twice BF16's 1.01 pJ and some 65 TFLOP/s, far from the limit
    large, machine = recipe(shape(hidden=8192, ffn_hidden=32768, vocab=1000), policy="tf32"), cluster("h20-sxm-96gb")
    rate = mid_rates(large, machine).linear_flop_per_s

    assert draw(large, layouts(dp=8), machine) == pytest.approx((52 + 2.02e-12 * rate) / 392, rel=0.05)
    assert draw(large, layouts(dp=8), cluster("a100-sxm4-80gb")) == pytest.approx(1.0, abs=0.02)


def test_a_product_without_a_surface_that_draws_less_than_a_lower_limit_keeps_its_clock():
    large, gpu = recipe(policy="tf32"), cluster("h20-sxm-96gb").gpu
    times = [
        float(law_s(product(), large, mid_rates(large, make_cluster(gpu, power_limit_w=watts)))[0])
        for watts in (400, 300, 100)
    ]

    assert times[0] == pytest.approx(times[1])
    assert times[2] > 1.2 * times[0]


def test_layouts_are_looked_up_together_as_one_by_one():
    training, rates = recipe(), mid_rates(recipe(), cluster())
    several = [layout(tp=tp, dp=8, micro_batch=micro) for tp in (1, 2, 4, 8) for micro in (1, 2, 4, 8)] * 2
    together = products_draw_ratio(training, Layouts.of(*several), rates)

    alone = [float(np.ravel(products_draw_ratio(training, Layouts.of(where), rates))[0]) for where in several]
    assert together == pytest.approx(np.array(alone))


@given(settings_of_recipes(), st.tuples(st.floats(0.2, 1), st.floats(0.2, 1)))
def test_a_lower_power_limit_is_never_faster(setting, shares):
    training, where, machine = setting
    gpu = machine.gpu
    lower, higher = (
        evaluate(training, limited, Layouts.of(where), mid_rates(training, limited), FREE, 1e9)
        for limited in (make_cluster(gpu, power_limit_w=share * gpu.tdp_w) for share in sorted(shares))
    )

    # with a pipeline another stage may become the slowest, which has other items
    for item in ("matmul", "attention", "memory_bound", "optimizer") if where.pp == 1 else ():
        assert np.ravel(getattr(higher.step, item))[0] <= np.ravel(getattr(lower.step, item))[0] * ROUNDING
    # a slower GPU waits less for the host: `launch`, and the part of the bubble that holds it
    fast_s, slow_s = (float(np.ravel(evaluated.step.compute)[0]) for evaluated in (higher, lower))
    assert fast_s <= slow_s * ROUNDING


@given(settings_of_recipes(), st.floats(0.1, 1))
def test_the_mean_power_of_a_step_never_exceeds_the_limit(setting, share):
    training, where, machine = setting
    limit_w = share * machine.gpu.tdp_w

    assert step_of(training, where, make_cluster(machine.gpu, power_limit_w=limit_w))[1] <= limit_w * ROUNDING


@pytest.mark.parametrize("gpu", ["h100-sxm5-80gb", "h200-sxm-141gb", "a100-sxm4-80gb"])
def test_a_large_model_takes_less_energy_and_more_time_under_a_lower_limit(gpu):
    # at the limit power falls faster than the clock; a GPU that mostly waits has nothing to gain (no claim is made)
    training, where = recipe("llama-3.1-8b", seq_len=8192, global_batch=32), layout(dp=8, zero=1, grad_accum=4)
    tdp_w = cluster(gpu).gpu.tdp_w
    steps = [
        step_of(training, where, make_cluster(cluster(gpu).gpu, power_limit_w=share * tdp_w)) for share in (1.0, 0.7)
    ]
    (sold_s, sold_w), (lower_s, lower_w) = steps

    assert sold_s < lower_s < 1.3 * sold_s
    assert lower_s * lower_w < 0.98 * sold_s * sold_w

"""The ladder, rung by rung: each rate is a figure of the GPU's row times a parameter, and what scales both is exact.

Figures of GPUs are those of `gpus.csv`; efficiencies are read from `parameters.csv`, which a calibration may write
anew, so that these tests hold what the ladder does with them and not what they are.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.evidence import EvidenceKind
from planner.hardware.catalogue import find_gpu
from planner.hardware.network import Network
from planner.kernels.catalogue import load_surface
from planner.kernels.surface import large_flop_per_s
from planner.models.images.catalogue import image_model_named
from planner.rates.clock import clock_ratio
from planner.rates.ladder import Setting, resolve_rates
from planner.rates.parameters import Parameter, shipped_parameters
from planner.rates.qualifiers import shape_key
from planner.rates.terms import Draws, Rates, Term
from planner.training.recipe import Recipe
from tests.planner.build import cluster, recipe, shape

parameter = shipped_parameters().find


def row(family: str, gpu: str, stack: str = "tuned") -> Parameter:
    setting = Setting(cluster=cluster(gpu), recipe=recipe(stack=stack), parameters=shipped_parameters())
    return setting.row(shipped_parameters().families[family])


def mid(gpu: str = "h100-sxm5-80gb", training: Recipe | None = None, **machine: object) -> Rates:
    return resolve_rates(cluster(gpu, **machine), training or recipe()).sample()


def term(name: str, gpu: str = "h100-sxm5-80gb", training: Recipe | None = None, **machine: object) -> Term:
    return resolve_rates(cluster(gpu, **machine), training or recipe()).terms[name]


@pytest.mark.parametrize(
    ("gpu", "reference", "expected"),
    [
        # gpus.csv, measured_bf16_tflops: MI325X 784.9 and MI300X 668.4
        ("mi325x-256gb", "mi300x-192gb", 784.9 / 668.4),
        # not measured: the efficiency of the architecture, times its own peak: 181 and 383
        ("mi210-64gb", "mi250x-128gb", 181 / 383),
    ],
)
@pytest.mark.parametrize("name", ["linear_flop_per_s", "other_flop_per_s"])
def test_gpus_of_one_architecture_differ_as_their_fastest_measured_products_do(gpu, reference, expected, name):
    assert getattr(mid(gpu), name) / getattr(mid(reference), name) == pytest.approx(expected, rel=1e-3)


def test_an_unmeasured_gpu_reaches_the_efficiency_of_its_architecture_and_is_less_well_known():
    known = parameter("matmul_efficiency", "CDNA")
    transferred = term("linear_flop_per_s", "mi210-64gb")

    assert transferred.value == pytest.approx(known.value * 181e12)
    assert transferred.ceiling == pytest.approx(181e12)
    assert transferred.log_sd == pytest.approx(math.hypot(known.log_sd, 0.05))
    measured = parameter("matmul_efficiency", "CDNA3")
    assert term("linear_flop_per_s", "mi300x-192gb").log_sd == pytest.approx(measured.log_sd)


@pytest.mark.parametrize(
    ("gpu", "fastest"),
    # gpus.csv, measured_bf16_tflops
    [("mi300x-192gb", 668.4e12), ("mi325x-256gb", 784.9e12), ("mi355x-288gb", 1565e12)],
)
@pytest.mark.parametrize("policy", ["bf16", "fp16"])
def test_no_product_or_draw_of_one_is_faster_than_the_fastest_that_was_measured(gpu, fastest, policy):
    rates = resolve_rates(cluster(gpu), recipe(policy=policy))

    assert rates.terms["linear_flop_per_s"].ceiling == fastest
    assert np.max(rates.sample(Draws(count=501, seed=1)).linear_flop_per_s) <= fastest


def test_products_of_a_measured_gpu_run_at_what_their_surface_sustains_less_what_a_step_takes_from_them():
    rate = term("linear_flop_per_s")
    large = large_flop_per_s(load_surface("matmul:h100-sxm5-80gb:bf16"))

    assert rate.value == pytest.approx(parameter("product_rate_ratio").value * large)
    # 0.0242 about the surface, 0.0629 between stacks, the best of eight 1.42 standard deviations from their median
    assert rate.ceiling == pytest.approx(large * math.exp(1.42 * math.hypot(0.0242, 0.0629)))
    assert rate.evidence.kind is EvidenceKind.PUBLISHED
    assert mid().surface("linear_flop_per_s") is load_surface("matmul:h100-sxm5-80gb:bf16")


@pytest.mark.parametrize(
    ("gpu", "policy", "surface"),
    [
        ("a100-sxm4-80gb", "fp16", "matmul:a100-sxm4-80gb:bf16"),
        ("h100-sxm5-80gb", "fp8-blockwise", "matmul:h100-sxm5-80gb:fp8-block"),
        ("b200-sxm-180gb", "mxfp8", "matmul:b200-sxm-180gb:fp8"),
        ("gb200-186gb", "nvfp4", "matmul:gb200-186gb:fp4"),
        ("rtx-4090", "bf16", "matmul:l40s:bf16:rtx-4090"),  # its nearest measured relative, rescaled
        ("v100-sxm2-16gb", "fp16", None),  # nobody measured its architecture
        ("h100-sxm5-80gb", "tf32", None),
    ],
)
def test_the_surface_is_that_of_the_gpu_and_type_or_of_the_nearest_relative(gpu, policy, surface):
    chosen = mid(gpu, recipe(policy=policy)).surface("linear_flop_per_s")

    assert (None if chosen is None else chosen.id) == surface


@pytest.mark.parametrize(
    ("gpu", "policy", "pj_per_flop"),
    [
        ("h100-sxm5-80gb", "bf16", "product_pj_per_flop.bf16.Hopper"),
        ("h200-sxm-141gb", "fp8-blockwise", "product_pj_per_flop.fp8-block.Hopper"),
        ("b300-sxm-288gb", "nvfp4", "product_pj_per_flop.fp4.Blackwell"),  # Blackwell Ultra has no rows of its own
    ],
)
def test_a_flop_of_a_type_takes_the_energy_that_its_architecture_was_measured_to_take(gpu, policy, pj_per_flop):
    power = mid(gpu, recipe(policy=policy)).power("linear_flop_per_s")

    assert power.j_per_flop == pytest.approx(parameter(pj_per_flop).value * 1e-12)


def test_where_nobody_measured_the_watts_a_large_product_is_taken_to_hold_the_limit():
    rates = mid("a100-sxm4-80gb")
    power, surface = rates.power("linear_flop_per_s"), rates.surface("linear_flop_per_s")
    large_s = 2 * 8192.0**3 / large_flop_per_s(surface)

    assert power.alone_w(8192.0, 8192.0, 8192.0, large_s) == pytest.approx(parameter("power_at_limit").value * 400)
    assert mid("v100-sxm2-32gb", recipe(policy="fp16")).power("linear_flop_per_s") is None  # no surface: held as well


@pytest.mark.parametrize(("policy", "ratio"), [("bf16", 1.11), ("fp8", 1.17)])
def test_no_draw_of_a_rate_exceeds_what_the_fastest_stack_of_its_surface_sustains(policy, ratio):
    drawn = resolve_rates(cluster(), recipe(policy=policy)).sample(Draws(count=2001, seed=1))
    surface = drawn.surface("linear_flop_per_s")

    assert large_flop_per_s(surface) < np.max(drawn.linear_flop_per_s) <= ratio * large_flop_per_s(surface)
    assert ratio * large_flop_per_s(surface) < cluster().gpu.peak_flop_per_s[policy]


def test_a_card_with_half_the_power_sustains_less_than_its_peak_promises():
    # h100-pcie: 756 of 989 TFLOP/s at the peak, 350 of 700 W; above idle (13 %) it has 304.5 W where 465.5 W would be
    # needed at the clock of the SXM part: (304.5 / 465.5)^(1/2.4) = 0.84 of it
    pcie, sxm = (
        large_flop_per_s(mid(gpu).surface("linear_flop_per_s")) for gpu in ("h100-pcie-80gb", "h100-sxm5-80gb")
    )

    assert pcie / sxm == pytest.approx(756 / 989 * 0.84, rel=0.03)


def test_fp32_and_tf32_take_their_own_peak_whatever_was_measured_in_bf16():
    # an H20 does not need its 400 W for TF32, an A100 its 400 W for FP32 at 10 pJ per FLOP
    share = {policy: parameter("matmul_efficiency", policy).value for policy in ("fp32", "tf32")}

    assert mid("a100-sxm4-80gb", recipe(policy="fp32")).linear_flop_per_s == pytest.approx(share["fp32"] * 19.5e12)
    assert mid("h20-sxm-96gb", recipe(policy="tf32")).linear_flop_per_s == pytest.approx(share["tf32"] * 74e12)


def test_strict_fp32_on_hopper_just_reaches_the_power_limit():
    # measured on an H200: 696 W at 50.8 TFLOP/s and 1965 of 1980 MHz
    at_full_clock = parameter("matmul_efficiency", "fp32").value * 67e12

    assert 0.93 < mid(training=recipe(policy="fp32")).linear_flop_per_s / at_full_clock < 0.97


def test_fp8_scales_with_the_silicon_that_was_measured_in_bf16():
    # MI325X: 2614.9 TFLOP/s in FP8; measured in BF16 784.9 against 668.4 of the architecture's reference
    own = 784.9 / 668.4
    rate = mid("mi325x-256gb", recipe(policy="fp8")).linear_flop_per_s

    assert rate == pytest.approx(parameter("matmul_efficiency", "fp8", "CDNA3").value * 2614.9e12 * own, rel=1e-3)


def test_a_row_of_the_architecture_itself_comes_before_that_of_its_relative():
    assert row("attention_efficiency", "t4").id == "attention_efficiency.tuned.Turing"
    assert row("attention_efficiency", "p100-pcie-16gb").id == "attention_efficiency.tuned.Volta"
    assert row("matmul_efficiency", "mi300x-192gb").id == "matmul_efficiency.CDNA3"
    assert row("matmul_efficiency", "mi210-64gb").id == "matmul_efficiency.CDNA"


@pytest.mark.parametrize("policy", ["fp32", "tf32"])
def test_attention_of_32_bits_on_hopper_is_of_the_older_generation(policy):
    rate = mid("h200-sxm-141gb", recipe(policy=policy)).attention_flop_per_s

    assert 35e12 < rate < 50e12  # an H200 made 35 to 47 TFLOP/s in both (h200-sxm-141gb-2026-11-27)


@pytest.mark.parametrize(
    ("gpu", "policy", "row", "peak"),
    [
        ("v100-sxm2-32gb", "fp16", ("tuned", "Volta"), 125e12),
        ("mi300x-192gb", "bf16", ("tuned", "CDNA"), 1307.4e12),
        # in FP32 and TF32 three TF32 products for one where that is faster: 156 / 3 = 52 against 19.5 on CUDA cores
        ("a100-sxm4-80gb", "tf32", ("fp32",), 156e12 / 3),
        ("a100-sxm4-80gb", "fp32", ("fp32",), 156e12 / 3),
        ("v100-sxm2-32gb", "fp32", ("fp32",), 15.7e12),
    ],
)
def test_attention_that_nobody_measured_runs_at_a_share_of_the_peak_of_its_type(gpu, policy, row, peak):
    rate = term("attention_flop_per_s", gpu, recipe(policy=policy))

    assert rate.value == pytest.approx(parameter("attention_efficiency", *row).value * peak)
    assert rate.ceiling == pytest.approx(peak)


@pytest.mark.parametrize("gpu", ["h100-sxm5-80gb", "a100-sxm4-80gb", "b300-sxm-288gb"])
def test_attention_of_a_measured_gpu_runs_at_what_a_step_reaches_of_its_surface(gpu):
    rate = term("attention_flop_per_s", gpu)
    large = large_flop_per_s(load_surface(f"attention:{gpu}:bf16"))

    assert rate.value == pytest.approx(parameter("attention_rate_ratio").value * large)
    assert rate.surface is load_surface(f"attention:{gpu}:bf16")


@pytest.mark.parametrize(
    ("gpu", "stack", "year", "share"),
    [
        ("h100-sxm5-80gb", "tuned", 2023.5, 1.0),
        ("b200-sxm-180gb", "classic", 2024.75, 0.25),
        ("h100-sxm5-80gb", "tuned", 2025.0, 0.0),  # from about then the kernels use the asynchronous units
        ("h100-sxm5-80gb", "tuned", None, 0.0),
        ("h100-sxm5-80gb", "eager", 2026.0, 1.0),  # PyTorch's own kernel does not use them at all
        ("a100-sxm4-80gb", "eager", 2023.0, 0.0),  # has none
    ],
)
def test_attention_of_an_older_generation_is_slower_where_later_kernels_use_asynchronous_units(gpu, stack, year, share):
    older = mid(gpu, recipe(stack=stack, software_year=year)).attention_flop_per_s
    now = large_flop_per_s(load_surface(f"attention:{gpu}:bf16"))
    reached = parameter("attention_rate_ratio", *(("torch",) if stack == "eager" else ())).value

    assert older / now == pytest.approx(reached * parameter("attention_generation_ratio").value ** share)


@pytest.mark.parametrize("name", ["kernels_per_moe_layer", "moe_passes"])
def test_routing_of_an_older_release_costs_more_by_a_factor_per_year(name):
    # stated for 2026: two years before, e^(2 x progress) as many
    then, now = (getattr(mid(training=recipe(software_year=year)), name) for year in (2024.0, None))

    assert math.log(then / now) == pytest.approx(2 * parameter("moe_progress").value)
    assert mid(training=recipe(software_year=2024.0)).norm_passes == parameter("norm_passes").value


@pytest.mark.parametrize(
    ("name", "row", "figure"),
    [
        ("memory_bytes_per_s", "memory_efficiency", 3350e9),
        ("operand_bytes_per_s", "operand_bandwidth", 3350e9),
        ("optimizer_bytes_per_s", "optimizer_efficiency", 3350e9),
        ("nic_bytes_per_s", "nic_efficiency", 50e9),  # 400 Gbit/s per GPU
        ("pcie_bytes_per_s", "pcie_efficiency", 63e9),  # PCIe 5.0 x16: 32 GT/s x 16 lanes x 128/130
    ],
)
def test_a_bandwidth_is_its_share_of_the_datasheet_s(name, row, figure):
    rate = term(name)

    assert rate.value == pytest.approx(parameter(row).value * figure, rel=2e-3)
    assert rate.ceiling == pytest.approx(figure, rel=2e-3)


def test_links_of_a_measured_gpu_reach_what_a_large_all_gather_does_less_what_a_step_takes_from_it():
    # nccl_one_node: 8 h100_sxm, 256 to 512 MiB: 673 us more for 268 MB, of which 7/8 are on the bus
    rate = term("nvlink_bytes_per_s")

    assert rate.value == pytest.approx(parameter("collective_rate_ratio").value * 349e9, rel=0.01)
    assert [on.row.id for on in rate.rests_on] == ["collective_rate_ratio"]
    assert set(rate.by_operation) == {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}


def test_links_that_nobody_measured_reach_a_share_of_their_rate():
    # MI300X: 7 xGMI links of 64 GB/s
    rate = term("nvlink_bytes_per_s", "mi300x-192gb")

    assert rate.value == pytest.approx(parameter("nvlink_efficiency").value * 448e9, rel=2e-3)
    assert not rate.by_operation


@pytest.mark.parametrize("gpu", ["h20-sxm-96gb", "rtx-5090", "h100-sxm5-80gb"])
def test_no_shape_of_a_product_is_faster_than_the_peak(gpu):
    rates = resolve_rates(cluster(gpu), recipe(policy="fp8")).sample()
    surface = rates.surface("linear_flop_per_s")

    fastest = float(np.exp(surface.log_rate.max())) * rates.linear_flop_per_s / large_flop_per_s(surface)
    assert fastest <= find_gpu(gpu).reachable_flop_per_s["fp8"] * (1 + 1e-12)


def test_without_nvlink_a_node_talks_over_pcie_at_its_efficiency():
    # L40S: PCIe 4.0 x16, 16 GT/s x 16 lanes x 128/130 = 31.5 GB/s
    assert mid("l40s").nvlink_bytes_per_s == pytest.approx(parameter("pcie_efficiency").value * 31.5e9, rel=2e-3)
    assert mid("h100-sxm5-80gb", gpus_per_node=1).nvlink_bytes_per_s == mid().pcie_bytes_per_s


def test_the_host_of_a_module_is_reached_over_its_own_link_and_not_over_pcie():
    # arXiv 2408.11556: 450 GB/s per direction over NVLink-C2C between the processor and the GPU of Grace Hopper
    assert mid("gh200-96gb").pcie_bytes_per_s == pytest.approx(parameter("pcie_efficiency").value * 450e9)
    assert mid("gh200-144gb").pcie_bytes_per_s == mid("gh200-96gb").pcie_bytes_per_s


def test_the_network_that_the_user_names_is_the_one_that_counts():
    slow = Network(bytes_per_s=25e9, fabric="")

    assert mid(network=slow).nic_bytes_per_s == pytest.approx(parameter("nic_efficiency").value * 25e9)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("power_idle_w", "power_idle"),
        ("power_linear_w", "power_at_limit"),
        ("power_attention_w", "power_attention"),
        ("power_memory_w", "power_memory"),
        ("power_wait_w", "power_wait"),
    ],
)
def test_an_activity_draws_its_share_of_the_board_s_limit_and_never_more_than_a_lower_one(name, row):
    share = parameter(row).value  # H100 SXM: 700 W

    assert getattr(mid(), name) == pytest.approx(min(share, 1.0) * 700)
    assert getattr(mid(power_limit_w=450.0), name) == pytest.approx(min(share * 700, 450))
    assert term(name, power_limit_w=450.0).ceiling == 450
    assert term(name, power_limit_w=900.0).ceiling == 700


@pytest.mark.parametrize("limit_w", [500.0, 600.0])
def test_the_clock_under_a_limit_is_the_one_whose_power_meets_it(limit_w):
    idle_w, busy_w = (parameter(row).value * 700 for row in ("power_idle", "power_at_limit"))
    clock = clock_ratio(cluster(power_limit_w=limit_w))

    # what is above idle grows with the clock to its exponent
    assert idle_w + (busy_w - idle_w) * clock ** parameter("clock_exponent").value == pytest.approx(limit_w)
    for name in ("linear_flop_per_s", "other_flop_per_s"):
        limited, free = term(name, power_limit_w=limit_w), term(name)
        assert limited.value / free.value == pytest.approx(clock)
        assert limited.ceiling / free.ceiling == pytest.approx(clock)


@pytest.mark.parametrize(
    ("name", "row"), [("attention_flop_per_s", "power_attention"), ("memory_bytes_per_s", "power_memory")]
)
def test_attention_and_memory_slow_only_below_what_they_draw(name, row):
    drawn_w = parameter(row).value * 700
    free, above, below = (term(name, power_limit_w=watts).value for watts in (None, drawn_w, drawn_w - 50))

    assert above == free
    assert below < free


def test_below_the_voltage_s_floor_power_falls_with_the_clock_alone():
    # facebookexperimental/triton#2023: 617 of 1600 to 2174 TFLOP/s at 500 of 1400 W
    clock = clock_ratio(cluster("gb300-288gb", power_limit_w=500.0))

    assert find_gpu("gb300-288gb").tdp_w == 1400
    assert 617 / 2174 < clock < 617 / 1600


def test_at_a_lower_limit_a_product_takes_longer_and_less_energy():
    # H200 in BF16: 0.99 pJ per FLOP at 691 of 700 W (docs/kernels.md); at 450 W the clock falls by less than the power
    free, limited = (term("linear_flop_per_s", "h200-sxm-141gb", power_limit_w=watts).value for watts in (None, 450.0))

    assert limited < free
    assert 450.0 / limited < 0.98 * 700.0 / free


def test_a_limit_below_idle_leaves_a_twentieth_of_the_board_s_power_to_work_with():
    idle_w, busy_w = (parameter(row).value * 700 for row in ("power_idle", "power_at_limit"))
    floor, exponent = parameter("voltage_floor").value, parameter("clock_exponent").value
    clock = clock_ratio(cluster(power_limit_w=0.5 * idle_w))

    # far below the floor the clock is proportional to the power above idle
    assert clock == pytest.approx(0.05 * 700 / (busy_w - idle_w) * floor ** (1 - exponent))


def test_hosts_stand_inside_the_reading_of_a_grace_hopper():
    assert mid("gh200-96gb").host_power_w == 900 * parameter("host_power_ratio.module").value
    assert mid("h200-sxm-141gb").host_power_w == 700 * parameter("host_power_ratio").value


@pytest.mark.parametrize(
    ("changes", "name", "row"),
    [
        ({"tp_overlap": False}, "overlap_tp_ratio", "overlap_tp_ratio"),
        ({"tp_overlap": True}, "overlap_tp_ratio", "overlap_tp_ratio.explicit"),
        ({"chunked_loss": False}, "logit_bytes", "logit_bytes.full"),
        ({"chunked_loss": True}, "logit_bytes", "logit_bytes.fused"),
        ({}, "ffn_passes", "ffn_passes.gated"),  # Llama 3.1: SwiGLU
        ({"model": "gpt-3-175b"}, "ffn_passes", "ffn_passes.plain"),
        ({"stack": "eager"}, "fusion_ratio", "fusion_ratio.eager"),
        ({"stack": "classic"}, "overlap_dp_ratio", "overlap_dp_ratio.classic"),
        ({"stack": "fsdp-compile"}, "fragmentation_ratio", "fragmentation_ratio.fsdp-compile"),
        ({"stack": "eager"}, "logit_stored_bytes", "logit_stored_bytes.eager"),
        ({"stack": "eager", "chunked_loss": True}, "logit_stored_bytes", "logit_stored_bytes.fused"),
        ({"stack": "fsdp-compile"}, "logit_stored_bytes", "logit_stored_bytes.fsdp-compile"),
        # torchtitan compiles the loss from 2025 on
        ({"stack": "fsdp-compile", "software_year": 2024.9}, "logit_stored_bytes", "logit_stored_bytes.eager"),
        ({"stack": "fsdp-compile", "software_year": 2025.4}, "logit_stored_bytes", "logit_stored_bytes.fsdp-compile"),
        ({"stack": "tuned"}, "context_bytes", "context_gib.tuned"),
    ],
)
def test_what_the_recipe_says_picks_the_row(changes, name, row):
    scale = 1024**3 if row.startswith("context_gib") else 1
    assert getattr(mid(training=recipe(**changes)), name) == shipped_parameters().rows[row].value * scale


def test_memory_that_is_always_taken_is_stated_in_gib():
    rates = mid(training=recipe(stack="classic"))

    assert rates.context_bytes == parameter("context_gib.classic").value * 1024**3
    assert rates.nccl_bytes == parameter("nccl_gib").value * 1024**3


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16", "fp8"])
def test_what_the_equations_leave_out_of_a_precision_is_a_row_of_its_own(precision):
    left_out = term("precision_error_ratio", training=recipe(policy=precision))

    assert left_out.rests_on[0].row.id == f"precision_error_ratio.{precision}"
    assert [on.row.id for on in left_out.rests_on] == [f"precision_error_ratio.{precision}"]


@pytest.mark.parametrize("stack", ["tuned", "classic", "fsdp-compile", "eager"])
def test_a_host_launches_kernels_at_the_pace_of_its_stack(stack):
    known = shipped_parameters().rows[f"launch_s.{stack}"]

    assert mid(training=recipe(stack=stack)).launch_s == known.value
    assert 1e-6 < known.value < 1e-4


@pytest.mark.parametrize(
    ("family", "key", "model", "gpu"),
    [
        ("gpu_error_ratio", "h200-sxm-141gb", "llama-3.1-8b", "h200-sxm-141gb"),
        ("memory_architecture_error_ratio", "Hopper", "llama-3.1-8b", "h200-sxm-141gb"),
        # 32 layers, 4096 wide: what the model is called does not matter
        ("shape_error_ratio", "decoder-32x4096", "llama-3.1-8b", "h100-sxm5-80gb"),
        ("memory_shape_error_ratio", "decoder-32x4096-8e", "mixtral-8x7b", "h100-sxm5-80gb"),
    ],
)
def test_a_calibration_may_say_what_is_left_out_of_one_gpu_architecture_or_model_and_others_keep_the_general_row(
    family, key, model, gpu
):
    own = replace(shipped_parameters().rows[family], id=f"{family}.{key}", value=1.07)
    known = shipped_parameters().replaced([own])
    machine, training = cluster(gpu), recipe(model)

    assert resolve_rates(machine, training, None, known).terms[family].rests_on[0].row.id == f"{family}.{key}"
    assert getattr(resolve_rates(machine, training, None, known).sample(), family) == 1.07
    assert getattr(resolve_rates(machine, training).sample(), family) == 1.0
    others = resolve_rates(cluster("a100-sxm4-80gb"), recipe("llama-3.1-70b"), None, known)
    assert others.terms[family].rests_on[0].row.id == family


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, "decoder-8x1024"),
        ({"name": "another", "vocab": 1000}, "decoder-8x1024"),
        ({"kind": "encoder"}, "encoder-8x1024"),
        ({"experts": 8, "top_k": 2, "expert_ffn": 512}, "decoder-8x1024-8e"),
    ],
)
def test_models_of_one_kind_depth_width_and_experts_err_as_one(changes, key):
    assert shape_key(shape(**changes)) == key


def test_each_vision_model_errs_on_its_own():
    """ResNets and vision transformers once shared one error, which a calibration named after whichever had runs."""
    resnet, transformer = image_model_named("resnet-50"), image_model_named("vit-b-16")
    assert resnet is not None
    assert transformer is not None

    assert (shape_key(resnet), shape_key(transformer)) == ("image-resnet50", "image-vit_base_patch16_224")


def test_a_term_says_which_rows_it_rests_on():
    old = term("attention_flop_per_s", training=recipe(software_year=2024.5))
    plain = term("attention_flop_per_s")

    assert [on.row.id for on in plain.rests_on] == ["attention_rate_ratio"]
    assert [on.row.id for on in old.rests_on] == ["attention_rate_ratio", "attention_generation_ratio"]
    # half way between the generations: the square root of the ratio
    assert old.rests_on[1].power == pytest.approx(0.5)
    assert not old.rests_on[0].share
    assert old.rests_on[1].share


def test_a_power_limit_makes_the_rates_rest_on_what_sets_the_clock():
    free, limited = (term("linear_flop_per_s", power_limit_w=watts) for watts in (None, 400.0))

    assert [on.row.id for on in free.rests_on] == ["product_rate_ratio"]
    # 400 of 700 W is below the voltage's floor
    ids = ["power_at_limit", "power_idle", "clock_exponent", "voltage_floor"]
    assert [on.row.id for on in limited.rests_on[1:]] == ids
    assert [on.row.id for on in term("linear_flop_per_s", power_limit_w=600.0).rests_on[1:]] == ids[:3]
    assert limited.rests_on[1].power < 0  # what products draw lowers the clock
    assert limited.log_sd > free.log_sd


def test_where_no_switch_reduces_nothing_is_left_to_draw():
    assert term("nvls_gain_ratio", "a100-sxm4-80gb").rests_on == ()
    assert term("nvls_gain_ratio", "a100-sxm4-80gb").log_sd == 0
    assert term("nvls_gain_ratio").log_sd > 0


def test_rates_of_a_calibration_s_rows_are_drawn_by_them():
    known = shipped_parameters().replaced([replace(parameter("norm_passes"), value=9.0)])

    assert resolve_rates(cluster(), recipe(), None, known).sample().norm_passes == 9.0
    assert resolve_rates(cluster(), recipe(), None, known).parameters is known
    assert resolve_rates(cluster(), recipe()).parameters is shipped_parameters()

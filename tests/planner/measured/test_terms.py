from dataclasses import replace

import numpy as np
import pytest

from planner.evidence import EvidenceKind
from planner.measured.device import measured_rates
from planner.measured.rates import (
    Activity,
    ActivityKind,
    AttentionPower,
    LayerPower,
    LayerRun,
    MeasuredRates,
    MeasuredValue,
)
from planner.measured.terms import LAYER_CLOCK_SD, LEAST_SD, measured_terms
from planner.rates.ladder import resolve_rates
from planner.training.optimizers import find_optimizer
from planner.used.kernels import attention_used, products_used
from tests.planner.build import cluster, layouts, recipe
from tests.planner.recorded import kernels


def value(number: float, spread: float = 0.02) -> MeasuredValue:
    return MeasuredValue(value=number, relative_sd=spread, probe_ids=("gemm/8192",))


EMPTY = MeasuredRates(
    gpu="h100-sxm5-80gb", device_name="NVIDIA H100 80GB HBM3", run_id="0123456789", date="2026-11-20T00:00:00+00:00",
    torch_version="2.11.0", driver_version="580", matmul_flop_per_s={}, operand_bytes_per_s={},
    best_matmul_flop_per_s={}, attention_forward_flop_per_s={}, attention_backward_flop_per_s={}, copy_bytes_per_s=None,
    memory_bytes_per_s={}, kernel_s=None, launch_s=None, optimizer_s_per_param={}, optimizer_state_bytes_per_param={},
    power_w={}, composition_ratio={}, product_fits={}, attention_fits={},
)  # fmt: skip


def terms(rates: MeasuredRates, *, shipped: bool = False, **parts):
    plan_recipe = recipe(**parts)
    return measured_terms(rates, plan_recipe, resolve_rates(cluster(), plan_recipe).terms, shipped=shipped)


def test_a_record_that_measured_nothing_replaces_nothing():
    assert terms(EMPTY) == {}


def test_a_measured_product_rate_replaces_rate_traffic_and_overlap_together():
    rates = replace(EMPTY, matmul_flop_per_s={"bf16": value(7.5e14)}, operand_bytes_per_s={"bf16": value(3e12)})
    measured = terms(rates)

    assert measured["linear_flop_per_s"].value == 7.5e14
    assert measured["other_flop_per_s"].value == 7.5e14
    assert measured["operand_bytes_per_s"].value == 3e12
    assert measured["matmul_overlap_ratio"].value == 0.0  # the fit is a plain sum
    assert measured["linear_flop_per_s"].log_sd == 0.02
    assert all(term.rests_on == () for term in measured.values())  # no row of the catalogue moves what was measured


def test_no_rate_is_known_better_than_a_session_repeats():
    measured = terms(replace(EMPTY, matmul_flop_per_s={"bf16": value(7.5e14, spread=0.001)}))

    assert measured["linear_flop_per_s"].log_sd == LEAST_SD


def test_attention_weighs_its_passes_by_their_flop():
    rates = replace(
        EMPTY, attention_forward_flop_per_s={"bf16": value(6e14)}, attention_backward_flop_per_s={"bf16": value(4e14)}
    )

    # 1 FLOP at 6e14 and 2.5 at 4e14: 3.5 / (1/6 + 2.5/4) = 4.421e14
    assert terms(rates)["attention_flop_per_s"].value == pytest.approx(4.4211e14, rel=1e-4)


def test_rowwise_fp8_takes_the_rowwise_rate():
    rates = replace(EMPTY, matmul_flop_per_s={"fp8": value(1.4e15), "fp8-rowwise": value(1.2e15)})

    assert terms(rates, policy="fp8")["linear_flop_per_s"].value == 1.4e15
    assert terms(rates, policy="fp8-rowwise")["linear_flop_per_s"].value == 1.2e15


def test_the_evidence_says_whether_the_record_is_the_users_or_the_packages():
    rates = replace(EMPTY, matmul_flop_per_s={"bf16": value(7.5e14)})

    assert terms(rates)["linear_flop_per_s"].evidence.kind is EvidenceKind.MEASURED
    assert terms(rates, shipped=True)["linear_flop_per_s"].evidence.kind is EvidenceKind.SHIPPED


def test_power_and_optimizer_come_from_the_record():
    rates = replace(
        EMPTY,
        power_w={
            Activity(kind=ActivityKind.MATMUL, of="bf16"): value(690.0),
            Activity(kind=ActivityKind.MEMORY): value(430.0),
        },
        optimizer_s_per_param={"adamw": value(1e-11)},
    )
    measured = terms(rates)

    assert measured["power_linear_w"].value == 690.0
    assert measured["power_memory_w"].value == 430.0
    # the probe's step: 4 gradient, 2 x 4 weight, 2 x 2 x 4 moments = 28 bytes per parameter in 10 ps
    assert measured["optimizer_bytes_per_s"].value == pytest.approx(28 / 1e-11)


def test_passes_over_the_gradients_are_added_to_the_optimizer_that_was_timed_alone():
    rates = replace(EMPTY, copy_bytes_per_s=value(4e12), optimizer_s_per_param={"adamw": value(7e-12)})

    def update_s(policy: str, moved_bytes: float) -> float:
        return moved_bytes / terms(rates, policy=policy)["optimizer_bytes_per_s"].value

    # 28 bytes in 7 ps: 4 TB/s; the norm of the gradients and their clearing: 2 x 4 bytes at the rate of copies
    assert update_s("fp32", 36) == pytest.approx(7e-12 + 8 / 4e12)
    # bf16-pure: 2 gradient, 2 x 2 weight, 2 x 2 x 2 moments at the optimizer's 4 TB/s, and 2 x 2 bytes of gradients
    assert update_s("bf16-pure", 18) == pytest.approx(14 / 4e12 + 4 / 4e12)


def test_the_time_of_an_optimizer_with_arithmetic_of_its_own_is_no_bandwidth():
    assert "optimizer_bytes_per_s" not in terms(
        replace(EMPTY, optimizer_s_per_param={"muon": value(1e-10)}), optimizer=find_optimizer("muon")
    )


def test_fp16_draws_what_bf16_does_where_it_was_not_read():
    rates = replace(
        EMPTY,
        power_w={Activity(kind=ActivityKind.MATMUL, of="bf16"): value(690.0)},
        layer_power={
            LayerRun(recipe="bf16-fsdp"): LayerPower(
                power_w=value(660.0), products_ratio=1.0, attention_ratio=0.0, memory_ratio=0.0
            )
        },
    )
    half, brain = (terms(rates, stack="tuned", policy=policy) for policy in ("fp16", "bf16"))

    assert half["power_linear_w"].value == brain["power_linear_w"].value == 690.0
    assert half["power_stack_error_ratio"].value == brain["power_stack_error_ratio"].value
    assert "power_linear_w" not in terms(rates, stack="tuned", policy="fp8")


def test_layers_that_were_compiled_stand_only_for_the_compiled_stack():
    rates = replace(
        EMPTY,
        composition_ratio={
            LayerRun(recipe="bf16-fsdp"): value(1.2),
            LayerRun(recipe="bf16-fsdp", compiled=True): value(1.05),
            LayerRun(recipe="bf16-fsdp", recomputed=True): value(1.4),
        },
    )

    assert terms(rates, stack="eager")["framework_ratio"].value == 1.2
    assert terms(rates, stack="fsdp-compile")["framework_ratio"].value == 1.05


def test_layers_of_torchao_do_not_stand_for_delayed_scaling():
    rates = replace(EMPTY, composition_ratio={LayerRun(recipe="fp8"): value(1.2)})

    assert terms(rates, stack="eager", policy="fp8-fsdp")["framework_ratio"].value == 1.2
    assert "framework_ratio" not in terms(rates, stack="eager", policy="fp8-delayed")


@pytest.mark.parametrize(
    ("stack", "modes", "expected"),
    [
        ("fsdp-compile", {"compiled": 2.9e12, "eager": 1.9e12}, 2.9e12),
        ("eager", {"compiled": 2.9e12, "eager": 1.9e12}, 1.9e12),
        ("fsdp-compile", {"eager": 1.9e12}, 3.4e12),  # compiled kernels move their bytes about as fast as a copy does
        ("eager", {"compiled": 2.9e12}, None),  # unfused ones do not: the parameter stays
        ("tuned", {"compiled": 2.9e12, "eager": 1.9e12}, None),  # the probe runs no kernels of its own
    ],
)
def test_memory_bound_work_runs_as_measured_for_its_stack(stack, modes, expected):
    rates = replace(
        EMPTY, memory_bytes_per_s={mode: value(rate) for mode, rate in modes.items()}, copy_bytes_per_s=value(3.4e12)
    )
    term = terms(rates, stack=stack).get("memory_bytes_per_s")

    assert (term.value if term else None) == expected


CLOCKED = replace(
    EMPTY,
    matmul_flop_per_s={"bf16": value(6.6e14), "fp8": value(1.25e15), "fp16": value(6.3e14), "tf32": value(3.5e14)},
    attention_forward_flop_per_s={"bf16": value(6e14)},
    attention_backward_flop_per_s={"bf16": value(6e14)},
    sustained_clock_hz={"bf16": 1.35e9, "fp8": 1.3e9, "fp16": 1.35e9, "tf32": 1.4e9},
    attention_clock_hz={"bf16": 1.8e9},
    layer_clock_hz={
        LayerRun(recipe="bf16-fsdp"): 1.55e9,
        LayerRun(recipe="bf16-fsdp", compiled=True): 1.5e9,
        LayerRun(recipe="fp8"): 1.98e9,
        LayerRun(recipe="fp8", compiled=True): 1.6e9,
        LayerRun(recipe="tf32"): 1.9e9,
    },
)


@pytest.mark.parametrize(
    ("parts", "term", "expected"),
    [
        ({"policy": "bf16"}, "linear_flop_per_s", 6.6e14 * 1.5 / 1.35),
        ({"policy": "bf16"}, "attention_flop_per_s", 6e14 * 1.5 / 1.8),
        ({"policy": "fp8"}, "linear_flop_per_s", 1.25e15 * 1.6 / 1.3),  # not that of eager ones, which wait for casts
        ({"policy": "fp8"}, "other_flop_per_s", 6.6e14 * 1.5 / 1.35),
        ({"policy": "fp8"}, "attention_flop_per_s", 6e14 * 1.6 / 1.8),
        ({"policy": "fp16"}, "linear_flop_per_s", 6.3e14 * 1.5 / 1.35),  # as BF16's layers
        ({"policy": "tf32"}, "linear_flop_per_s", 3.5e14),  # eager layers alone tell nothing of fused ones
        ({"policy": "bf16", "stack": "eager"}, "linear_flop_per_s", 6.6e14),  # in its composition ratio
    ],
)
def test_kernels_of_a_fused_stack_run_at_the_clock_of_compiled_layers(parts, term, expected):
    assert terms(CLOCKED, **({"stack": "tuned"} | parts))[term].value == pytest.approx(expected)


def test_a_rate_at_the_clock_of_layers_is_less_sure():
    fused, eager = (terms(CLOCKED, stack=stack)["linear_flop_per_s"].log_sd for stack in ("tuned", "eager"))

    assert fused == pytest.approx(np.hypot(eager, LAYER_CLOCK_SD))


def test_surfaces_of_a_fused_stack_are_at_the_clock_of_whole_layers_too():
    rates = replace(measured_rates(kernels()), sustained_clock_hz={"bf16": 1.4e9}, attention_clock_hz={"bf16": 1.4e9})
    hot = replace(rates, layer_clock_hz={LayerRun(recipe="bf16-fsdp", compiled=True): 1.68e9})

    for name in ("linear_flop_per_s", "attention_flop_per_s"):
        burst, layers = (terms(record, stack="tuned")[name].surface for record in (rates, hot))
        assert burst is not None
        assert layers is not None
        assert float(np.exp(layers.log_rate - burst.log_rate).min()) == pytest.approx(1.2)


def test_the_attention_kernels_of_a_record_become_the_surface_of_a_step():
    # recorded.py's law: 400 TFLOP/s forward, 350 backward, at any length
    record = measured_rates(kernels())
    plan_recipe = recipe("llama-3.1-8b")
    record_terms = measured_terms(record, plan_recipe, resolve_rates(cluster("h200-sxm-141gb"), plan_recipe).terms)
    rates = resolve_rates(cluster("h200-sxm-141gb"), plan_recipe, record_terms).sample()
    used = attention_used(plan_recipe, layouts(micro_batch=2), rates)

    assert record_terms["attention_flop_per_s"].value == pytest.approx(400e12, rel=1e-3)
    assert record_terms["attention_backward_ratio"].value == pytest.approx(350 / 400, rel=1e-3)
    assert used is not None
    assert used.evidence == "record:0d0e5f0e"
    flop = 2 * 2 * 32 * 128 * 4096**2
    assert used.step_s == pytest.approx(flop / 400e12 + 2.5 * flop / 350e12, rel=0.01)


def test_products_and_attention_of_a_record_win_over_the_shipped_surfaces():
    plan_recipe = recipe("llama-3.1-8b")
    machine = cluster("h200-sxm-141gb")
    shipped = resolve_rates(machine, plan_recipe)
    measured = resolve_rates(
        machine, plan_recipe, measured_terms(measured_rates(kernels()), plan_recipe, shipped.terms)
    )

    def sources(rates):
        products = products_used(plan_recipe, layouts(), rates.sample())
        attention = attention_used(plan_recipe, layouts(), rates.sample())
        return {use.evidence for use in products} | {attention.evidence if attention else None}

    assert sources(shipped) == {"kernels:matmul:h200-sxm-141gb:bf16", "kernels:attention:h200-sxm-141gb:bf16"}
    assert sources(measured) == {"record:0d0e5f0e"}


FP8_LAYERS = {
    LayerRun(recipe="fp8"): value(1.3),
    LayerRun(recipe="fp8", compiled=True): value(1.1),
}


@pytest.mark.parametrize(("stack", "ratio", "cast_s"), [("eager", 1.3, 9e-12), ("fsdp-compile", 1.1, 3e-12)])
def test_fp8_takes_compiled_layers_and_casts_but_for_an_eager_stack(stack, ratio, cast_s):
    casts = {LayerRun(recipe="fp8"): value(9e-12), LayerRun(recipe="fp8", compiled=True): value(3e-12)}
    rates = replace(EMPTY, composition_ratio=FP8_LAYERS, cast_s=casts, memory_bytes_per_s={
        "eager": value(2e12), "compiled": value(3e12)})  # fmt: skip
    measured = terms(rates, policy="fp8", stack=stack)
    bandwidth = measured["memory_bytes_per_s"].value

    assert measured["framework_ratio"].value == ratio
    # the equations have 6 bytes for each element of the three operands, of which each is cast twice
    assert measured["cast_fusion_ratio"].value * 6 / bandwidth == pytest.approx(2 * cast_s)


def test_stacks_with_kernels_of_their_own_keep_their_layers_and_casts():
    rates = replace(EMPTY, composition_ratio=FP8_LAYERS, cast_s=FP8_LAYERS, copy_bytes_per_s=value(3e12))

    assert {"framework_ratio", "cast_fusion_ratio"}.isdisjoint(terms(rates, policy="fp8", stack="tuned"))


def test_the_power_of_whole_layers_scales_what_their_kinds_of_work_draw():
    layer = LayerPower(power_w=value(560.0), products_ratio=0.5, attention_ratio=0.1, memory_ratio=0.4)
    rates = replace(
        EMPTY, layer_power={LayerRun(recipe="bf16-fsdp"): layer},
        power_w={
            Activity(kind=ActivityKind.MATMUL, of="bf16"): value(690.0),
            Activity(kind=ActivityKind.MEMORY): value(430.0),
        },
    )  # fmt: skip
    plan_recipe = recipe(stack="eager")
    base = resolve_rates(cluster(), plan_recipe).terms
    measured = measured_terms(rates, plan_recipe, base)

    products_w = 690.0 * base["product_power_ratio"].value
    modelled_w = 0.5 * products_w + 0.1 * base["power_attention_w"].value + 0.4 * 430.0
    assert measured["power_stack_error_ratio"].value == pytest.approx(560.0 / modelled_w)


def test_the_power_of_attention_is_that_of_its_own_window():
    windows = (AttentionPower(head_dim=64.0, power_w=value(450.0), clock_hz=None),
               AttentionPower(head_dim=128.0, power_w=value(580.0), clock_hz=None))  # fmt: skip

    assert terms(replace(EMPTY, attention_power={"bf16": windows}))["power_attention_w"].value == 580.0
    assert "power_attention_w" not in terms(EMPTY)

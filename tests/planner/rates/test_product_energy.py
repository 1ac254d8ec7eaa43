"""The energy of a FLOP is ordered by the width of its type, on every GPU and under every power limit."""

from __future__ import annotations

import numpy as np
import pytest

from planner.hardware.catalogue import load_gpus
from planner.hardware.cluster import make_cluster
from planner.kernels.surface import large_flop_per_s, product_s
from planner.performance.operations import MatMul
from planner.performance.products import law_s, product_times
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import shipped_parameters
from planner.rates.terms import Rates
from planner.units import PICO
from tests.planner.build import cluster, recipe

EDGE = 8192.0
GPUS = load_gpus()
LIMITS = (1.0, 0.7, 0.5, 0.4, 0.3)
ORDER = ("fp4", "fp8", "bf16", "tf32", "fp32")
"""Types by the energy of a FLOP, the least first."""


def rates_of(gpu: str, policy: str, limit: float = 1.0) -> Rates:
    machine = make_cluster(GPUS[gpu], power_limit_w=limit * GPUS[gpu].tdp_w)
    return resolve_rates(machine, recipe(policy=policy)).sample()


def j_per_flop(gpu: str, policy: str) -> float:
    """Of a large product that runs alone, idle power and traffic included; where no law is known it holds the limit."""
    rates = rates_of(gpu, policy)
    surface, power = rates.surface("linear_flop_per_s"), rates.power("linear_flop_per_s")
    square = MatMul(m=np.array([EDGE]), n=EDGE, k=EDGE)
    seconds = product_s(surface, EDGE, EDGE, EDGE) if surface else law_s(square, recipe(policy=policy), rates)
    watts = 0.98 * GPUS[gpu].tdp_w if power is None else power.alone_w(EDGE, EDGE, EDGE, seconds)
    return float(np.ravel(watts * seconds)[0]) / (2 * EDGE**3)


def with_types(*types: str) -> list[str]:
    return [gpu.id for gpu in GPUS.values() if all(each in gpu.peak_flop_per_s for each in types)]


@pytest.mark.parametrize("gpu", with_types("fp8", "bf16"))
def test_a_flop_in_fp8_takes_no_more_energy_than_one_in_bf16(gpu):
    assert j_per_flop(gpu, "fp8") <= j_per_flop(gpu, "bf16")


@pytest.mark.parametrize("gpu", with_types("tf32", "bf16"))
def test_a_flop_in_tf32_takes_more_energy_than_one_in_bf16_and_about_twice_as_much(gpu):
    # both at the limit (RTX 3070): 16 to 38 TFLOP/s
    assert 1.0 < j_per_flop(gpu, "tf32") / j_per_flop(gpu, "bf16") < 2.6


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("gpu", with_types("fp8", "bf16"))
def test_no_power_limit_makes_large_products_in_fp8_slower_than_in_bf16(gpu, limit):
    square = MatMul(m=np.array([EDGE]), n=EDGE, k=EDGE)
    fp8_s, bf16_s = (
        float(np.ravel(product_times([square], recipe(policy=policy), rates).total)[0])
        for policy, rates in ((policy, rates_of(gpu, policy, limit)) for policy in ("fp8", "bf16"))
    )

    assert fp8_s < bf16_s


@pytest.mark.parametrize("arch", ["Hopper", "Blackwell"])
def test_the_energies_of_an_architecture_rise_with_the_width_of_the_type(arch):
    rows = shipped_parameters().rows
    own = {each: rows.get(f"product_pj_per_flop.{each}.{arch}") for each in ORDER}
    known = {each: row.value for each, row in own.items() if row is not None}
    known["tf32"] = rows["product_energy_ratio.tf32"].value * known["bf16"]
    energies = [known[each] for each in ORDER if each in known]

    assert energies == sorted(energies)
    assert rows[f"product_pj_per_flop.fp8-block.{arch}"].value < known["bf16"]


@pytest.mark.parametrize("gpu", with_types("tf32", "bf16"))
def test_no_gpu_takes_less_energy_for_a_flop_on_cuda_cores_than_on_tensor_cores(gpu):
    tf32, fp32 = (rates_of(gpu, policy).power("linear_flop_per_s") for policy in ("tf32", "fp32"))

    assert (tf32 is None) == (fp32 is None)  # AMD's watts are not known
    assert tf32 is None or tf32.j_per_flop <= fp32.j_per_flop


@pytest.mark.parametrize("gpu", with_types("tf32", "bf16"))
def test_tf32_at_half_the_rate_is_throttled_about_as_bf16_is(gpu):
    # MI325X has its BF16 rate from its own measured maximum, its TF32 rate from the peak
    ratio = rates_of(gpu, "tf32").linear_flop_per_s / rates_of(gpu, "bf16").linear_flop_per_s

    assert 0.4 < ratio < 0.7


@pytest.mark.parametrize(
    ("small", "large", "policy", "peaks"),
    [
        ("t4", "quadro-rtx6000-24gb", "fp16", 65 / 130.5),  # 70 and 260 W
        ("a10", "rtx-3090", "fp32", 31.2 / 35.6),  # 150 and 350 W
        ("l4", "l40s", "fp32", 30.3 / 91.6),  # 72 and 350 W
    ],
)
def test_a_card_of_a_low_limit_sustains_less_of_its_peak(small, large, policy, peaks):
    ratio = rates_of(small, policy).linear_flop_per_s / rates_of(large, policy).linear_flop_per_s

    assert 0.6 * peaks < ratio < 0.85 * peaks


def test_the_clock_under_the_limit_as_sold_is_the_one_whose_power_meets_it():
    # L4 in FP32: 0.8519 of 30.3 TFLOP/s at 5 pJ are 129 W, of 70.6 - 9.4 W above idle
    known, gpu = shipped_parameters(), GPUS["l4"]
    full = known.rows["matmul_efficiency.fp32"].value * 30.3e12
    room_w = (known.find("power_at_limit").value - known.find("power_idle").value) * gpu.tdp_w
    clock = (room_w / (known.rows["product_pj_per_flop.fp32.Ada"].value * PICO * full)) ** (
        1.0 / known.find("clock_exponent").value
    )
    term = resolve_rates(cluster("l4"), recipe(policy="fp32")).terms["linear_flop_per_s"]

    assert 0.7 < clock < 0.8  # above the voltage's floor
    assert term.value == pytest.approx(clock * full)
    slopes = {on.row.id: on.power for on in term.rests_on}
    assert slopes == pytest.approx({
        "matmul_efficiency.fp32": 1 - 1 / known.find("clock_exponent").value,
        "product_pj_per_flop.fp32.Ada": -1 / known.find("clock_exponent").value,
    })  # fmt: skip


@pytest.mark.parametrize(("policy", "type_"), [("fp8", "fp8"), ("fp8-blockwise", "fp8-block"), ("tf32", "tf32")])
def test_a_type_that_nobody_measured_takes_its_ratio_of_the_gpu_s_own_energy_in_16_bits(policy, type_):
    narrow, wide = (rates_of("l40s", each).power("linear_flop_per_s") for each in (policy, "bf16"))
    ratio = shipped_parameters().find("product_energy_ratio", type_).value

    assert narrow is not None
    assert wide is not None
    assert narrow.j_per_flop == pytest.approx(ratio * wide.j_per_flop)


def test_an_h20_takes_for_a_flop_what_its_architecture_does_though_nothing_throttles_it():
    power = rates_of("h20-sxm-96gb", "fp8").power("linear_flop_per_s")
    surface = rates_of("h20-sxm-96gb", "fp8").surface("linear_flop_per_s")
    assert power is not None
    assert surface is not None

    assert power.j_per_flop == shipped_parameters().rows["product_pj_per_flop.fp8.Hopper"].value * PICO
    assert (
        power.alone_w(EDGE, EDGE, EDGE, 2 * EDGE**3 / large_flop_per_s(surface))
        < 0.5 * cluster("h20-sxm-96gb").gpu.tdp_w
    )

"""The energy of a FLOP is ordered by the width of its type, on every GPU and under every power limit."""

from __future__ import annotations

import numpy as np
import pytest

from planner.hardware.catalogue import load_gpus
from planner.hardware.cluster import make_cluster
from planner.kernels.surface import large_flop_per_s, product_s
from planner.performance.operations import MatMul, distinct_splits
from planner.performance.products import law_s, product_times
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import shipped_parameters
from planner.rates.terms import Rates
from planner.units import PICO
from tests.planner.build import cluster, layouts, recipe

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
    square, splits = MatMul(m=np.array([EDGE]), n=EDGE, k=EDGE), distinct_splits(recipe(), layouts(dp=8))
    fp8_s, bf16_s = (
        float(np.ravel(product_times([square], splits, recipe(policy=policy), rates).total)[0])
        for policy, rates in ((policy, rates_of(gpu, policy, limit)) for policy in ("fp8", "bf16"))
    )

    assert fp8_s < bf16_s


@pytest.mark.parametrize("arch", ["Hopper", "Blackwell"])
def test_the_energies_of_an_architecture_rise_with_the_width_of_the_type(arch):
    rows, ratio = shipped_parameters().rows, shipped_parameters().find
    wide = rows[f"product_pj_per_flop.bf16.{arch}"].value
    own = [rows.get(f"product_pj_per_flop.{each}.{arch}") for each in ORDER]
    derived = [ratio("product_energy_ratio", each).value * wide if each in ("tf32", "fp32") else None for each in ORDER]
    energies = [row.value if row else value for row, value in zip(own, derived, strict=True) if row or value]

    assert energies == sorted(energies)
    assert rows[f"product_pj_per_flop.fp8-block.{arch}"].value < wide


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

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.evidence import EvidenceKind
from planner.hardware.catalogue import find_gpu
from planner.kernels.catalogue import load_surface
from planner.kernels.nearest import nearest_surface
from planner.kernels.power import PowerLaw
from planner.kernels.surface import large_flop_per_s, product_s

LAW = PowerLaw(idle_ratio=0.13, clock_exponent=2.4, voltage_floor=0.8)


def test_a_measured_gpu_has_its_own_surface():
    own = load_surface("matmul:h200-sxm-141gb:fp8")

    assert nearest_surface("matmul", find_gpu("h200-sxm-141gb"), "fp8", LAW) is own


def test_a_gpu_of_an_architecture_that_nobody_measured_has_none():
    assert nearest_surface("matmul", find_gpu("v100-sxm2-16gb"), "bf16", LAW, peak_of="fp16") is None
    assert nearest_surface("matmul", find_gpu("mi300x-192gb"), "bf16", LAW) is None


def test_attention_follows_the_peak_of_the_relative():
    # gpus.csv: L40 has half the peak of the measured L40S (181 TFLOP/s) and its bandwidth (864 GB/s)
    rescaled, measured = nearest_surface("attention", find_gpu("l40"), "bf16", LAW), load_surface("attention:l40s:bf16")
    # 2 x 8192 FLOP for 4 x 2 bytes: at 362 TFLOP/s traffic is 17 % of the sum; twice the energy per FLOP to spend
    # leaves the clock its most, 1.12

    assert rescaled is not None
    assert rescaled.evidence.kind is EvidenceKind.TRANSFERRED
    assert large_flop_per_s(rescaled) / large_flop_per_s(measured) == pytest.approx(
        1 / (0.83 / (0.5 * 1.12) + 0.17), rel=0.01
    )
    assert nearest_surface("attention", find_gpu("v100-sxm2-16gb"), "bf16", LAW, peak_of="fp16") is None


def test_a_part_with_the_same_limits_takes_the_surface_as_it_is_but_says_whose_it_was():
    surface = nearest_surface("matmul", find_gpu("h800-sxm5-80gb"), "bf16", LAW)

    assert surface is not None
    assert surface.evidence.kind is EvidenceKind.TRANSFERRED
    own = load_surface("matmul:h100-sxm5-80gb:bf16")
    assert large_flop_per_s(surface) == pytest.approx(large_flop_per_s(own))


def test_a_product_that_waits_for_memory_follows_the_bandwidth_of_the_relative():
    # gpus.csv: A100 SXM 40 GB has 1555 GB/s, the measured SXM 80 GB part 2039, the same peak
    rescaled = nearest_surface("matmul", find_gpu("a100-sxm4-40gb"), "bf16", LAW)
    measured = load_surface("matmul:a100-sxm4-80gb:bf16")
    assert rescaled is not None
    ratio = product_s(rescaled, 16.0, 8192.0, 8192.0) / product_s(measured, 16.0, 8192.0, 8192.0)

    assert ratio == pytest.approx(2039 / 1555, rel=0.05)
    assert rescaled.spread > measured.spread


@pytest.mark.parametrize(
    ("limit_w", "gain"),
    [
        (1000.0, 1.10),  # with watts to spare, the rate follows the clock
        (200.0, 1.00),  # a limit that lowers the clock anyway leaves no use for a higher one
    ],
)
def test_products_follow_the_clock_under_load_where_the_power_limit_allows_it(limit_w, gain):
    sold = find_gpu("rtx-4090")
    assert sold.boost_hz is not None
    slow, fast = (replace(sold, tdp_w=limit_w, load_hz=ratio * sold.boost_hz) for ratio in (1.0, 1.1))

    surfaces = [nearest_surface("matmul", gpu, "bf16", LAW) for gpu in (slow, fast)]

    rates = [large_flop_per_s(surface) for surface in surfaces if surface is not None]
    assert rates[1] / rates[0] == pytest.approx(gain, abs=0.03)

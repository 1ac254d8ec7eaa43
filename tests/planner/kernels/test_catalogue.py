from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from planner.hardware.catalogue import load_gpus
from planner.kernels.catalogue import POINTS, kernel_rows, load_surface
from planner.kernels.collectives import COLLECTIVES, large_bytes_per_s
from planner.kernels.surface import attention_s, product_s


def test_every_surface_is_of_a_catalogued_gpu_and_has_a_source_with_a_date():
    for row in kernel_rows().values():
        assert row.gpu in load_gpus()
        assert "@" in row.evidence.source
        assert row.evidence.date


def test_the_lines_of_a_surface_follow_one_another():
    surfaces = [line.partition(",")[0] for line in POINTS.read_text().splitlines()[1:]]

    assert len([name for name, _ in groupby(surfaces)]) == len(set(surfaces)) == len(kernel_rows())


def test_a_product_on_an_h100_takes_what_was_measured_less_the_gain_of_a_short_burst():
    # gemm_rates: h100_sxm bfloat16 8192 x 4096 x 4096, median over ten stacks 353 us; sustained over burst 0.89 there
    surface = load_surface("matmul:h100-sxm5-80gb:bf16")

    assert product_s(surface, 8192.0, 4096.0, 4096.0) == pytest.approx(353e-6 / 0.89, rel=0.05)


def test_attention_on_an_h100_takes_what_was_measured_of_grouped_queries():
    # attention_forward: h100_sxm bfloat16, 32 heads of 128 in 4 sequences of 4096, 8 key/value heads, median over
    # stacks: 4 x 32 x 2 x 4096^2 x 128 FLOP at 502 TFLOP/s
    surface, flop = load_surface("attention:h100-sxm5-80gb:bf16"), 4 * 32 * 2 * 4096.0**2 * 128

    assert attention_s(surface, flop, 128.0, 128.0, 4096.0) == pytest.approx(flop / 502e12, rel=0.05)


def test_no_surface_exceeds_the_peak_of_its_gpu():
    for name, row in kernel_rows().items():
        if row.operation in COLLECTIVES:
            continue
        compute = "fp8" if row.compute == "fp8-block" else row.compute
        assert np.exp(load_surface(name).log_rate.max()) < load_gpus()[row.gpu].peak_flop_per_s[compute]


def test_no_collective_exceeds_the_links_of_its_gpu_but_for_what_the_switch_reduces():
    for name, row in kernel_rows().items():
        if row.operation in COLLECTIVES:
            # interconnect.csv: all-reduce in the switch moves up to 1.36 times what a ring does
            most = 1.36 if row.operation == "all_reduce" else 1.0
            assert large_bytes_per_s(load_surface(name)) < most * load_gpus()[row.gpu].nvlink_bytes_per_s


def test_no_attention_comes_near_the_peak():
    # arXiv 2407.08608: at most 75 % on H100; the exponentials of the softmax take the rest
    for name, row in kernel_rows().items():
        if row.operation == "attention":
            peak = load_gpus()[row.gpu].peak_flop_per_s["bf16"]
            assert np.exp(load_surface(name).log_rate.max()) < 0.8 * peak


def test_narrow_products_name_what_their_cast_takes():
    h100 = kernel_rows()["matmul:h100-sxm5-80gb:fp8"].cast_bytes_per_s

    assert h100 is not None
    assert 0.6 * 3.35e12 < h100 < 3.35e12  # of the memory's bandwidth
    assert kernel_rows()["matmul:h100-sxm5-80gb:bf16"].cast_bytes_per_s is None

"""The gain of FP8 products, from the shipped surfaces."""

from __future__ import annotations

import pytest

from planner.claims.evidence.kernels import product_gain
from planner.kernels.catalogue import load_surface
from planner.kernels.surface import product_s


def test_a_gain_is_the_ratio_of_two_times_with_both_spreads():
    case = product_gain("h100-sxm5-80gb", 4096)
    bf16, fp8 = (load_surface(f"matmul:h100-sxm5-80gb:{name}") for name in ("bf16", "fp8"))
    expected = float(product_s(bf16, 4096, 4096, 4096) / product_s(fp8, 4096, 4096, 4096))

    assert case.mid == pytest.approx(expected)
    assert case.low < case.mid < case.high
    assert 1.0 < case.mid < 2.0  # H100's peaks are a factor of 2 apart

from __future__ import annotations

import numpy as np
import pytest

from tools.kernel_rows import Products


def products(cast_share: float) -> Products:
    """Two products at 100 FLOP/s, the second behind a cast that takes a share of its time."""
    m, n, k = np.full(2, 10.0), np.array([1000.0, 10.0]), np.full(2, 10.0)
    alone_s = 2 * m * n * k / 100
    burst_s = alone_s + np.array([0.0, alone_s[1] * cast_share / (1 - cast_share)])
    return Products(
        system="test", gpu="test", compute="fp8", m=m, n=n, k=k, burst_s=burst_s, sustained_ratio=np.full(2, 0.9),
        cast_s_per_element=0.3, stack_spread=0.0,
    )  # fmt: skip


def test_a_cast_leaves_a_product_no_faster_than_the_fastest_that_it_hardly_touches():
    usual_s = 10 * 10 * 0.3
    own = products(cast_share=0.5)
    fastest = own.flop[0] / (own.burst_s[0] - usual_s)

    assert usual_s > 0.5 * own.burst_s[1]
    assert own.cast_s[0] == pytest.approx(usual_s)
    assert own.flop[1] / (own.burst_s - own.cast_s)[1] == pytest.approx(fastest)


def test_what_is_sustained_takes_longer_than_a_burst():
    own = products(cast_share=0.5)

    assert own.product_s == pytest.approx((own.burst_s - own.cast_s) / 0.9)

"""One law for watts and clock: what a product draws by shape, and what a lower limit leaves of its clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.kernels.power import PowerLaw, ProductPower, product_bytes

LAW = PowerLaw(idle_ratio=0.13, clock_exponent=2.4, voltage_floor=0.8)
H200 = ProductPower(
    law=LAW, compute="bf16", sold_w=700.0, limit_w=700.0, held_w=686.0, j_per_flop=1.0e-12, j_per_byte=40e-12
)

sizes = st.floats(16, 65536)


def test_a_large_product_holds_the_limit():
    # docs/kernels.md: H200 in BF16 sustains about 690 TFLOP/s at 691 of 700 W; 91 W + 690 W are more than that
    assert H200.alone_w(8192.0, 8192.0, 8192.0, 2 * 8192.0**3 / 690e12) == 686.0


def test_a_product_that_does_little_draws_idle_power_its_flop_and_its_bytes():
    # 16 x 8192 x 8192 in 60 us: 2.15 GFLOP at 1 pJ, 134.7 MB at 40 pJ, 0.13 x 700 W idle
    joules = 2 * 16 * 8192**2 * 1e-12 + ((16 * 8192 + 8192**2) * 2 + 2 * 16 * 8192) * 40e-12

    assert H200.alone_w(16.0, 8192.0, 8192.0, 60e-6) == pytest.approx(91 + joules / 60e-6)
    assert 150 < H200.alone_w(16.0, 8192.0, 8192.0, 60e-6) < 250


@pytest.mark.parametrize(("compute", "bytes_each"), [("bf16", 2.0), ("fp8", 1.0), ("fp4", 0.5625)])
def test_a_product_moves_its_operands_in_their_type_and_its_result_in_16_bits(compute, bytes_each):
    assert product_bytes(2.0, 3.0, 5.0, compute) == (2 * 5 + 3 * 5) * bytes_each + 2 * 2 * 3


def test_the_clock_has_the_power_s_root_above_the_voltage_s_floor_and_its_share_below():
    lowest = 0.8**2.4

    assert LAW.clock(1.0) == 1.0
    assert LAW.clock(0.7) == pytest.approx(0.7 ** (1 / 2.4))
    assert LAW.clock(lowest) == pytest.approx(0.8)
    assert LAW.clock(lowest / 2) == pytest.approx(0.4)


def test_what_draws_less_than_a_lower_limit_keeps_its_clock():
    limited = replace(H200, limit_w=400.0)

    assert limited.clock(390.0) == 1.0
    assert limited.limited_power_ratio(390.0) == pytest.approx(390 / 400)
    assert limited.limited_power_ratio(686.0) == 1.0
    assert limited.clock(686.0) < limited.clock(500.0) < 1.0


@given(m=sizes, n=sizes, k=sizes, flop_per_s=st.floats(1e9, 1e15))
def test_no_product_draws_less_than_idle_or_more_than_is_held(m, n, k, flop_per_s):
    assert H200.idle_w <= H200.alone_w(m, n, k, 2 * m * n * k / flop_per_s) <= H200.held_w


@given(drawn_w=st.floats(100, 686), limits=st.tuples(st.floats(100, 700), st.floats(100, 700)))
def test_a_lower_limit_never_raises_clock_or_watts(drawn_w, limits):
    lower, higher = (replace(H200, limit_w=watts) for watts in sorted(limits))

    assert lower.clock(drawn_w) <= higher.clock(drawn_w) <= 1.0
    assert min(drawn_w, lower.limit_w) <= min(drawn_w, higher.limit_w)


@given(drawn_w=st.floats(300, 686))
def test_energy_is_least_where_the_voltage_stops_to_fall(drawn_w):
    # E = P / f; P = idle + dynamic f^2.4 above the floor, idle + a share of f below: it falls to the floor, then rises
    limits_w = np.linspace(120.0, drawn_w, 2000)
    energy = np.array([w / float(replace(H200, limit_w=w).clock(drawn_w)) for w in limits_w])
    floor_w = 91 + (drawn_w - 91) * 0.8**2.4

    assert limits_w[np.argmin(energy)] == pytest.approx(floor_w, abs=2.0)
    assert energy.min() < energy[-1]

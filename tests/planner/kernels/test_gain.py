from __future__ import annotations

import numpy as np
import pytest

from planner.kernels.gain import STRONG_GAIN, NarrowTypes, narrow_gain
from planner.kernels.surface import MATMUL_AXES, Surface
from tests.planner.build import SAID


def level(flop_per_s: float, floor_s: float = 0.0) -> Surface:
    """The same rate at all shapes."""
    log_rate = np.full([axis.count for axis in MATMUL_AXES], np.log(flop_per_s))
    return Surface(
        id="level", axes=MATMUL_AXES, log_rate=log_rate, floor_s=floor_s, spread=0, stack_spread=0, evidence=SAID
    )


def types(cast_s_per_element: float = 0.0, **narrow: float) -> NarrowTypes:
    return NarrowTypes(wide=level(1e12), narrow=level(2e12, **narrow), cast_s_per_element=cast_s_per_element)


def test_without_casts_the_gain_is_that_of_the_products():
    assert types().gain(1024.0, 4096.0, 4096.0) == pytest.approx(2.0)


def test_casts_are_paid_once_for_each_tensor_of_a_product():
    # products: 3 x 2 x 1024^3 FLOP = 6.44 ms at 1 TFLOP/s, 3.22 ms at 2; casts: 3 x 1024^2 x 1 ns = 3.15 ms
    gain = types(1e-9).gain(1024.0, 1024.0, 1024.0)

    assert gain == pytest.approx(6.4425 / (3.2212 + 3.1457), rel=1e-4)


def test_square_weights_pay_from_the_size_where_what_is_saved_exceeds_the_casts():
    # at h x h and 4096 tokens: saved 3 x 4096 h^2 / 1e12 s, cast (2 x 4096 h + h^2) x 1e-9 s; equal at h = 726
    gain = narrow_gain(types(1e-9), 4096.0, 8192.0, 8192.0, 8192.0)

    assert gain.pays_from_hidden == 768  # in steps of 256
    assert gain.gain_ratio == pytest.approx(types(1e-9).gain(4096.0, 8192.0, 8192.0))
    assert gain.strong_from_hidden is not None
    assert gain.strong_from_hidden > gain.pays_from_hidden


def test_where_casts_cost_more_than_any_product_saves_no_size_pays():
    gain = narrow_gain(types(1e-6), 4096.0, 8192.0, 8192.0, 8192.0)

    assert gain.gain_ratio < 1
    assert gain.pays_from_hidden is None
    assert gain.pays_from_tokens is None


def test_few_tokens_do_not_pay_where_a_launch_has_a_floor():
    gain = narrow_gain(types(floor_s=1e-3), 4096.0, 1024.0, 1024.0, 1024.0)

    # 2 m 1024^2 / 1e12 s in the wide type reaches the floor of a millisecond at m = 477
    assert gain.pays_from_tokens == 512


def test_the_sizes_are_those_of_the_product_itself_scaled_with_the_hidden_size():
    # 4 h x h at 4096 tokens: saved 3 x 4096 x 4 h^2 / 1e12 s, cast (4096 x 5 h + 4 h^2) x 1e-9 s; equal at h = 454
    gain = narrow_gain(types(1e-9), 4096.0, 16384.0, 4096.0, 4096.0)

    assert gain.pays_from_hidden == 512
    assert gain.hidden == 4096


@pytest.mark.parametrize("hidden", [600.0, 726.0, 768.0, 1000.0, 1800.0, 6000.0, 20000.0])
@pytest.mark.parametrize("m", [100.0, 4096.0, 50000.0])
def test_what_is_said_of_other_sizes_never_denies_what_is_said_of_this_one(hidden, m):
    gain = narrow_gain(types(1e-9, floor_s=1e-3), m, 3.5 * hidden, hidden, hidden)

    for wanted, size, own_size in (
        (1.0, gain.pays_from_hidden, hidden),
        (STRONG_GAIN, gain.strong_from_hidden, hidden),
        (1.0, gain.pays_from_tokens, m),
    ):
        if gain.gain_ratio >= wanted:
            assert size is not None
            assert size <= own_size
        else:
            assert size is None or size > own_size

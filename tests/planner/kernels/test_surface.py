from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.evidence import Evidence, EvidenceKind
from planner.kernels.catalogue import kernel_rows, load_surface
from planner.kernels.surface import ATTENTION_AXES, Axis, Surface, attention_s, product_s

SAID = Evidence(id="test", kind=EvidenceKind.GIVEN, what="said by the test", source="this test")


def flat(log_rate: np.ndarray, *axes: Axis, floor_s: float = 0.0) -> Surface:
    return Surface(id="test", axes=axes, log_rate=log_rate, floor_s=floor_s, spread=0, stack_spread=0, evidence=SAID)


LINE = flat(np.log(np.array([1e9, 4e9, 8e9])), Axis(name="size", first=10, count=3), floor_s=1e-6)


def test_the_rate_at_a_node_is_the_node():
    assert LINE.rate(2048.0) == pytest.approx(4e9)


def test_between_two_nodes_the_logarithm_of_the_rate_is_linear_in_that_of_the_size():
    assert LINE.rate(1024.0 * np.sqrt(2.0)) == pytest.approx(
        2e9
    )  # half way between 1e9 and 4e9 is their geometric mean


def test_outside_the_box_the_rate_is_that_of_its_edge_and_the_time_grows_with_the_work():
    assert LINE.rate(np.array([1.0, 1e6])) == pytest.approx([1e9, 8e9])
    assert LINE.seconds(8e9, 1e6) == pytest.approx(1.0)


def test_no_launch_takes_less_than_the_floor():
    assert LINE.seconds(1.0, 1024.0) == 1e-6


def test_three_dimensions_interpolate_each_on_its_own():
    axes = tuple(Axis(name=name, first=0, count=2) for name in "abc")
    steps = np.log(np.array([2.0, 3.0, 5.0]))
    corners = sum(step * np.arange(2).reshape([-1 if d == i else 1 for d in range(3)]) for i, step in enumerate(steps))
    cube = flat(np.asarray(corners), *axes)

    # powers of the sizes: 2^log2(a) * 3^log2(b) * 5^log2(c)
    assert cube.rate(np.sqrt(2.0), 2.0, np.sqrt(2.0)) == pytest.approx(np.sqrt(2.0) * 3.0 * np.sqrt(5.0))


def test_a_product_of_few_rows_takes_as_long_as_the_reading_of_its_weights():
    h100 = load_surface("matmul:h100-sxm5-80gb:bf16")
    single, sixteen = (float(product_s(h100, rows, 16384.0, 16384.0)) for rows in (1.0, 16.0))

    assert single == sixteen
    assert single > 2 * 16384**2 / 3.35e12  # 16-bit weights at the memory bandwidth of gpus.csv


def test_one_node_stands_for_every_size():
    plane = flat(np.log(np.array([[1e9, 4e9]])), Axis(name="a", first=7, count=1), Axis(name="b", first=0, count=2))

    assert plane.rate(np.array([16.0, 4096.0]), 2.0) == pytest.approx([4e9, 4e9])


def test_a_longer_sequence_than_was_measured_fills_a_gpu_as_more_heads_do():
    # the rate of 2 heads over 2^14 tokens, the longest, is that of 1 head over 2^15
    log_rate = np.zeros([axis.count for axis in ATTENTION_AXES]) + np.log(np.exp2(np.arange(13.0)))[None, :, None]
    surface = flat(log_rate, *ATTENTION_AXES)

    assert attention_s(surface, 8.0, 128.0, 2.0, 16384.0) == pytest.approx(8.0 / 2.0)
    assert attention_s(surface, 8.0, 128.0, 1.0, 32768.0) == pytest.approx(8.0 / 2.0)
    assert attention_s(surface, 8.0, 128.0, 1.0, 16384.0) == pytest.approx(8.0 / 1.0)


SIZES = st.floats(min_value=1.0, max_value=2e5)


def of(operation: str) -> list[str]:
    return sorted(name for name, row in kernel_rows().items() if row.operation == operation)


MORE = st.floats(min_value=1, max_value=8)


@given(name=st.sampled_from(of("matmul")), m=SIZES, n=SIZES, k=SIZES, more=MORE)
def test_a_product_never_takes_less_time_for_a_larger_dimension(name, m, n, k, more):
    surface = load_surface(name)
    time = product_s(surface, m, n, k) * (1 - 1e-3)  # four digits are stored

    assert product_s(surface, more * m, n, k) >= time
    assert product_s(surface, m, more * n, k) >= time
    assert product_s(surface, m, n, more * k) >= time


@given(name=st.sampled_from(of("attention")), head_dim=st.floats(16, 256), heads=SIZES, length=SIZES, more=MORE)
def test_attention_never_takes_less_time_for_a_larger_dimension(name, head_dim, heads, length, more):
    surface = load_surface(name)

    def seconds(size: float, count: float, tokens: float) -> float:
        return float(attention_s(surface, 2 * count * tokens**2 * size, size, count, tokens))

    time = seconds(head_dim, heads, length) * (1 - 1e-3)  # four digits are stored
    assert seconds(more * head_dim, heads, length) >= time
    assert seconds(head_dim, more * heads, length) >= time
    assert seconds(head_dim, heads, more * length) >= time

"""Operands of bare products: shapes by role, as training holds them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from probes.precisions.linear.products import high_operands, quantise, rotate, shape_of  # noqa: E402
from tests.probes.build import CPU  # noqa: E402

M, N, K = 4, 6, 8


@pytest.mark.parametrize(
    ("role", "rows", "inner", "columns"),
    # y = x w^T is [M, K] x [K, N]; dx = dy w is [M, N] x [N, K]; dw = dy^T x is [N, M] x [M, K]
    [("forward", M, K, N), ("dgrad", M, N, K), ("wgrad", N, M, K)],
)
def test_a_role_multiplies_the_matrices_of_its_pass(role: str, rows: int, inner: int, columns: int) -> None:
    left, right = high_operands(role, M, N, K, CPU)

    assert shape_of(role, M, N, K) == (rows, inner, columns)
    assert (tuple(left.shape), tuple(right.shape)) == ((rows, inner), (inner, columns))


def test_weights_are_transposed_views_forward_and_gradients_in_the_weights_product() -> None:
    assert high_operands("forward", M, N, K, CPU)[1].stride() == (1, K)
    assert high_operands("wgrad", M, N, K, CPU)[0].stride() == (1, N)


def test_operands_take_turns() -> None:
    calls: list[str] = []
    product = rotate([lambda: calls.append("a"), lambda: calls.append("b")])

    for _ in range(3):
        product()

    assert calls == ["a", "b", "a"]


def test_a_tensor_is_scaled_to_the_largest_number_of_its_format() -> None:
    x = torch.tensor([[1.0, -2.0], [0.5, 0.25]])

    values, scale = quantise(x, torch.float8_e4m3fn, None)
    # e4m3 ends at 448 (OCP 8-bit floating point, v1.0): the largest entry becomes -448
    assert scale.item() == pytest.approx(2.0 / 448)
    assert values.float()[0, 1].item() == -448.0


def test_a_row_is_scaled_by_a_power_of_two() -> None:
    x = torch.tensor([[448.0, 1.0], [450.0, 1.0], [0.875, 0.5]])

    _, scale = quantise(x, torch.float8_e4m3fn, 1)

    # 448 / 448 = 1 fits exactly, 450 needs 2, 0.875 / 448 = 2^-9
    assert scale.flatten().tolist() == [1.0, 2.0, 2.0**-9]

"""MXFP8 products, with the operands that torch's kernel for Blackwell gets."""

from __future__ import annotations

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchao")

from probes.precisions.interface import ROLES  # noqa: E402
from probes.precisions.linear.mx_linear import BLOCK, _torchao, make_mx  # noqa: E402
from probes.precisions.linear.products import shape_of  # noqa: E402
from tests.probes.build import CPU  # noqa: E402


@pytest.mark.parametrize("role", ROLES)
def test_a_bare_mx_product_is_nothing_but_the_product(monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    operands: list[tuple[Any, ...]] = []

    def scaled_mm(*given: Any, **_: Any) -> Any:
        operands.append(given)
        return given[0].new_empty((given[0].shape[0], given[1].shape[1]), dtype=torch.bfloat16)

    monkeypatch.setattr(torch, "_scaled_mm", scaled_mm)
    product = make_mx(role, 256, 384, 512, CPU, 1, emulate=False)

    for _ in range(2):
        product()

    rows, inner, columns = shape_of(role, 256, 384, 512)
    first, second = operands
    assert (tuple(first[0].shape), tuple(first[1].shape)) == ((rows, inner), (inner, columns))
    # one scale per 32 elements; 256, 384 and 512 are multiples of the tiles of 128 x 4 scales, so nothing is filled up
    assert (first[2].numel(), first[3].numel()) == (rows * inner // BLOCK, columns * inner // BLOCK)
    assert all(scale.is_contiguous() and scale.dtype == torch.float8_e8m0fnu for scale in first[2:4])
    # A call that put scales into their order would hand over new tensors each time.
    assert [x.data_ptr() for x in first[:4]] == [x.data_ptr() for x in second[:4]]


def test_torchaos_layer_is_found_in_its_place_of_0_17_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchao.prototype.mx_formats.mx_linear", _torchao())
    monkeypatch.setitem(sys.modules, "torchao.prototype.moe_training.mxfp8_linear", None)

    make_mx("forward", 32, 64, 96, CPU, 1, emulate=True)()

"""Rounding to a format, bit for bit as torch's own casts do it, and against tables of the specifications."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import UsageError
from probes.numerics.formats.elements import FORMATS, find_format, rounded

torch = pytest.importorskip("torch")

TORCH = {"fp16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def every_sixteen_bit_float() -> torch.Tensor:
    """All finite FP32 numbers whose lower 16 bits are zero, and each with its neighbours on either side."""
    top = torch.arange(0, 2**16, dtype=torch.int64) << 16
    bits = torch.cat([top, top + 1, top - 1, top + 0x8000, top + 0x7FFF, top + 0x8001]) & 0xFFFFFFFF
    values = torch.from_numpy(bits.numpy().astype(np.uint32).view(np.float32).copy())
    return values[torch.isfinite(values)]


@pytest.mark.parametrize("name", TORCH)
def test_rounding_is_torchs_cast_bit_for_bit(name):
    element = find_format(name)
    x = every_sixteen_bit_float()
    inside = x if name in ("fp16", "bf16") else x.clamp(-element.largest, element.largest)

    expected = inside.to(getattr(torch, TORCH[name])).float()

    assert torch.equal(rounded(x, element).view(torch.int32), expected.view(torch.int32))


def test_fp4_holds_the_sixteen_numbers_of_the_specification():
    numbers = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    x = torch.linspace(-8.0, 8.0, 4001)

    values = rounded(x, find_format("e2m1"))

    assert set(values.abs().unique().tolist()) == set(numbers.tolist())
    assert torch.equal(rounded(numbers, find_format("e2m1")), numbers)


@pytest.mark.parametrize(
    ("x", "expected"),
    [(0.25, 0.0), (0.26, 0.5), (0.75, 1.0), (1.25, 1.0), (1.75, 2.0), (2.5, 2.0), (5.0, 4.0), (9.0, 6.0)],
)  # fmt: skip
def test_fp4_rounds_ties_to_even_and_saturates(x, expected):
    assert float(rounded(torch.tensor([x]), find_format("e2m1"))) == expected
    assert float(rounded(torch.tensor([-x]), find_format("e2m1"))) == -expected


def test_nan_stays_and_infinity_saturates_or_stays():
    x = torch.tensor([float("nan"), float("inf"), -float("inf")])

    assert [str(v) for v in rounded(x, find_format("e4m3")).tolist()] == ["nan", "448.0", "-448.0"]
    assert [str(v) for v in rounded(x, find_format("fp16")).tolist()] == ["nan", "inf", "-inf"]


@pytest.mark.parametrize(
    ("name", "smallest", "beyond"),
    [("fp16", 2.0**-24, 65520.0), ("e4m3", 2.0**-9, 464.0), ("e5m2", 2.0**-16, 61440.0), ("e2m1", 0.5, 7.0)],
)
def test_limits_are_those_of_the_specifications(name, smallest, beyond):
    element = find_format(name)

    assert element.smallest == smallest
    assert element.beyond_from == beyond
    assert float(rounded(torch.tensor([element.flushed_up_to]), element)) == 0.0
    assert float(rounded(torch.tensor([element.flushed_up_to * 1.001]), element)) == smallest


def test_an_unknown_format_is_refused_by_name():
    with pytest.raises(UsageError, match="unknown number format `e3m4`"):
        find_format("e3m4")
    assert len({element.id for element in FORMATS}) == 5

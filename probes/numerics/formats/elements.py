"""Element formats, and the exact rounding of FP32 values to them: to nearest, ties to even, saturating.

Sources: FP16 and BF16 as in IEEE 754-2019 and torch; E4M3 and E5M2 are the FP8 formats of Micikevicius et al.
(arXiv 2209.05433); E2M1 is the FP4 format of the OCP Microscaling Formats specification v1.0, section 5.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.errors import UsageError
from planner.lazy import dataclass

if TYPE_CHECKING:
    import torch

FP32_TOP_EXPONENT = 127
"""Exponent of the largest power of two in FP32."""
_EXPONENT_BITS = 0x7F800000
"""Exponent bits of an FP32 number; by themselves they are the largest power of two up to its magnitude."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementFormat:
    """A binary floating-point format with subnormals."""

    id: str
    mantissa_bits: int
    """Stored bits, without the leading 1."""
    min_exponent: int
    """Exponent of the smallest normal number."""
    largest: float
    """Largest finite number."""

    @property
    def smallest(self) -> float:
        """Smallest positive number, a subnormal one."""
        return float(2.0 ** (self.min_exponent - self.mantissa_bits))

    @property
    def flushed_up_to(self) -> float:
        """Largest magnitude that becomes zero: half the smallest number. The tie is included, because zero is even."""
        return self.smallest / 2.0

    @property
    def beyond_from(self) -> float:
        """Half a step above the largest number: greater magnitudes round beyond it, and so does a tie, except in E4M3.

        The tie goes to the even neighbour, which in E4M3 is the largest number itself.
        """
        return self.largest + float(2.0 ** (_exponent_of(self.largest) - self.mantissa_bits)) / 2.0


def _exponent_of(value: float) -> int:
    from math import frexp

    return frexp(value)[1] - 1


FORMATS: tuple[ElementFormat, ...] = (
    ElementFormat(id="fp16", mantissa_bits=10, min_exponent=-14, largest=65504.0),
    ElementFormat(id="bf16", mantissa_bits=7, min_exponent=-126, largest=(2.0 - 2.0**-7) * 2.0**127),
    ElementFormat(id="e4m3", mantissa_bits=3, min_exponent=-6, largest=448.0),
    ElementFormat(id="e5m2", mantissa_bits=2, min_exponent=-14, largest=57344.0),
    ElementFormat(id="e2m1", mantissa_bits=1, min_exponent=0, largest=6.0),
)
"""The formats that training uses below FP32."""


def find_format(name: str) -> ElementFormat:
    """Return the format with this id.

    Raises:
        UsageError: no format has this id.
    """
    by_id = {element.id: element for element in FORMATS}
    if name not in by_id:
        raise UsageError(f"unknown number format `{name}`", hint=f"use one of {', '.join(by_id)}")
    return by_id[name]


def rounded(x: torch.Tensor, element: ElementFormat) -> torch.Tensor:
    """Round FP32 values to a format and return them in FP32; NaN stays NaN.

    Rounding is to nearest with ties to even, subnormals included. A value beyond the largest number becomes infinite in
    FP16 and BF16, so that a step of training is lost; in other formats it becomes the largest number, as in casts of
    scaled tensors.

    Args:
        x: FP32, of any shape.
        element: the format.
    """
    import torch

    if element.id in ("fp16", "bf16"):
        return x.to(torch.float16 if element.id == "fp16" else torch.bfloat16).to(torch.float32)
    below = (x.detach().view(torch.int32) & _EXPONENT_BITS).view(torch.float32)  # 2^floor(log2 |x|)
    step = below.clamp_(min=2.0**element.min_exponent, max=2.0**FP32_TOP_EXPONENT).mul_(2.0**-element.mantissa_bits)
    return torch.div(x, step).round_().mul_(step).clamp_(-element.largest, element.largest)

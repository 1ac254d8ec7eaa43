"""PyTorch operators for which a plan has a rate: matrix products and fused causal attention, by their input shapes.

The positions of inputs follow the operators' schemas (aten/src/ATen/native/native_functions.yaml of PyTorch 2.13;
earlier versions agree in the inputs that are read).
"""

from __future__ import annotations

from planner.imported.formats.trace_events import Call
from planner.lazy import dataclass

FLOAT8 = ("c10::Float8_e4m3fn", "c10::Float8_e5m2")
RECIPES = {"c10::BFloat16": "bf16-pure", "c10::Half": "fp16"}
"""Map from the type of both operands to the record's recipe for such a product."""
PRODUCTS = {"aten::mm": 0, "aten::addmm": 1, "aten::_addmm_activation": 1, "aten::_scaled_mm": 0}
"""Operators, with the position of their first operand; the second one follows."""
_SCALE = 2
"""Position of the first operand's scale in `_scaled_mm`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductShape:
    """A matrix product `[m, k] x [k, n]` in one recipe."""

    m: int
    n: int
    k: int
    recipe: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """Causal attention of whole sequences in one recipe."""

    batch: int
    length: int
    heads: int
    kv_heads: int
    head_dim: int
    recipe: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _AttentionOperator:
    query: int
    """Position of the query; the keys follow."""
    causal: int
    """Position of the input for causal attention: `True`, or a kind of mask above 0."""
    absent: tuple[int, ...]
    """Positions of inputs that must be absent: the lengths of packed sequences and the bias."""
    heads_first: bool
    """Whether the axes are batch, head, length, size; otherwise they are batch, length, head, size."""


FORWARD = {
    "aten::_flash_attention_forward": _AttentionOperator(query=0, causal=8, absent=(3, 4), heads_first=False),
    "aten::_efficient_attention_forward": _AttentionOperator(query=0, causal=9, absent=(3, 4, 5), heads_first=False),
    "aten::_cudnn_attention_forward": _AttentionOperator(query=0, causal=10, absent=(3, 4, 5), heads_first=True),
}
"""The innermost operators of forward attention, whose kernels are only attention; a bias is rejected like packing."""
BACKWARD = {
    "aten::_flash_attention_backward": _AttentionOperator(query=1, causal=11, absent=(6, 7), heads_first=False),
    "aten::_efficient_attention_backward": _AttentionOperator(query=1, causal=14, absent=(4, 6, 7), heads_first=False),
    "aten::_cudnn_attention_backward": _AttentionOperator(query=1, causal=14, absent=(8, 9, 10), heads_first=True),
}


def product_of(call: Call) -> ProductShape | None:
    """Matrix product of a call; None if the call is not a product or its type is unknown."""
    operator = call.operator
    first = PRODUCTS.get(operator.name)
    if first is None or len(operator.dims) < first + 2 or len(operator.types) < first + 2:
        return None
    left, right = operator.dims[first : first + 2]
    recipe = _recipe(call, operator.types[first : first + 2])
    if len(left) != 2 or len(right) != 2 or left[1] != right[0] or recipe is None:
        return None
    return ProductShape(m=left[0], n=right[1], k=left[1], recipe=recipe)


def _recipe(call: Call, types: tuple[str, ...]) -> str | None:
    if call.operator.name == "aten::_scaled_mm":
        return _scaled_recipe(call) if all(name in FLOAT8 for name in types) else None
    if types == ("float", "float"):
        return float_recipe(call.kernels)
    return RECIPES.get(types[0]) if types[0] == types[1] else None


def _scaled_recipe(call: Call) -> str | None:
    """Recipe of an FP8 product, from its first operand's scale: a single one, one per row or one per 32 elements."""
    operator = call.operator
    if len(operator.dims) <= _SCALE or len(operator.types) <= _SCALE:
        return None
    if operator.types[_SCALE] == "c10::Float8_e8m0fnu":
        return "mxfp8"
    scale, rows = operator.dims[_SCALE], operator.dims[0][0] if operator.dims[0] else 0
    if all(size == 1 for size in scale):
        return "fp8"
    return "fp8-rowwise" if scale in ((rows, 1), (rows,)) else None


def float_recipe(kernels: tuple[str, ...]) -> str | None:
    """Arithmetic of a product of FP32 tensors, from the names of its kernels; None if they do not show it."""
    text = " ".join(kernels).lower()
    if "tf32" in text:
        return "tf32"
    return "fp32" if "sgemm" in text or "ffma" in text or "simt" in text else None


def attention_of(call: Call, operators: dict[str, _AttentionOperator]) -> AttentionShape | None:
    """Attention of a call, forward or backward; None if it is not attention, not causal, or packed."""
    operator = call.operator
    spec = operators.get(operator.name)
    if spec is None or max(spec.causal, *spec.absent) >= len(operator.dims) or spec.causal >= len(operator.values):
        return None
    query, key = operator.dims[spec.query : spec.query + 2]
    recipe = RECIPES.get(operator.types[spec.query]) if spec.query < len(operator.types) else None
    present = any(operator.dims[position] for position in spec.absent)
    if len(query) != 4 or len(key) != 4 or present or recipe is None or not _is_causal(operator.values[spec.causal]):
        return None
    batch, heads, length, size = query if spec.heads_first else (query[0], query[2], query[1], query[3])
    kv_heads, kv_length = (key[1], key[2]) if spec.heads_first else (key[2], key[1])
    if kv_length != length or kv_heads > heads:
        return None
    return AttentionShape(batch=batch, length=length, heads=heads, kv_heads=kv_heads, head_dim=size, recipe=recipe)


def _is_causal(value: str) -> bool:
    return value == "True" or (value.isdecimal() and value != "0")

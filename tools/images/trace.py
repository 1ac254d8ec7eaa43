"""Record the operations of a timm model in one training step on PyTorch's meta device: all shapes, no arithmetic.

Needs torch and timm in a separate environment; `tools.images.models` writes the recorded operations. Autocast depends
on the device and not only on shapes, so its rules are applied here: PyTorch's list states which operations use 16 bits
and which use 32 (docs.pytorch.org, "Automatic Mixed Precision package", CUDA ops). Attention is one operation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import timm
import torch
import torch.nn.functional as F  # noqa: N812
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

IMAGES = 61
"""Number of images in the recorded batch: a prime, so that a size with this factor depends on the batch."""

T = torch.Tensor
TO_HALF: frozenset[Callable[..., Any]] = frozenset({
    F.conv1d, F.conv2d, F.conv3d, F.conv_transpose2d, F.linear, F.prelu, torch.conv1d, torch.conv2d, torch.matmul,
    torch.bmm, torch.baddbmm, torch.addmm, torch.addbmm, torch.mm, torch.mv, torch.prelu, torch.einsum, T.matmul,
    T.__matmul__, T.__rmatmul__, T.bmm, T.mm,
})  # fmt: skip
"""Calls whose inputs autocast converts to 16 bits."""
TO_FULL: frozenset[Callable[..., Any]] = frozenset({
    F.layer_norm, F.group_norm, F.softmax, F.log_softmax, F.cross_entropy, F.normalize, F.softplus, F.gumbel_softmax,
    torch.layer_norm, torch.group_norm, torch.softmax, torch.norm, torch.exp, torch.log, torch.pow, torch.rsqrt,
    torch.sum, torch.cumsum, torch.reciprocal, T.softmax, T.exp, T.log, T.pow, T.__pow__, T.rsqrt, T.sum, T.norm,
    T.cumsum, T.reciprocal, T.prod,
})  # fmt: skip
"""Calls whose inputs autocast converts to 32 bits."""

NO_KERNEL = (
    "view", "_unsafe_view", "t.default", "transpose.int", "permute", "expand", "unsqueeze", "squeeze", "select.int",
    "slice.Tensor", "split", "chunk", "unbind", "detach", "alias", "as_strided", "empty", "new_empty", "unfold.default",
    "reshape_alias", "diagonal", "lift_fresh", "movedim", "size", "stride", "is_", "sym_", "numel", "new_zeros.",
    "_local_scalar", "scalar_tensor",
)  # fmt: skip
"""Name prefixes of operations without traffic: other views of the same memory, and allocations."""
KINDS = (
    ("batch_norm", ("batch_norm",)),
    ("layer_norm", ("layer_norm", "group_norm")),
    ("pointwise", ("softmax",)),
    ("pool", ("pool", "upsample", "interpolate", "grid_sampler", "im2col", "col2im")),
    ("copy", ("clone", "_to_copy", "copy_", "cat", "stack", "slice_backward", "select_backward", "constant_pad", "roll",
              "index", "gather", "scatter", "pad", "repeat", "flip", "contiguous")),
    ("reduce", ("mean", "sum", "var", "amax", "max", "norm")),
)  # fmt: skip
"""Kinds of traffic, each with substrings of operation names; the first match counts, else the kind is pointwise."""


class _Attention(torch.autograd.Function):  # type: ignore[misc]
    """Attention as a single operation, forward and backward."""

    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any, record: Record) -> Any:
        ctx.save_for_backward(query, key, value)
        record.attend(query, key)
        return query.new_empty(*query.shape[:-1], value.shape[-1])

    @staticmethod
    def backward(ctx: Any, _: Any) -> Any:
        return (*(torch.empty_like(kept) for kept in ctx.saved_tensors), None)


class Autocast(TorchFunctionMode):  # type: ignore[misc]
    """Converts inputs to the type that autocast would use, and keeps attention as a single operation."""

    def __init__(self, record: Record, *, half: bool) -> None:
        super().__init__()
        self._record, self._half = record, half

    def __torch_function__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if call is F.scaled_dot_product_attention:
            named = dict(zip(("query", "key", "value"), args, strict=False)) | kwargs
            operands = [named[name] for name in ("query", "key", "value")]
            return _Attention.apply(*(_cast(operands, torch.float16) if self._half else operands), self._record)
        if self._half and (call in TO_HALF or call in TO_FULL):
            kind = torch.float16 if call in TO_HALF else torch.float32
            args, kwargs = _cast(args, kind), _cast(kwargs, kind)
        return call(*args, **kwargs)


def _cast(value: Any, kind: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(kind) if value.is_floating_point() and value.dtype != kind else value
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(_cast(inner, kind) for inner in value)
    if isinstance(value, dict):
        return {name: _cast(inner, kind) for name, inner in value.items()}
    return value


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _tensors(inner)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _bytes(tensor: Any) -> int:
    """Return the bytes of a tensor, without repetitions from expanded dimensions."""
    sides = (side for side, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0)
    return int(tensor.element_size() * math.prod(sides))


def _of_batch(tensor: Any) -> bool:
    return bool(tensor.numel()) and tensor.numel() % IMAGES == 0


class Record(TorchDispatchMode):  # type: ignore[misc]
    """Counts operations: shapes of the forward products, and bytes and kernels of all other operations."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions: Counter[tuple[float, ...]] = Counter()
        self.products: Counter[tuple[float, ...]] = Counter()
        self.batched: Counter[tuple[float, ...]] = Counter()
        self.attention: Counter[tuple[float, ...]] = Counter()
        self.bytes: Counter[str] = Counter()
        self.kernels = 0
        self.forward = True

    def attend(self, query: Any, key: Any) -> None:
        """Count one attention core."""
        heads = query.numel() // (query.shape[-1] * query.shape[-2])
        self.attention[heads / IMAGES, query.shape[-2], key.shape[-2], query.shape[-1]] += 1
        self.kernels += 1

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = call(*args, **(kwargs or {}))
        name = str(call).replace("aten.", "")
        if name.startswith(NO_KERNEL):
            return result
        self.kernels += 2 if "backward" in name and ("convolution" in name or "norm" in name) else 1
        if not self._product(name, args, result):
            self._move(name, [*_tensors(args), *_tensors(kwargs or {})], [*_tensors(result)])
        return result

    def _product(self, name: str, args: Any, result: Any) -> bool:
        """Return whether an operation is a product; count forward products by shape."""
        kind = name.partition(".")[0]
        first = 1 if kind in ("addmm", "baddbmm") else 0
        if kind == "convolution":
            if self.forward:
                self.convolutions[_convolution(args, result)] += 1
        elif kind in ("mm", "addmm"):
            left, right = args[first], args[first + 1]
            if self.forward:
                self.products[left.shape[0] / IMAGES, right.shape[1], left.shape[1]] += 1
        elif kind in ("bmm", "baddbmm"):
            left, right = args[first], args[first + 1]
            if self.forward:
                self.batched[left.shape[0] / IMAGES, left.shape[1], right.shape[2], left.shape[2]] += 1
        return kind in ("convolution", "convolution_backward", "mm", "addmm", "bmm", "baddbmm")

    def _move(self, name: str, read: list[Any], written: list[Any]) -> None:
        fills = name.startswith(("zeros", "ones", "full", "fill", "zero_"))
        moved = sum(_bytes(tensor) for tensor in ([] if fills else read) + written)
        kind = next((kind for kind, words in KINDS if any(word in name for word in words)), "pointwise")
        of_batch = any(_of_batch(tensor) for tensor in read + written)
        self.bytes[kind if of_batch else "weights"] += moved / IMAGES if of_batch else moved  # type: ignore[assignment]


def _convolution(args: Any, result: Any) -> tuple[float, ...]:
    image, weight, transposed, groups = args[0], args[1], args[6], args[8]
    if image.shape[0] % IMAGES and groups % IMAGES == 0:
        raise ValueError("weights of its own for each image")
    inputs, outputs = weight.shape[1], weight.shape[0]
    if transposed:
        inputs, outputs = weight.shape[0] // groups, weight.shape[1] * groups
    pixels = [math.prod(t.shape[2:]) * t.shape[0] / IMAGES for t in (result, image)]
    return (inputs, outputs, groups, math.prod(weight.shape[2:]), *pixels)


def _step(model: Any, images: Any, *, half: bool) -> tuple[Record, float]:
    """Run one forward and backward pass; return the record, and the bytes per image kept between the passes."""
    record, kept = Record(), {}

    def keep(tensor: Any) -> Any:
        if _of_batch(tensor):
            storage = tensor.untyped_storage()
            kept[storage._cdata] = storage  # hold the storage, so that its address is not reused
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), Autocast(record, half=half), record:
        scores = model(images)
        while isinstance(scores, list | tuple):
            scores = scores[0]
        loss = F.cross_entropy(scores, torch.zeros(IMAGES, dtype=torch.long, device="meta"))
    with record:
        record.forward = False
        loss.backward()
    return record, sum(storage.nbytes() for storage in kept.values()) / IMAGES


def trace(name: str, image_size: int | None = None) -> Mapping[str, Any]:
    """Return the row of a model in `planner/catalog/image_models.csv`, without its source.

    Args:
        name: name for `timm.create_model`.
        image_size: image side in pixels; None: the model's own training size.

    Raises:
        RuntimeError: timm has no such model.
        ValueError: its operations cannot be expressed as such a row.
    """
    timm.layers.set_fused_attn(True)
    with torch.device("meta"):
        model = timm.create_model(name).train()
    size = image_size or model.default_cfg["input_size"][-1]
    row: dict[str, Any] = {
        "id": name, "image_size": size, "params": sum(p.numel() for p in model.parameters()),
        "tensors": len(list(model.parameters())),
    }  # fmt: skip
    for bits in (16, 32):
        images = torch.empty(IMAGES, 3, size, size, device="meta")
        record, saved = _step(model, images, half=bits == 16)
        model.zero_grad()
        for kind in ("batch_norm", "layer_norm", "pointwise", "copy", "reduce", "pool", "weights"):
            row[f"{kind}_{bits}"] = record.bytes[kind]
        row |= {f"saved_{bits}": saved, f"kernels_{bits}": record.kernels}
        if bits == 16:
            for shapes in ("convolutions", "products", "batched", "attention"):
                row[shapes] = getattr(record, shapes)
    if row["kernels_16"] > MOST_KERNELS:
        raise ValueError("recurrent layers, which run as one kernel and are recorded step by step")
    return row


MOST_KERNELS = 20_000
"""Maximum number of kernels per step; more come from unrolled recurrent layers."""

"""What the probe's blocks and the library's models launch, layer by layer."""

from __future__ import annotations

from dataclasses import replace

from planner.measured.kernels import COMPUTE, HIGH
from planner.records.work import WorkShape
from probes.timing.trial import Point
from tests.planner.measured.layers.synthetic.convolutions import RESNET_50, RESNET_50_PARAMS
from tests.planner.measured.layers.synthetic.gpu import SyntheticGpu
from tests.planner.measured.layers.synthetic.running import Phases
from tests.planner.measured.layers.synthetic.single import Kernel, nothing, stream
from tests.planner.measured.layers.synthetic.tape import Style, Tape

UPDATE_BYTES, COPY_BYTES = 40.0, 6.0
"""Per parameter: norm and scaling of the gradient (12), AdamW with 32-bit states (28); the copy back from masters."""
TENSORS_PER_KERNEL = 30
DEALT_RATE = 1.1
"""Rows of a grouped product for each real one: uneven groups leave some tiles empty."""


def style_of(point: Point) -> Style:
    """How the recipe and mode of a point hold and cast tensors."""
    recipe, compute = point.recipe, COMPUTE[point.recipe.id]
    high = HIGH.get(compute, compute)
    held = 4.0 if recipe.held == "float32" else 2.0
    operand = {"fp16": "float16", "bf16": "bfloat16"}.get(high, "float32")
    return Style(
        compute=compute,
        high=high,
        operand=operand,
        held_bytes=held,
        activation_bytes=2.0 if recipe.autocast else held,
        residual_bytes=held,
        autocast=recipe.autocast is not None,
        masters=recipe.master_weights,
        compiled=bool(point.setup.compiled),
        adds_up=bool(point.setup.grad_accumulation),
    )


def phases_of(gpu: SyntheticGpu, point: Point) -> Phases:
    """Kernels of one step of a block or a whole model, by phase."""
    if point.kind == "block":
        return _repeated(_block_layer(gpu, point), point)
    make = {"llama": _llama, "bert": _bert, "resnet": _resnet}[(point.shape.model or "").split("-")[0]]
    return make(gpu, point)


def params_of(shape: WorkShape) -> int:
    """Parameters of a whole model."""
    h, f, layers, vocab = (shape.hidden or 0, shape.ffn_hidden or 0, shape.layers or 0, shape.vocab or 0)
    if (shape.model or "").startswith("llama"):
        d = shape.head_dim or 0
        qkv = ((shape.heads or 0) + 2 * (shape.kv_heads or 0)) * d
        return layers * (h * (qkv + (shape.heads or 0) * d) + 3 * h * f + 2 * h) + vocab * h + h
    if (shape.model or "").startswith("bert"):
        return layers * (4 * h * h + 2 * h * f) + vocab * h + 512 * h + h * h
    return RESNET_50_PARAMS


def _sizes(point: Point) -> tuple[float, float, float, float, float, float, float, float]:
    shape = point.shape
    listed = (
        shape.tokens, shape.seq_len, shape.hidden, shape.heads, shape.kv_heads, shape.head_dim, shape.ffn_hidden,
        shape.micro_batch,
    )  # fmt: skip
    rows, length, h, heads, kv_heads, d, f, batch = (float(size or 0) for size in listed)
    return rows, length, h, heads, kv_heads, d, f, batch


def _block_layer(gpu: SyntheticGpu, point: Point) -> Tape:
    """A layer with fused norms, one product for queries, keys and values, and one for gate and up."""
    tape = Tape(gpu=gpu, style=style_of(point))
    rows, length, h, heads, kv_heads, d, f, batch = _sizes(point)
    a, r, ranks = tape.style.activation_bytes, tape.style.residual_bytes, float(point.shape.tp or 1)
    qkv = (heads + 2 * kv_heads) * d
    tape.elementwise(2 * r * rows * h / ranks, *((2 * r * rows * h,) if ranks > 1 else ()))
    tape.linear(rows, qkv, h)
    _rotary(tape, rows, heads * d, a)
    _rotary(tape, rows, kv_heads * d, a)
    tape.attention(batch, heads, kv_heads, d, length, causal=True)
    tape.elementwise(2 * a * rows * heads * d)
    tape.linear(rows, h, heads * d, casts_input=False)
    tape.elementwise((2 * r + a) * rows * h / ranks, 2 * r * rows * h / ranks)
    if point.shape.experts:
        _experts(tape, point, rows, h, f)
    else:
        tape.linear(rows, 2 * f, h)
        tape.elementwise(2 * a * rows * f, 3 * a * rows * f)
        tape.linear(rows, h, f, casts_input=False)
    tape.elementwise((2 * r + a) * rows * h / ranks)
    return tape


def _rotary(tape: Tape, rows: float, width: float, element: float) -> None:
    moved = rows * width * element
    tape.elementwise(moved, 2 * moved, 2 * moved, 2 * moved, 3 * moved)


def _experts(tape: Tape, point: Point, rows: float, h: float, f: float) -> None:
    a, routed = tape.style.activation_bytes, rows * float(point.shape.top_k or 1)
    tape.small(14)
    tape.elementwise(2 * a * routed * h, 2 * a * routed * h)
    grouped = Tape(gpu=tape.gpu, style=replace(tape.style, adds_up=False, masters=False))
    grouped.linear(DEALT_RATE * routed, 2 * f, h)
    grouped.elementwise(2 * a * routed * f, 3 * a * routed * f)
    grouped.linear(DEALT_RATE * routed, h, f)
    tape.forward += grouped.forward
    tape.backward += grouped.backward
    weights = float(point.shape.experts or 0) * 3 * h * f
    tape.backward.append(stream(tape.gpu, 10.0 * weights, host_s=tape.host_s))
    tape.elementwise(2 * a * routed * h, (a + a / 8) * routed * h)


def _llama(gpu: SyntheticGpu, point: Point) -> Phases:
    """The library's decoder: seven products, norms and rotary embedding in single steps."""
    tape = Tape(gpu=gpu, style=style_of(point))
    rows, length, h, heads, kv_heads, d, f, batch = _sizes(point)
    a, r = tape.style.activation_bytes, tape.style.residual_bytes
    q, kv = heads * d, kv_heads * d
    _plain_norm(tape, rows * h)
    for width in (q, kv, kv):
        tape.linear(rows, width, h)
    _rotary(tape, rows, q, a)
    _rotary(tape, rows, kv, a)
    tape.attention(batch, heads, kv_heads, d, length, causal=True)
    tape.elementwise(2 * a * rows * q)
    tape.linear(rows, h, q, casts_input=False)
    tape.elementwise((2 * r + a) * rows * h)
    _plain_norm(tape, rows * h)
    tape.linear(rows, f, h)
    tape.linear(rows, f, h)
    tape.elementwise(2 * a * rows * f, 3 * a * rows * f)
    tape.linear(rows, h, f, casts_input=False)
    tape.elementwise((2 * r + a) * rows * h)
    ends = Tape(gpu=gpu, style=replace(tape.style, compiled=False))
    vocab = float(point.shape.vocab or 0)
    ends.elementwise((r + r) * rows * h)
    _plain_norm(ends, rows * h)
    ends.linear(rows, vocab, h, low=False)
    ends.elementwise((a + 4) * rows * vocab, 8 * rows * vocab, twice=False)
    ends.backward += [
        stream(gpu, 12 * rows * vocab, host_s=ends.host_s),
        stream(gpu, (4 + a) * rows * vocab, host_s=ends.host_s),
    ]
    ends.small(12)
    return _whole(tape, ends, point)


def _plain_norm(tape: Tape, elements: float) -> None:
    r = tape.style.residual_bytes
    casts = (elements * (4 + r),) if r < 4 else ()
    tape.elementwise(*casts, 8 * elements, 4 * elements, 8 * elements, *casts, 2 * r * elements)
    tape.small(2)


def _bert(gpu: SyntheticGpu, point: Point) -> Phases:
    """An encoder layer with fused norms; masked language modelling over the vocabulary."""
    tape = Tape(gpu=gpu, style=style_of(point))
    rows, length, h, heads, kv_heads, d, f, batch = _sizes(point)
    a, r = tape.style.activation_bytes, tape.style.residual_bytes
    for _ in range(3):
        tape.linear(rows, h, h)
    tape.attention(batch, heads, kv_heads, d, length, causal=False)
    tape.elementwise(2 * a * rows * h)
    tape.linear(rows, h, h, casts_input=False)
    tape.elementwise((2 * r + a) * rows * h, 2 * r * rows * h)
    tape.linear(rows, f, h)
    tape.elementwise(2 * a * rows * f)
    tape.linear(rows, h, f, casts_input=False)
    tape.elementwise((2 * r + a) * rows * h, 2 * r * rows * h)
    ends = Tape(gpu=gpu, style=tape.style)
    vocab = float(point.shape.vocab or 0)
    ends.elementwise(3 * r * rows * h, 2 * r * rows * h)
    ends.linear(rows, h, h, low=False)
    ends.linear(rows, vocab, h, low=False)
    ends.elementwise((a + 4) * rows * vocab, 8 * rows * vocab)
    ends.small(15)
    return _whole(tape, ends, point)


def _resnet(gpu: SyntheticGpu, point: Point) -> Phases:
    """Convolutions as products, each with batch norm, and ReLU and addition where it has them."""
    tape = Tape(gpu=gpu, style=style_of(point))
    images = float(point.shape.micro_batch or 1)
    a = tape.style.activation_bytes
    for convolution in RESNET_50:
        rows, width = convolution.pixels * images, float(convolution.outputs)
        tape.linear(rows, width, float(convolution.inputs * convolution.kernel**2), casts_input=False)
        passes = [a * rows * width, 2 * a * rows * width]
        passes += [2 * a * rows * width] if convolution.relu else []
        passes += [3 * a * rows * width] if convolution.residual else []
        tape.elementwise(*passes)
    ends = Tape(gpu=gpu, style=tape.style)
    ends.linear(images, 1000.0, 2048.0, low=False)
    ends.small(12)
    return _assembled(tape, 1, ends, point)


def _whole(layer: Tape, ends: Tape, point: Point) -> Phases:
    return _assembled(layer, point.shape.layers or 1, ends, point)


def _assembled(layer: Tape, layers: int, ends: Tape, point: Point) -> Phases:
    rerun = layer.forward if point.setup.recompute == "full" else []
    params = float(params_of(point.shape))
    gpu = layer.gpu
    moved = (UPDATE_BYTES + (COPY_BYTES if layer.style.masters else 0.0)) * params
    scaler: list[Kernel] = [stream(gpu, 8.0 * params)] if point.recipe.loss_scaling else []
    launches = 6 + (point.shape.layers or 1) * 9 // TENSORS_PER_KERNEL
    return {
        "forward": [*layer.forward * layers, *ends.forward],
        "backward": [*ends.backward, *(rerun + layer.backward) * layers],
        "optimizer": [*scaler, stream(gpu, moved), *[nothing(gpu.operation_s)] * launches],
    }


def _repeated(layer: Tape, point: Point) -> Phases:
    layers = point.shape.layers or 1
    rerun = layer.forward if point.setup.recompute == "full" else []
    return {"forward": layer.forward * layers, "backward": (rerun + layer.backward) * layers}

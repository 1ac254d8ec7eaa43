"""The work behind a measured layer or training step: its matrix products, attention and memory-bound passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from planner.lazy import dataclass
from planner.measured.kernels import USUAL_HEAD
from planner.models.images.catalogue import load_image_models, network_of
from planner.records.work import RunSetup, WorkCounts, WorkShape

FULL_BYTES = 4.0
"""Bytes per activation in the 32-bit traffic of a network."""


class DescribedWork(Protocol):
    """Description of a point's work that is available before it runs: a measurement, or a probe's point."""

    @property
    def kind(self) -> str:
        """One of `planner.records.measurement.KINDS`."""

    @property
    def setup(self) -> RunSetup:
        """Workload and settings of the run."""

    @property
    def shape(self) -> WorkShape:
        """Sizes of the work."""

    @property
    def counts(self) -> WorkCounts:
        """Arithmetic and traffic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """`count` forward products `[m, k] x [k, n]`. They are trained, so the backward pass does twice the work."""

    m: float
    n: float
    k: float
    count: float = 1.0
    low: bool = True
    """False if the product stays in the high precision of the recipe (output layer, router)."""

    @property
    def flop(self) -> float:
        """FLOP of the forward products."""
        return 2.0 * self.m * self.n * self.k * self.count


OWN_KERNELS, DECODER_KERNELS, ENCODER_KERNELS, CONVOLUTION_KERNELS = (
    (15.0, 30.0),
    (45.0, 90.0),
    (25.0, 50.0),
    (4.0, 8.0),
)
"""Approximate number of kernels that eager code launches for a layer, forward and backward: for the probe's own layers,
the library's decoder (norms and rotary embedding step by step), its encoder, and a convolution with its batch norm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointWork:
    """Work of one iteration of a block or whole-model point."""

    products: tuple[Product, ...]
    """Products of the layers, which checkpointing recomputes."""
    edge_products: tuple[Product, ...]
    """Products outside the layers: output layer, heads."""
    attention_flop: float
    """Forward FLOP of attention in the layers; only the causal half if attention is causal."""
    attention_head: float
    """Head size."""
    attention_tokens: float
    """Longest key length, which determines the efficiency of the kernel."""
    element_passes: float
    """Elements that memory-bound work of the layers reads or writes, forward and backward, in fused kernels."""
    edge_passes: float
    """Elements that memory-bound work outside the layers (loss, embedding) reads or writes, likewise."""
    weights: float
    """Matrix parameters of the layers. Their gradients are accumulated or written once per iteration."""
    layers: float
    params: float
    """All parameters that the optimizer updates; 0 if there is no update."""
    eager_kernels: tuple[float, float] = OWN_KERNELS
    """Approximate number of kernels of a layer in eager code, forward and backward."""
    recompute: bool = False
    compiled: bool = False
    """True if the layers run through `torch.compile`; the work outside them never does."""


def work_of(point: DescribedWork) -> PointWork | None:
    """Work of a block or whole-model point; None for other points and incomplete lines."""
    work = _work(point)
    if work is None:
        return None
    setup = point.setup
    return replace(
        work,
        recompute=setup.recompute == "full",
        compiled=bool(setup.compiled),
    )


def _work(point: DescribedWork) -> PointWork | None:
    model = point.shape.model or ""
    whole = point.kind in ("end_to_end", "verify")
    if point.kind == "block" or (whole and model.startswith("llama")):
        return _decoder_work(point, whole=whole)
    if whole and model.startswith("bert"):
        return _encoder_work(point)
    return _image_work(point) if model.startswith("resnet") else None


HIDDEN_PASSES, FFN_PASSES, QKV_PASSES, ROTARY_PASSES, ROUTED_PASSES = 20.0, 8.0, 6.0, 4.0, 6.0
"""Reads and writes by fused kernels in a decoder layer, forward and backward: of the hidden state (two norms, two
residual additions, casts), the inner activation (SwiGLU: 3 forward, 5 backward), the output of the qkv product (split,
transposes), queries and keys (rotary embedding), and the rows sent to experts."""
COLLECTIVE_PASSES = 8.0
"""Reads and writes of the hidden state that the collectives of tensor parallelism would add."""
LOGIT_PASSES = 12.0
"""Reads and writes of the logits: loss in FP32, forward and backward."""


def _decoder_work(point: DescribedWork, *, whole: bool) -> PointWork | None:
    shape = point.shape
    sizes = (
        shape.hidden, shape.heads, shape.kv_heads, shape.head_dim, shape.ffn_hidden, shape.layers, shape.tokens,
        shape.seq_len,
    )  # fmt: skip
    if any(size is None for size in sizes):
        return None
    h, n_q, n_kv, d, f, layers, rows, length = (float(size or 0) for size in sizes)
    qkv, top = (n_q + 2 * n_kv) * d, float(shape.top_k or 1)
    experts = float(shape.experts or 0)
    expert_rows, groups = (rows * top / experts, experts) if experts else (rows, 1.0)
    split = float(shape.tp or 1)
    vocab = float(shape.vocab or 0) if whole else 0.0
    passes = HIDDEN_PASSES * rows * h / split + FFN_PASSES * rows * top * f
    passes += QKV_PASSES * rows * qkv + ROTARY_PASSES * rows * (n_q + n_kv) * d
    passes += ROUTED_PASSES * rows * top * h if experts else 0.0
    passes += COLLECTIVE_PASSES * rows * h if split > 1 else 0.0
    return PointWork(
        products=(
            *_shared_input(rows, h, (n_q * d, n_kv * d, n_kv * d), layers, fused=not whole),
            Product(m=rows, n=h, k=n_q * d, count=layers),
            *_shared_input(expert_rows, h, (f, f), groups * layers, fused=not whole),
            Product(m=expert_rows, n=h, k=f, count=groups * layers),
        ),
        edge_products=(Product(m=rows, n=vocab, k=h, low=False),) if vocab else (),
        attention_flop=2.0 * rows * length * n_q * d * layers,
        attention_head=d,
        attention_tokens=length,
        element_passes=layers * passes,
        edge_passes=(LOGIT_PASSES * rows * vocab + 6.0 * rows * h) if whole else 0.0,
        weights=layers * (h * (qkv + n_q * d) + 3.0 * h * f * max(experts, 1.0)),
        layers=layers,
        params=float(point.counts.params or 0) if whole else 0.0,
        eager_kernels=DECODER_KERNELS if whole else OWN_KERNELS,
    )


def _shared_input(rows: float, inner: float, widths: tuple[float, ...], count: float, *, fused: bool) -> list[Product]:
    """Products that share an input: fused into one in the probe's own layers, separate in the library's models."""
    if fused:
        return [Product(m=rows, n=sum(widths), k=inner, count=count)]
    return [Product(m=rows, n=width, k=inner, count=count) for width in widths]


def _encoder_work(point: DescribedWork) -> PointWork | None:
    shape = point.shape
    sizes = (shape.hidden, shape.ffn_hidden, shape.layers, shape.tokens, shape.seq_len, shape.vocab)
    if any(size is None for size in sizes):
        return None
    h, f, layers, rows, length, vocab = (float(size or 0) for size in sizes)
    return PointWork(
        products=(
            Product(m=rows, n=h, k=h, count=4 * layers),
            Product(m=rows, n=f, k=h, count=layers),
            Product(m=rows, n=h, k=f, count=layers),
        ),
        edge_products=(Product(m=rows, n=vocab, k=h, low=False), Product(m=rows, n=h, k=h, low=False)),
        attention_flop=4.0 * rows * length * h * layers,
        attention_head=float(shape.head_dim or USUAL_HEAD),
        attention_tokens=length,
        element_passes=layers * rows * (40.0 * h + 5.0 * f),
        edge_passes=LOGIT_PASSES * rows * vocab + 10.0 * rows * h,
        weights=layers * (4.0 * h * h + 2.0 * h * f),
        layers=layers,
        params=float(point.counts.params or 0),
        eager_kernels=ENCODER_KERNELS,
    )


def _image_work(point: DescribedWork) -> PointWork | None:
    """Work of ResNet-50 at any resolution; the pixels of its convolutions grow with the area of the image."""
    if point.shape.micro_batch is None or point.shape.seq_len is None:
        return None
    network, images = (
        network_of(load_image_models()["resnet50"]).at_size(point.shape.seq_len),
        float(point.shape.micro_batch),
    )
    products = [
        Product(m=layer.pixels * images, n=float(layer.outputs), k=float(layer.inputs * layer.taps))
        for layer in network.convolutions
        for _ in range(layer.count)
    ]
    (classifier,) = network.products
    moved = network.full.batch_norm + network.full.pointwise + network.full.pool
    return PointWork(
        products=tuple(products),
        edge_products=(Product(m=images, n=float(classifier.n), k=float(classifier.k), low=False),),
        attention_flop=0.0,
        attention_head=USUAL_HEAD,
        attention_tokens=1.0,
        element_passes=images * moved / FULL_BYTES,
        edge_passes=0.0,
        weights=sum(product.n * product.k for product in products),
        layers=float(len(products)),
        params=float(point.counts.params or network.params),
        eager_kernels=CONVOLUTION_KERNELS,
    )

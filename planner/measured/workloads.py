"""From kernels to layers and steps: the work behind a measured point, and its time when kernels are added up.

The sum of separately measured kernels is systematically shorter than a layer or step that was measured whole; the
ratio of the two is measured per recipe and carried along (`MeasuredRates.composition_ratio`). So the sum needs to be
right in how it changes with shape, not in its absolute value.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.records.measurement import Measurement

FLASH_BACKWARD = 2.5
"""Backward over forward FLOP of fused attention (FlashAttention's own benchmark: 3.5 in total)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """`count` products `[m, k] x [k, n]`, forward; trained, so backward is the same work twice."""

    m: float
    n: float
    k: float
    count: float = 1.0
    low: bool = True
    """False: stays in the high precision of the recipe (output layer, router)."""

    @property
    def flop(self) -> float:
        """Of the forward products."""
        return 2.0 * self.m * self.n * self.k * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class PointWork:
    """What one iteration of a block or whole-model point does."""

    products: tuple[Product, ...]
    """Of the layers, which checkpointing computes again."""
    edge_products: tuple[Product, ...]
    """Of the ends: output layer, heads."""
    attention_flop: float
    """Forward, of the layers, causal half where causal."""
    attention_tokens: float
    """Longest key length, which decides how efficient the kernel is."""
    element_passes: float
    """Elements read or written by memory-bound work of the layers, forward and backward, in fused kernels."""
    edge_passes: float
    """The same at the ends: loss, embedding."""
    weights: float
    """Matrix parameters of the layers: their gradients are added up or written once per iteration."""
    layers: float
    params: float
    """All parameters that an update touches; 0 where there is no update."""
    recompute: bool


def work_of(one: Measurement) -> PointWork | None:
    """The work of a block or end-to-end point; None for other points or incomplete lines."""
    if one.kind == "block" or (one.kind in ("end_to_end", "verify") and (one.model or "").startswith("llama")):
        return _decoder_work(one)
    if one.kind in ("end_to_end", "verify") and (one.model or "").startswith("bert"):
        return _encoder_work(one)
    return _image_work(one) if (one.model or "").startswith("resnet") else None


def _decoder_work(one: Measurement) -> PointWork | None:
    sizes = (one.hidden, one.heads, one.kv_heads, one.head_dim, one.ffn_hidden, one.layers, one.tokens, one.seq_len)
    if any(size is None for size in sizes):
        return None
    h, n_q, n_kv, d, f, layers, rows, length = (float(size or 0) for size in sizes)
    whole = one.kind != "block"
    qkv, top = (n_q + 2 * n_kv) * d, float(one.top_k or 1)
    experts = float(one.experts or 0)
    attention = (Product(m=rows, n=qkv, k=h, count=layers), Product(m=rows, n=h, k=n_q * d, count=layers))
    each, groups = (rows * top / experts, experts) if experts else (rows, 1.0)
    mlp = (
        Product(m=each, n=2 * f, k=h, count=groups * layers),
        Product(m=each, n=h, k=f, count=groups * layers),
    )
    split = float(one.tp or 1)
    vocab = float(one.vocab or 0) if whole else 0.0
    passes = 20.0 * rows * h / split + 8.0 * rows * top * f + 6.0 * rows * qkv + 4.0 * rows * (n_q + n_kv) * d
    passes += 6.0 * rows * top * h if experts else 0.0
    if split > 1:
        passes += 8.0 * rows * h  # what the collectives of tensor parallelism would read and write
    return PointWork(
        products=(*attention, *mlp),
        edge_products=(Product(m=rows, n=vocab, k=h, low=False),) if vocab else (),
        attention_flop=2.0 * rows * length * n_q * d * layers,
        attention_tokens=length,
        element_passes=layers * passes,
        edge_passes=(12.0 * rows * vocab + 6.0 * rows * h) if whole else 0.0,
        weights=layers * (h * (qkv + n_q * d) + 3.0 * h * f * max(experts, 1.0)),
        layers=layers,
        params=float(one.params or 0) if whole else 0.0,
        recompute=one.recompute == "full",
    )


def _encoder_work(one: Measurement) -> PointWork | None:
    sizes = (one.hidden, one.ffn_hidden, one.layers, one.tokens, one.seq_len, one.vocab)
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
        attention_tokens=length,
        element_passes=layers * rows * (40.0 * h + 5.0 * f),
        edge_passes=12.0 * rows * vocab + 10.0 * rows * h,
        weights=layers * (4.0 * h * h + 2.0 * h * f),
        layers=layers,
        params=float(one.params or 0),
        recompute=one.recompute == "full",
    )


RESNET50_STAGES = ((3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7))
"""Blocks, inner channels and output side of the four stages at 224 pixels (He et al. 2016, table 1)."""


def _image_work(one: Measurement) -> PointWork | None:
    if one.micro_batch is None or one.seq_len is None:
        return None
    images, scale = float(one.micro_batch), (one.seq_len / 224.0) ** 2
    first = 112.0**2 * scale * images
    products = [Product(m=first, n=64.0, k=147.0)]
    passes = 10.0 * first * 64.0
    inputs = 64.0
    for blocks, inner, side in RESNET50_STAGES:
        rows, outer = side**2 * scale * images, 4.0 * inner
        for block in range(blocks):
            # The first block of a later stage halves the picture in its 3 x 3 convolution.
            before = rows * 4.0 if block == 0 and inner > 64 else rows
            products += [
                Product(m=before, n=inner, k=inputs),
                Product(m=rows, n=inner, k=9.0 * inner),
                Product(m=rows, n=outer, k=inner),
            ]
            passes += 10.0 * (before * inner + rows * inner) + 14.0 * rows * outer
            if block == 0:
                products.append(Product(m=rows, n=outer, k=inputs))
                passes += 8.0 * rows * outer
            inputs = outer
    return PointWork(
        products=tuple(products),
        edge_products=(Product(m=images, n=1000.0, k=2048.0, low=False),),
        attention_flop=0.0,
        attention_tokens=1.0,
        element_passes=passes,
        edge_passes=0.0,
        weights=sum(one.n * one.k for one in products),
        layers=float(len(products)),
        params=float(one.params or 25.6e6),
        recompute=False,
    )

"""Whole models to train: their sizes, from published configurations, and their arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.lazy import dataclass
from planner.records.work import WorkCounts, WorkShape
from probes.models.flop import ForwardFlop
from probes.models.shapes import LLAMA_1B, LLAMA_3B, LayerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCase:
    """One model with its batch and the way to run it."""

    family: str
    """llama, bert or resnet."""
    size: str
    """Name of the model size."""
    layers: int
    batch: int
    seq_len: int
    """Tokens per sequence; for resnet, side of an image in pixels."""
    recompute: bool = False
    compiled: bool = False
    energy: bool = False

    @property
    def name(self) -> str:
        """Name for probe ids and the progress display."""
        extra = ("+recompute" if self.recompute else "") + ("+compiled" if self.compiled else "")
        return f"{self.family}-{self.size}-L{self.layers}-s{self.seq_len}b{self.batch}{extra}"


def _tiny(hidden: int, heads: int, ffn: int) -> LayerShape:
    return LayerShape(
        model=f"tiny-{hidden}", hidden=hidden, heads=heads, kv_heads=heads // 2, head_dim=64, ffn=ffn, vocab=2048
    )


LLAMAS: dict[str, LayerShape] = {
    "llama-3.2-1b": LLAMA_1B,
    "llama-3.2-3b": LLAMA_3B,
    "tiny": _tiny(256, 4, 704),
    "tiny-wide": _tiny(384, 6, 1024),
    "tiny-wider": _tiny(512, 8, 1408),
}
TIED = ("llama-3.2-1b", "llama-3.2-3b")
"""Models whose output layer shares the embedding's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSizes:
    """Sizes of a BERT."""

    hidden: int
    heads: int
    ffn: int
    vocab: int


BERTS = {
    "bert-large": EncoderSizes(hidden=1024, heads=16, ffn=4096, vocab=30522),
    "tiny": EncoderSizes(hidden=128, heads=2, ffn=512, vocab=1024),
}
RESNET_FLOP_PER_IMAGE = 2 * 4.09e9
"""Forward FLOP of ResNet-50 at 224 x 224: 4.09 G multiply-adds (He et al. 2016, table 1 gives 3.8 G without the
projection shortcuts)."""


def shape_of(case: ModelCase) -> WorkShape:
    """Return the sizes of a case."""
    common = WorkShape(
        model=f"{case.family}-{case.size}",
        layers=case.layers,
        micro_batch=case.batch,
        seq_len=case.seq_len,
        tokens=case.batch if case.family == "resnet" else case.batch * case.seq_len,
    )
    if case.family == "llama":
        layer = LLAMAS[case.size]
        return replace(
            common,
            hidden=layer.hidden,
            heads=layer.heads,
            kv_heads=layer.kv_heads,
            head_dim=layer.head_dim,
            ffn_hidden=layer.ffn,
            vocab=layer.vocab,
        )
    if case.family == "bert":
        bert = BERTS[case.size]
        return replace(
            common,
            hidden=bert.hidden,
            heads=bert.heads,
            kv_heads=bert.heads,
            head_dim=bert.hidden // bert.heads,
            ffn_hidden=bert.ffn,
            vocab=bert.vocab,
        )
    return common


def counts_of(case: ModelCase) -> WorkCounts:
    """Return the FLOP of one training step of a case."""
    forward = {"llama": _llama_flop, "bert": _bert_flop, "resnet": _resnet_flop}[case.family](case)
    return forward.of_training(recompute=case.recompute)


def _llama_flop(case: ModelCase) -> ForwardFlop:
    layer = LLAMAS[case.size]
    rows = float(case.batch * case.seq_len)
    linear = case.layers * sum(2.0 * rows * k * n for k, n in layer.products)
    head = 2.0 * rows * layer.hidden * layer.vocab
    attention = case.layers * 2.0 * case.batch * layer.heads * layer.head_dim * float(case.seq_len) ** 2
    return ForwardFlop(linear=linear, head=head, attention=attention)


def _bert_flop(case: ModelCase) -> ForwardFlop:
    sizes = BERTS[case.size]
    rows = float(case.batch * case.seq_len)
    linear = case.layers * 2.0 * rows * (4.0 * sizes.hidden**2 + 2.0 * sizes.hidden * sizes.ffn)
    head = 2.0 * rows * (sizes.hidden * sizes.vocab + sizes.hidden**2)
    attention = case.layers * 4.0 * case.batch * sizes.hidden * float(case.seq_len) ** 2
    return ForwardFlop(linear=linear, head=head, attention=attention)


def _resnet_flop(case: ModelCase) -> ForwardFlop:
    return ForwardFlop(linear=RESNET_FLOP_PER_IMAGE * case.batch * (case.seq_len / 224) ** 2, attention=0.0)


def params_of(module: Any) -> int:
    """Return the number of parameters of a module; shared ones count once."""
    return int(sum(parameter.numel() for parameter in module.parameters()))

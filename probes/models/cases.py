"""The whole models that are trained: their sizes and their arithmetic. Source of the sizes: published
configurations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probes.models.shapes import LLAMA_1B, LLAMA_3B, LayerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCase:
    """One model, batch and way to run it."""

    family: str
    """llama, bert or resnet."""
    size: str
    """Name of the sizes."""
    layers: int
    batch: int
    seq_len: int
    """Tokens of a sequence; pixels of an image's side for resnet."""
    recompute: bool = False
    compiled: bool = False
    energy: bool = False

    @property
    def name(self) -> str:
        """For probe ids and the progress display."""
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


def facts_of(case: ModelCase) -> dict[str, Any]:
    """Fields of the record that describe a case, its arithmetic included."""
    facts: dict[str, Any] = {
        "model": f"{case.family}-{case.size}",
        "layers": case.layers,
        "micro_batch": case.batch,
        "seq_len": case.seq_len,
        "tokens": case.batch if case.family == "resnet" else case.batch * case.seq_len,
        "recompute": "full" if case.recompute else "none",
        "compiled": case.compiled,
    }
    if case.family == "resnet":
        forward = RESNET_FLOP_PER_IMAGE * case.batch * (case.seq_len / 224) ** 2
        return facts | {"flop_model": 3 * forward, "flop_hardware": 3 * forward}
    return facts | (_llama_facts(case) if case.family == "llama" else _bert_facts(case))


def _llama_facts(case: ModelCase) -> dict[str, Any]:
    shape = LLAMAS[case.size]
    rows = float(case.batch * case.seq_len)
    linear = case.layers * sum(2.0 * rows * k * n for k, n in shape.products)
    head = 2.0 * rows * shape.hidden * shape.vocab
    attention = case.layers * 2.0 * case.batch * shape.heads * shape.head_dim * float(case.seq_len) ** 2
    again = linear + attention if case.recompute else 0.0
    return {
        "hidden": shape.hidden,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "ffn_hidden": shape.ffn,
        "vocab": shape.vocab,
        "flop_model": 3.0 * (linear + head + attention),
        "flop_hardware": 3.0 * (linear + head) + 3.5 * attention + again,
    }


def _bert_facts(case: ModelCase) -> dict[str, Any]:
    sizes = BERTS[case.size]
    rows = float(case.batch * case.seq_len)
    linear = case.layers * 2.0 * rows * (4.0 * sizes.hidden**2 + 2.0 * sizes.hidden * sizes.ffn)
    head = 2.0 * rows * (sizes.hidden * sizes.vocab + sizes.hidden**2)
    attention = case.layers * 4.0 * case.batch * sizes.hidden * float(case.seq_len) ** 2
    return {
        "hidden": sizes.hidden,
        "heads": sizes.heads,
        "kv_heads": sizes.heads,
        "head_dim": sizes.hidden // sizes.heads,
        "ffn_hidden": sizes.ffn,
        "vocab": sizes.vocab,
        "flop_model": 3.0 * (linear + head + attention),
        "flop_hardware": 3.0 * (linear + head) + 3.5 * attention + (linear + attention if case.recompute else 0.0),
    }


def params_of(module: Any) -> int:
    """Parameters of a module, shared ones once."""
    return int(sum(one.numel() for one in module.parameters()))

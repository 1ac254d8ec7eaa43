"""The step that every strategy runs: one model, one global batch, and how their sizes divide.

All strategies train the same global batch with four sequences per rank, so that each rank has the same arithmetic in
every strategy. The time by which a step exceeds a step of `alone` is therefore communication, bubbles and
imbalance.
"""

from __future__ import annotations

from math import prod

from planner.lazy import dataclass
from planner.records.work import WorkCounts, WorkShape
from probes.models.flop import ForwardFlop
from probes.models.shapes import LLAMA_1B, LayerShape
from probes.precisions.interface import PrecisionRecipe

SEQUENCES = 4
"""Sequences per rank in a step. A pipeline takes each one as a micro-batch, so a rank with two stages still has two for
each stage."""
TINY_16_HEADS = LayerShape(model="tiny-256-16h", hidden=256, heads=16, kv_heads=8, head_dim=16, ffn=704, vocab=2048)
"""For CPUs: not a published model, but with heads for 8 ranks."""
CPU_LAYERS, GPU_LAYERS = 4, 16
"""Least number of layers of the model for CPUs, and number of layers of the published model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Degrees of parallelism. `tp` × `dp` × `pp` × `cp` is the number of ranks of one model."""

    tp: int = 1
    dp: int = 1
    pp: int = 1
    cp: int = 1
    vp: int = 1
    """Stages that each rank holds."""
    copies: int = 1
    """Models that are trained side by side, each by its own ranks."""
    micro_batches: int = 1
    """Micro-batches per step."""

    @property
    def stages(self) -> int:
        """Number of pipeline stages."""
        return self.pp * self.vp


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Bytes per element of what is sent."""

    activation: int = 4
    """Hidden states, keys and values."""
    gathered: int = 4
    """Parameters as FSDP gathers them."""
    gradient: int = 4
    """Gradients as they are reduced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelCase:
    """Model and batch of a step."""

    shape: LayerShape
    layers: int
    seq_len: int
    sequences: int
    """Sequences of the global batch."""
    widths: Widths = Widths()
    """Bytes per element of what the step sends in its precision."""

    @property
    def tokens(self) -> int:
        """Tokens of the global batch."""
        return self.sequences * self.seq_len

    @property
    def name(self) -> str:
        """Name for probe ids and the progress display."""
        return f"{self.shape.model}-L{self.layers}-s{self.seq_len}b{self.sequences}"

    def layer_parameters(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of one layer's parameters, in order of use."""
        s = self.shape
        q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
        return (
            (s.hidden,), (q, s.hidden), (kv, s.hidden), (kv, s.hidden), (s.hidden, q),
            (s.hidden,), (s.ffn, s.hidden), (s.ffn, s.hidden), (s.hidden, s.ffn),
        )  # fmt: skip

    @property
    def layer_params(self) -> int:
        """Parameters of one layer."""
        return sum(map(prod, self.layer_parameters()))

    @property
    def end_params(self) -> int:
        """Parameters of embedding, last norm and output layer; embedding and output layer are not tied."""
        return 2 * self.shape.vocab * self.shape.hidden + self.shape.hidden

    @property
    def params(self) -> int:
        """Parameters of the whole model."""
        return self.layers * self.layer_params + self.end_params

    def counts(self, *, recompute: bool) -> WorkCounts:
        """Count the arithmetic of the step over all ranks; attention is halved because it is causal."""
        s = self.shape
        linear = self.layers * sum(2.0 * self.tokens * k * n for k, n in s.products)
        head = 2.0 * self.tokens * s.hidden * s.vocab
        attention = self.layers * 2.0 * self.sequences * s.heads * s.head_dim * float(self.seq_len) ** 2
        forward = ForwardFlop(linear=linear, head=head, attention=attention)
        return forward.of_training(recompute=recompute, params=self.params)

    def work_shape(self, layout: Layout) -> WorkShape:
        """Return sizes for the record. Heads and widths are those of the whole model, which the degrees then divide."""
        s = self.shape
        return WorkShape(
            model=s.model,
            layers=self.layers,
            hidden=s.hidden,
            heads=s.heads,
            kv_heads=s.kv_heads,
            head_dim=s.head_dim,
            ffn_hidden=s.ffn,
            vocab=s.vocab,
            seq_len=self.seq_len,
            micro_batch=self.sequences // (layout.dp * layout.copies * layout.micro_batches),
            micro_batches=layout.micro_batches,
            tokens=self.tokens,
            tp=layout.tp,
            dp=layout.dp,
            pp=layout.pp,
            vp=layout.vp,
            cp=layout.cp,
        )


def case_of(world: int, *, on_gpu: bool) -> ParallelCase:
    """Return the step of `world` ranks: layers for two stages each; 128 tokens per rank on a CPU, 8192 on a GPU."""
    shape, layers, seq_len = (LLAMA_1B, GPU_LAYERS, 2048) if on_gpu else (TINY_16_HEADS, max(CPU_LAYERS, 2 * world), 32)
    return ParallelCase(shape=shape, layers=layers, seq_len=seq_len, sequences=SEQUENCES * world)


def widths_of(recipe: PrecisionRecipe) -> Widths:
    """Return the bytes per element that a recipe sends; hidden states use its 16-bit type if it has one."""
    narrow = recipe.autocast is not None or recipe.held != "float32"
    return Widths(activation=2 if narrow else 4, gathered=2 if recipe.held != "float32" else 4)


def indivisible(parts: int, whole: str, **sizes: int) -> str | None:
    """Return why sizes cannot be divided into parts, None if they can: `3 ranks do not divide 16 heads`.

    Args:
        parts: number of parts.
        whole: name of the parts, as in `ranks`.
        sizes: sizes by name; an underscore represents a space.
    """
    for name, size in sizes.items():
        if size % parts:
            return f"{parts} {whole} do not divide {size} {name.replace('_', ' ')}"
    return None

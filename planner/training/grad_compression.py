"""Methods that compress the gradients reduced by data parallel ranks: rows of `catalog/grad_compressions.csv`."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import Message, UsageError
from planner.evidence import Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row

NONE = "none"
"""Name for no compression: gradients are reduced unchanged."""
OF_RANK = ":"
"""Separator between the name of a method and the rank of its factors, as in `powersgd:8`."""
MOST_RANK = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class GradCompression:
    """What a method sends instead of gradients, and its other costs."""

    id: str
    """`powersgd`, `1bit` or `fp8`."""
    name: str
    rank: int
    """Default rank of the two factors that replace each matrix; 0 for a method that works element by element."""
    sent_bits: float
    """Bits sent per element by a method that works element by element."""
    warmup_ratio: float
    """Share of the steps at the start that are reduced without compression, 0..1."""
    messages: float
    """Number of reductions that replace one, since the factors are sent one after another."""
    passes: float
    """Reads and writes of the gradient or its residual for coding and decoding."""
    coded_bytes: float
    """Bytes of the coded form that are read and written for coding and decoding, per element."""
    residuals: float
    """Number of copies of the gradient that keep the part that was not sent (error feedback)."""
    fp32: bool
    """Whether passes and copies are always in FP32; otherwise they are in the type of the reduction."""
    most_zero: int
    """Highest ZeRO stage that it supports; beyond it, no rank has the whole tensor that it works on (gradients: 1,
    momentum: 0)."""
    stacks: tuple[str, ...]
    """Software stacks that support it, the usual one first; empty for any."""
    home: str
    """The software of which it is a part, for messages."""
    paper: str
    optimizers: tuple[str, ...]
    """Ids of the optimizers for which it is defined; empty for all."""
    compute: str | None
    """Compute type that the GPU must support (NCCL reduces FP8 on GPUs that compute in it); None for any GPU."""
    published_bytes_ratio: float | None
    """Reduction in bytes over a run that its paper states, as a factor; None if it depends on the model."""
    evidence: Evidence
    """The paper, with the effect on accuracy that it states."""


def _compression(row: Row) -> GradCompression:
    effect = row.text("effect")
    return GradCompression(
        id=row.text("id"),
        name=row.text("name"),
        rank=row.integer("rank", high=MOST_RANK),
        sent_bits=row.number("sent_bits", high=32),
        warmup_ratio=row.number("warmup_ratio", high=1),
        messages=row.number("messages", low=1, high=16),
        passes=row.number("passes", high=100),
        coded_bytes=row.number("coded_bytes", high=64),
        residuals=row.number("residuals", high=4),
        fp32=row.flag("fp32"),
        most_zero=row.integer("most_zero", high=3),
        stacks=row.words("stacks"),
        home=row.text("home"),
        paper=row.text("source"),
        optimizers=row.words("optimizers"),
        compute=row.opt_text("compute"),
        published_bytes_ratio=row.opt_number("published_bytes_ratio", low=1),
        evidence=Evidence(
            id=f"grad_compression:{row.text('id')}",
            kind=EvidenceKind.PUBLISHED,
            what=f"{row.text('name')}: published effect on accuracy: {effect}",
            source=f"{row.text('source')}; {row.text('cost_source')}",
            date=row.text("date"),
            public=True,
        ),
    )


GRAD_COMPRESSIONS = Catalogue(CATALOG / "grad_compressions.csv", _compression, what="gradient compression")


def load_grad_compressions() -> dict[str, GradCompression]:
    """All methods by id.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return GRAD_COMPRESSIONS.by_id


def find_grad_compression(name: str) -> GradCompression | None:
    """Find a method by name or alias, optionally with the rank of its factors (`powersgd:8`); None for `none`.

    Raises:
        UsageError: no such method (similar names are offered), the method has no rank, or the rank is invalid.
    """
    if name == NONE:
        return None
    bare, colon, text = name.partition(OF_RANK)
    how = GRAD_COMPRESSIONS.find(bare)
    if not colon:
        return how
    if not how.rank:
        raise UsageError(
            Message.of("error.compression_no_rank", name=how.name),
            hint=Message.of("hint.compression_no_rank", id=how.id),
        )
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_RANK:
        raise UsageError(
            Message.of("error.compression_rank", rank=text),
            hint=Message.of("hint.compression_rank", most=MOST_RANK),
        )
    return replace(how, rank=int(text))

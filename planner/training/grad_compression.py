"""Ways to compress the gradients that data parallel ranks reduce, as rows of `catalog/grad_compressions.csv`."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import Message, UsageError
from planner.evidence import Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row

NONE = "none"
"""Gradients are reduced as they are."""
OF_RANK = ":"
"""Between the name of a method and the rank of its factors: `powersgd:8`."""
MOST_RANK = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class GradCompression:
    """What a method sends in place of gradients, and what it costs beside that."""

    id: str
    """`powersgd`, `1bit` or `fp8`."""
    name: str
    rank: int
    """Of the two factors that stand for each matrix, where nobody says; 0: it works element by element."""
    sent_bits: float
    """Per element, where it works element by element."""
    warmup_ratio: float
    """Share of the steps that are reduced as usual first, 0..1."""
    messages: float
    """Reductions in place of one: the factors go one after the other."""
    passes: float
    """Reads and writes of the gradient or its residual to code and decode it."""
    coded_bytes: float
    """The same of the coded form, per element."""
    residuals: float
    """Copies of the gradient that keep what was not sent (error feedback)."""
    fp32: bool
    """Whether passes and copies are in FP32 whatever the gradients are; else in the type of the reduction."""
    most_zero: int
    """Highest ZeRO stage that goes with it: beyond no rank has the whole tensor that it works on (gradients: 1,
    the momentum: 0)."""
    stacks: tuple[str, ...]
    """Software stacks that have it, the usual one first; empty: any."""
    home: str
    """What it is part of, for messages."""
    paper: str
    optimizers: tuple[str, ...]
    """Ids of the optimizers that it is defined for; empty: all."""
    compute: str | None
    """Type that the GPU must have (NCCL reduces FP8 on GPUs that compute in it); None: any GPU."""
    published_bytes_ratio: float | None
    """How many times fewer bytes over a run its paper states; None where that depends on the model."""
    evidence: Evidence
    """Its paper, with the effect on accuracy that this states."""


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
    """The method of a name or alias, with the rank of its factors after a colon: `powersgd:8`; None for `none`.

    Raises:
        UsageError: no such method (similar names are offered), it has no rank, or the rank is none.
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

"""Published runs as evidence: the same workload in two precisions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import cache

from planner.claims.case import Case
from planner.claims.evidence.known import Published, published_runs
from planner.errors import Message, UsageError
from planner.hardware.catalogue import find_gpu
from planner.lazy import dataclass
from planner.validation.runs import PublishedRun

HIGHER_IS_FASTER = ("tokens_per_s_per_gpu", "samples_per_s", "tflops_per_gpu")
SPEED = (*HIGHER_IS_FASTER, "step_time_s")
MEMORY = "peak_mem_gib"
FILE = "planner/catalog/published_runs.csv"
BATCH = "batch that fits"
"""Note on a pair whose card was filled both times: it shows how much the batch grew, not what a step needs."""
RECOMPUTED = "other recomputation"
"""Note on a pair whose runs also differ in recomputation."""
NEIGHBOURS = 3
"""Fewest pairs of one model and architecture that must agree with each other before another can contradict them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One workload, published in two precisions."""

    arch: str
    """Architecture of the GPU."""
    run: PublishedRun
    """The run in the wider precision."""
    frm: str
    to: str
    ratio: float
    """Speed-up; for memory, the share that remains; where the note is `BATCH`, the growth of the batch."""
    note: str
    """What else differs: `BATCH`, `RECOMPUTED`, or nothing. A pair with a note decides no claim."""
    ids: tuple[str, str]


@cache
def pairs(metrics: tuple[str, ...]) -> tuple[Pair, ...]:
    """Return pairs of the shipped published runs, in the order of the file.

    Args:
        metrics: `SPEED` or `(MEMORY,)`.
    """
    groups: dict[tuple[str, str], dict[str, list[Published]]] = {}
    for row in published_runs():
        run = row.run
        if run.pair and run.metric in metrics and run.precision:
            groups.setdefault((run.pair, run.metric), {}).setdefault(run.precision, []).append(row)
    made = []
    for by_precision in groups.values():
        for frm, wide in by_precision.items():
            for to, narrow in by_precision.items():
                pair = _pair(frm, to, wide, narrow) if _narrower(frm, to) else None
                made += [pair] if pair else []
    return tuple(made)


ORDER = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4")


def _narrower(frm: str, to: str) -> bool:
    return ORDER.index(frm) < ORDER.index(to)


def _pair(frm: str, to: str, wide: Sequence[Published], narrow: Sequence[Published]) -> Pair | None:
    first, second = wide[0].run, narrow[0].run
    if first.n_gpus != second.n_gpus or first.gpu != second.gpu:
        return None
    before, after = (statistics.median(row.value for row in rows) for rows in (wide, narrow))
    ratio = before / after if first.metric == "step_time_s" else after / before
    note = "" if _recomputes(first) == _recomputes(second) else RECOMPUTED
    if first.metric == MEMORY:
        if not first.micro_batch or not second.micro_batch:
            return None
        if first.micro_batch != second.micro_batch:
            ratio, note = second.micro_batch / first.micro_batch, BATCH
    ids = (first.id, second.id)
    return Pair(arch=architecture(first.gpu), run=first, frm=frm, to=to, ratio=ratio, note=note, ids=ids)


def _recomputes(run: PublishedRun) -> str:
    return run.act_ckpt or "none"


def architecture(gpu: str) -> str:
    """Return the architecture of a published GPU, or its name where neither the catalogue nor `_FAMILY` knows it."""
    try:
        return find_gpu(gpu).arch
    except UsageError:
        return _FAMILY.get(gpu.split("-")[0], gpu)


_FAMILY = {"v100": "Volta", "a100": "Ampere", "h100": "Hopper", "h800": "Hopper", "quadro": "Turing"}
"""Architectures of GPUs that a publication names without memory or form factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Selection of pairs."""

    metrics: tuple[str, ...]
    """Metrics, as for `pairs`."""
    frm: tuple[str, ...]
    """Wider precisions."""
    to: tuple[str, ...]
    """Narrower precisions."""
    model: str = ""
    """Part of the model's name; empty: all models."""
    arch: str = ""
    """Architecture; empty: all."""

    def groups(self) -> dict[tuple[str, str, str, str], list[Pair]]:
        """Return the pairs by architecture, precisions and note, sorted."""
        groups: dict[tuple[str, str, str, str], list[Pair]] = {}
        for pair in pairs(self.metrics):
            named = self.model.lower() in pair.run.model.lower() and (not self.arch or pair.arch == self.arch)
            if pair.frm in self.frm and pair.to in self.to and named:
                groups.setdefault((pair.arch, pair.frm, pair.to, pair.note), []).append(pair)
        return dict(sorted(groups.items()))


def cases(asked: Asked, value: Callable[[float], float]) -> list[Case]:
    """Return a case for each architecture and precisions, with the median and range of its pairs.

    Pairs with a note are only shown beside the verdict.

    Args:
        asked: selection of pairs.
        value: converts a pair's ratio to the unit of the claim.
    """
    made = []
    for (arch, frm, to, note), group in asked.groups().items():
        batch = note == BATCH
        made.append(
            Case.of(
                [pair.ratio if batch else value(pair.ratio) for pair in group],
                what=", ".join(part for part in (asked.model, arch, arrow(frm, to), note) if part),
                basis="published", source=_source(group), unit="ratio" if batch else None, beside=bool(note),
            )
        )  # fmt: skip
    return made


def _source(group: Sequence[Pair]) -> str:
    """Return the file and the pairs at the ends of the range."""
    ranked = sorted(group, key=lambda pair: pair.ratio)
    if ranked[0].ratio == ranked[-1].ratio:
        return f"{FILE}: {_count(group)}, first {' and '.join(group[0].ids)}"
    least, most = (" and ".join(pair.ids) for pair in (ranked[0], ranked[-1]))
    return f"{FILE}: {_count(group)}, least {least}, most {most}"


def _count(group: Sequence[Pair]) -> str:
    return f"{len(group)} {'pair' if len(group) == 1 else 'pairs'}"


def contradictions(asked: Asked) -> list[Message]:
    """Return notes on pairs that lose speed although all others of their model and architecture gain.

    Such a pair sets the low end of a range. It is kept, since a row is not left out for fitting badly, but a reader is
    told which one it is.
    """
    made = []
    for group in asked.groups().values():
        least = min(group, key=lambda pair: pair.ratio)
        others = [pair.ratio for pair in group if pair is not least and pair.run.model == least.run.model]
        if least.ratio < 1.0 and len(others) >= NEIGHBOURS and min(others) > 1.0:
            made.append(
                Message.of(
                    "claim.note.contradicts", ids=" and ".join(least.ids), ratio=least.ratio, model=least.run.model,
                    arch=least.arch, others=len(others), low=min(others), high=max(others),
                )
            )  # fmt: skip
    return made


def arrow(frm: str, to: str) -> str:
    """Return two precisions as `FP32 → FP16`."""
    return f"{frm.upper()} → {to.upper()}"

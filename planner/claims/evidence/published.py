"""Published runs as evidence: the same workload in two precisions, and the same workload with two kinds of software."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from planner.claims.case import Case
from planner.claims.evidence.known import Published, published_runs
from planner.hardware.catalogue import find_gpu
from planner.validation.runs import PublishedRun

HIGHER_IS_FASTER = ("tokens_per_s_per_gpu", "samples_per_s", "tflops_per_gpu")
SPEED = (*HIGHER_IS_FASTER, "step_time_s")
MEMORY = "peak_mem_gib"
FILE = "planner/catalog/published_runs.csv"


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
    """Of speed, how many times as fast; of memory, what is left of it for each sample of the micro-batch."""
    note: str
    """`per sample` where two peaks of memory are of different micro-batches; else empty."""
    ids: tuple[str, str]


@cache
def pairs(metrics: tuple[str, ...]) -> tuple[Pair, ...]:
    """Pairs of the shipped published runs, in the order of the file.

    Args:
        metrics: `SPEED` or `(MEMORY,)`; memory that a larger batch has filled is compared by the sample.
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
    ratio, note = before / after if first.metric == "step_time_s" else after / before, ""
    if first.metric == MEMORY:
        if not first.micro_batch or not second.micro_batch:
            return None
        ratio *= first.micro_batch / second.micro_batch
        note = "" if first.micro_batch == second.micro_batch else "per sample"
    ids = (first.id, second.id)
    return Pair(arch=architecture(first.gpu), run=first, frm=frm, to=to, ratio=ratio, note=note, ids=ids)


def architecture(gpu: str) -> str:
    """The architecture of a GPU as published; its name where the catalogue does not know it."""
    from planner.errors import UsageError

    try:
        return find_gpu(gpu).arch
    except UsageError:
        return _FAMILY.get(gpu.split("-")[0], gpu)


_FAMILY = {"v100": "Volta", "a100": "Ampere", "h100": "Hopper", "h800": "Hopper", "quadro": "Turing"}
"""Architectures of GPUs that a publication names without their memory or form."""


def cases(
    metrics: tuple[str, ...],
    value: Callable[[float], float],
    *,
    frm: Sequence[str],
    to: Sequence[str],
    model: str = "",
    arch: str = "",
) -> list[Case]:
    """The pairs by architecture and precisions, each a case with its median and range.

    Args:
        metrics: as for `pairs`.
        value: from a pair's ratio to the unit of the claim.
        frm: wider precisions.
        to: narrower precisions.
        model: a part of the model's name; empty: all.
        arch: an architecture; empty: all.
    """
    groups: dict[tuple[str, str, str, str], list[Pair]] = {}
    for pair in pairs(metrics):
        named = model.lower() in pair.run.model.lower() and (not arch or pair.arch == arch)
        if pair.frm in frm and pair.to in to and named:
            groups.setdefault((pair.arch, pair.frm, pair.to, pair.note), []).append(pair)
    return [
        Case.of(
            [value(pair.ratio) for pair in group],
            what=", ".join(part for part in (model, key[0], arrow(key[1], key[2]), key[3]) if part),
            basis="published",
            source=f"{FILE}: {len(group)} {'pair' if len(group) == 1 else 'pairs'}, first {' and '.join(group[0].ids)}",
        )
        for key, group in sorted(groups.items())
    ]


def arrow(frm: str, to: str) -> str:
    """Two precisions as `FP32 → FP16`."""
    return f"{frm.upper()} → {to.upper()}"


def same_workloads(first: str, second: str) -> list[Case]:
    """How many times as fast one kind of software is as another, over runs alike in everything that is published.

    Args:
        first: a part of the name of the framework that is divided.
        second: a part of the name of the other.
    """
    keyed: dict[tuple[object, ...], dict[str, list[Published]]] = {}
    for row in published_runs():
        for name in (first, second):
            if name.lower() in row.run.framework.lower() and row.run.metric in HIGHER_IS_FASTER:
                keyed.setdefault(_workload(row.run), {}).setdefault(name, []).append(row)
    made = []
    for sides in keyed.values():
        if len(sides) == 2:
            fast, slow = (statistics.median(row.value for row in sides[name]) for name in (first, second))
            run = sides[first][0].run
            source = f"{FILE}: {run.id} and {sides[second][0].run.id}"
            what = f"{run.model}, {run.gpu}, {run.n_gpus} GPUs"
            made.append(Case.exactly(fast / slow, what=what, basis="published", source=source))
    return made


def _workload(run: PublishedRun) -> tuple[object, ...]:
    """What two runs must share for their speeds to be compared."""
    return (run.metric, run.model.lower(), run.gpu, run.n_gpus, run.precision, run.seq_len, run.tp or 1, run.pp or 1)

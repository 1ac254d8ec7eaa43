"""Published runs as evidence: the same workload with two kinds of software that shard weights."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator

from planner.claims.case import Case
from planner.claims.evidence.known import Published, published_runs
from planner.claims.evidence.published import FILE, HIGHER_IS_FASTER, architecture
from planner.validation.runs import PublishedRun

FSDP, DEEPSPEED, YAFSDP = "FSDP", "DeepSpeed ZeRO", "YaFSDP"
NEAR_RATIO = 0.02
"""Largest relative difference of two models' parameters at which their speeds are shown next to each other."""


def shards_with(run: PublishedRun, software: str) -> bool:
    """Return whether a run shards with the named software, by its framework or by its stage.

    Megatron-DeepSpeed without a ZeRO stage is not a ZeRO run: its tensor and pipeline parallelism are Megatron's.
    """
    framework, stage = run.framework.lower(), run.zero_or_fsdp_stage.lower()
    if software == DEEPSPEED:
        return "deepspeed" in framework and any(f"zero-{number}" in f"{framework} {stage}" for number in (1, 2, 3))
    named = "yafsdp" in f"{framework} {stage}"
    return named if software == YAFSDP else "fsdp" in f"{framework} {stage}" and not named


def runs_with(software: str) -> tuple[Published, ...]:
    """Return the published runs with the named software."""
    return tuple(row for row in published_runs() if shards_with(row.run, software))


def same_workloads(first: str, second: str) -> list[Case]:
    """Return the speed-ups of one software over another, from runs that agree in everything compared.

    Args:
        first: software whose speed is the numerator.
        second: software whose speed is the denominator.
    """
    keyed: dict[tuple[object, ...], dict[str, list[Published]]] = {}
    for name in (first, second):
        for row in _timed(runs_with(name)):
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


def _timed(rows: Iterable[Published]) -> Iterator[Published]:
    return (row for row in rows if row.run.metric in HIGHER_IS_FASTER)


def _workload(run: PublishedRun) -> tuple[object, ...]:
    """Return the properties that two runs must share for their speeds to be compared."""
    return (*_shape(run), run.model.lower(), run.gpu, run.micro_batch, run.act_ckpt or "none")


def _shape(run: PublishedRun) -> tuple[object, ...]:
    return (run.metric, run.n_gpus, run.precision, run.seq_len, run.tp or 1, run.pp or 1)


def nearest(first: str, second: str) -> list[Case]:
    """Return pairs that are nearly alike, beside the verdict.

    They share size, shape and architecture; their other differences are named.
    """
    made = []
    for slow in _timed(runs_with(second)):
        near = [fast for fast in _timed(runs_with(first)) if _near(fast.run, slow.run)]
        if near:
            fast = min(near, key=lambda row: len(_differences(row.run, slow.run)))
            differs = "; ".join(_differences(fast.run, slow.run))
            source = f"{FILE}: {fast.run.id} and {slow.run.id}"
            what = f"{differs}; {fast.run.n_gpus} GPUs, seq {fast.run.seq_len}"
            made.append(Case.exactly(fast.value / slow.value, what=what, basis="published", source=source, beside=True))
    return made


def _near(first: PublishedRun, second: PublishedRun) -> bool:
    sizes = (first.params_total, second.params_total)
    if not sizes[0] or not sizes[1] or _shape(first) != _shape(second):
        return False
    return abs(sizes[0] / sizes[1] - 1.0) <= NEAR_RATIO and architecture(first.gpu) == architecture(second.gpu)


def _differences(first: PublishedRun, second: PublishedRun) -> list[str]:
    """Return the differences of two runs, as `recomputation full : none`."""
    sides = (
        ("", first.model, second.model), ("", first.gpu, second.gpu),
        ("batch ", _whole(first.global_batch_seqs), _whole(second.global_batch_seqs)),
        ("micro-batch ", first.micro_batch, second.micro_batch),
        ("recomputation ", first.act_ckpt or "none", second.act_ckpt or "none"),
    )  # fmt: skip
    return [f"{label}{left} : {right}" for label, left, right in sides if left != right]


def _whole(number: float | None) -> str:
    return "-" if number is None else f"{number:g}"

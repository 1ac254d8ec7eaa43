"""The results of `mpplan numerics` that claims need, read from a document or from the shipped one.

Only a few fields are read, each in one place here, so that a document with more fields can be read, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from planner.lazy import dataclass
from planner.rows import CATALOG

FILE = CATALOG / "claim_numerics.json"
"""The shipped document, reduced to the part that is read here; `make claimnumerics` records it again."""
FP16_FLUSHES_BELOW_LOG2 = -25
"""Half of FP16's smallest subnormal, 2^-24: smaller values round to zero (IEEE 754-2019 binary16)."""

Doc = Mapping[str, Any]


LARGEST_LOG2 = 1000.0
"""Bound on the exponents of a document, which anybody may have written: a double can hold any power within it."""


def power(log2: float) -> float:
    """Return two to a power, bounded to what a double holds."""
    return float(2.0 ** max(min(log2, LARGEST_LOG2), -LARGEST_LOG2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushing:
    """The gradients of a task that FP16 and BF16 flush to zero."""

    task: str
    values: int
    """Number of gradients examined, over several steps in FP32."""
    counts: Mapping[int, int]
    """Number of these gradients by binary exponent e: from 2^e up to 2^(e+1)."""
    bf16_flushed_ratio: float
    """Share that BF16 flushes to zero without a scale."""

    def fp16_flushed_ratio(self, scale_log2: int) -> float:
        """Return the share that FP16 flushes to zero under a loss scale; exact, since its limit is a power of two."""
        first_kept = FP16_FLUSHES_BELOW_LOG2 - scale_log2
        flushed = sum(count for exponent, count in self.counts.items() if exponent < first_kept)
        return min(flushed / self.values, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicRun:
    """Training under a dynamic loss scale."""

    usual: bool
    """Whether it has torch's defaults; else it has a high initial scale with a short interval."""
    start: float
    growth_interval: int
    steps: int
    skipped: int
    long_run_skipped_ratio: float
    """Share of steps that a long run skips: after each interval one doubling goes too far and is undone."""
    path_log2: tuple[tuple[int, float], ...]
    """Step and log2 of the scale, at the start and wherever it changed."""
    overflow_steps: frozenset[int]

    def factors(self) -> tuple[list[float], list[float]]:
        """Return the factors by which the scale changed, at overflows and elsewhere."""
        after: tuple[list[float], list[float]] = ([], [])
        for (_, before), (step, log2) in zip(self.path_log2, self.path_log2[1:], strict=False):
            after[0 if step - 1 in self.overflow_steps else 1].append(power(log2 - before))
        return after


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """FP16 with loss scales on one task."""

    task: str
    overflows_from_log2: int | None
    """Smallest fixed scale at which a step overflowed, as log2; None: none did."""
    runs: tuple[DynamicRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Runs of a task in FP32 and in a lower precision from the same seeds: lower minus FP32, with a 90 % interval."""

    task: str
    precision: str
    metric: str
    """`loss` or `accuracy`."""
    steps: int
    pairs: int
    diverged: int
    """Number of runs that did not stay finite."""
    low: float
    mid: float
    high: float
    sd: float | None
    """Standard deviation of the differences."""
    baseline: float | None
    """Mean of the metric over the runs in FP32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The results of one run of `mpplan numerics`."""

    source: str
    device: str
    torch: str
    flushing: tuple[Flushing, ...] = ()
    scaling: tuple[Scaling, ...] = ()
    pairs: tuple[Pairs, ...] = ()


def trained_of(document: Doc, source: str) -> Trained:
    """Return the results in a document; emulated or incomplete ones are left out, since FP16 and BF16 run for real.

    Args:
        document: checked against its schema.
        source: its name, for readers.
    """
    return Trained(
        source=source,
        device=str(document["device_name"]),
        torch=str((document.get("software") or {}).get("torch") or "torch"),
        flushing=tuple(_flushing(document)),
        scaling=tuple(_scaling(document)),
        pairs=tuple(_pairs(document)),
    )


def _flushing(document: Doc) -> Iterator[Flushing]:
    for part in document["histograms"]:
        seen = ((part.get("overall") or {}).get("tensors") or {}).get("gradients") or {}
        if not seen.get("values") or seen.get("least_exponent") is None:
            continue
        counts = dict(enumerate(seen["counts"], start=seen["least_exponent"]))
        bf16 = float(seen["formats"]["bf16"]["flushed_ratio"])
        yield Flushing(task=_task(part), values=seen["values"], counts=counts, bf16_flushed_ratio=bf16)


def _scaling(document: Doc) -> Iterator[Scaling]:
    for part in document["loss_scaling"]:
        if part["precision"] == "fp16" and part["mode"] == "real":
            runs = tuple(_dynamic(run) for run in part["dynamic"] if run["steps"] and run["path"])
            yield Scaling(task=_task(part), overflows_from_log2=part["smallest_with_overflow_log2"], runs=runs)


def _dynamic(run: Doc) -> DynamicRun:
    return DynamicRun(
        usual=run["name"] == "usual",
        start=power(run["init_scale_log2"]),
        growth_interval=run["growth_interval"],
        steps=run["steps"],
        skipped=run["skipped"],
        long_run_skipped_ratio=run["steady_skipped_step_ratio"],
        path_log2=tuple((int(point[0]), float(point[1])) for point in run["path"]),
        overflow_steps=frozenset(run["overflow_steps"]),
    )


def _pairs(document: Doc) -> Iterator[Pairs]:
    for part in document["parity"]:
        for pair in part["pairs"]:
            ends = [pair[f"difference_{end}"] for end in ("low", "mid", "high")]
            if pair["mode"] != "real" or pair["baseline"] != "fp32" or None in ends:
                continue
            yield Pairs(
                task=_task(part), precision=pair["precision"], metric=pair["metric"], steps=part["steps"],
                pairs=pair["pairs"], diverged=pair["diverged"], sd=pair["difference_sd"],
                baseline=part.get("baseline_mean"),
                low=ends[0], mid=ends[1], high=ends[2],
            )  # fmt: skip


def _task(part: Doc) -> str:
    """Return a built-in task by its name, and a user's own task as `own`."""
    name = str(part["task"])
    return "own" if ":" in name else name


@cache
def shipped_trained() -> Trained:
    """Return the results that ship."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    recorded = document["recorded"]
    return trained_of(
        document, f"planner/catalog/{FILE.name}: `make claimnumerics`, {recorded['cpu']}, {recorded['date']}"
    )

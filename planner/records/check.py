"""Whether a record can be trusted: what was wrong while it was measured, and what to run again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from planner.records.jsonl import MeasurementFile
from planner.records.measurement import Measurement

MIN_SAMPLES = 5
"""Fewest samples of a median that is to be trusted."""
MAX_CI_RATIO = 0.05
"""Largest half confidence interval over the median."""
DRIFT_RATIO = {"cuda": 0.02, "cpu": 0.10}
"""Change of the canary that makes the points between two canaries doubtful."""
MAX_SHARE = 0.20
"""Share of points with a fault above which the record as a whole is not to be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault of a record."""

    id: str
    """contended, throttled, drift, few-samples, wide, energy, alloc-retries, failed, damaged, no-canary, empty."""
    what: str
    """A sentence with the count."""
    serious: bool
    """True: the record as a whole is not to be trusted."""
    probe_ids: tuple[str, ...]
    kinds: tuple[str, ...]
    """Kinds of the points concerned: what to measure again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What `mpplan check` says."""

    trustworthy: bool
    points: int
    """Points with a result, the last of each probe id."""
    findings: tuple[Finding, ...]


def check_record(file: MeasurementFile) -> Verdict:
    """Look for everything that makes the figures of a record doubtful."""
    points = file.latest()
    timed = [one for one in points if one.status == "ok" and one.time_median_s is not None]
    found = [*_damaged(file), *_faults(points, timed, _drifted(file, timed))]
    if not timed:
        found.append(_finding("empty", "no point has a time", (), serious=True))
    elif not any(one.kind == "canary" for one in timed):
        found.append(_finding("no-canary", "no canary was measured, so drift cannot be seen", ()))
    return Verdict(
        trustworthy=not any(one.serious for one in found),
        points=sum(one.status == "ok" for one in points),
        findings=tuple(found),
    )


def _faults(points: Sequence[Measurement], timed: Sequence[Measurement], drifted: list[Measurement]) -> list[Finding]:
    tests: list[tuple[str, list[Measurement], str]] = [
        ("contended", [m for m in timed if m.quality == "contended"], "measured while something else ran"),
        ("throttled", [m for m in timed if m.quality == "throttled"], "measured while the device slowed itself down"),
        ("drift", drifted, "measured next to a canary that had drifted"),
        ("few-samples", [m for m in timed if (m.samples or 0) < MIN_SAMPLES], f"with fewer than {MIN_SAMPLES} samples"),
        ("wide", [m for m in timed if _wide(m)], f"with a confidence interval wider than ±{MAX_CI_RATIO:.0%}"),
        ("energy", [m for m in points if m.energy_quality == "inconsistent"], "whose energy counter and power differ"),
        ("alloc-retries", [m for m in points if m.alloc_retries], "whose allocator had to retry: times not used"),
        ("failed", [m for m in points if m.status in ("error", "gated")], "without a result (error, or never quiet)"),
    ]
    found = []
    for name, bad, what in tests:
        if bad:
            share = len(bad) / max(len(timed), 1)
            found.append(_finding(name, f"{_count(len(bad))} {what}", bad, serious=share > MAX_SHARE))
    return found


def _damaged(file: MeasurementFile) -> list[Finding]:
    lines = [problem.line for problem in file.problems if not problem.used and problem.line]
    if not lines:
        return []
    shown = ", ".join(str(line) for line in lines[:5]) + (", …" if len(lines) > 5 else "")
    word = "line" if len(lines) == 1 else "lines"
    return [_finding("damaged", f"{len(lines)} {word} cannot be used ({shown})", ())]


def _drifted(file: MeasurementFile, timed: Sequence[Measurement]) -> list[Measurement]:
    """Points whose canary before or after is off by more than the limit, or that say so themselves.

    The reference is the median of the quiet canaries: the first one alone may have been disturbed.
    """
    canaries = [m for m in file.measurements if m.kind == "canary" and m.status == "ok" and m.time_median_s]
    quiet = [m.time_median_s or 0.0 for m in canaries if m.quality != "contended"]
    usual = median(quiet or [m.time_median_s or 0.0 for m in canaries] or [1.0])
    ratios = [(m.seq, (m.time_median_s or 0.0) / usual) for m in canaries]
    bad = []
    for one in timed:
        before = [ratio for seq, ratio in ratios if seq <= one.seq][-1:]
        after = [ratio for seq, ratio in ratios if seq >= one.seq][:1]
        limit = DRIFT_RATIO.get(one.device_kind, 0.02)
        if one.quality == "drift" or any(abs(ratio - 1) > limit for ratio in before + after):
            bad.append(one)
    return bad


def _wide(one: Measurement) -> bool:
    sd = one.time_relative_sd
    return sd is not None and 1.96 * sd > MAX_CI_RATIO


def _count(number: int) -> str:
    return "1 point" if number == 1 else f"{number} points"


def _finding(name: str, what: str, points: Iterable[Measurement], *, serious: bool = False) -> Finding:
    points = tuple(points)
    kinds = tuple(dict.fromkeys(one.kind for one in points))
    return Finding(id=name, what=what, serious=serious, probe_ids=tuple(p.probe_id for p in points), kinds=kinds)


def doubtful(one: Measurement) -> bool:
    """Whether `--resume` should measure this point again."""
    if one.status in ("error", "gated"):
        return True
    return one.status == "ok" and (one.quality in ("contended", "throttled", "drift") or bool(one.alloc_retries))

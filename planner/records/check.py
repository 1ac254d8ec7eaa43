"""Check of whether a record can be trusted: faults during its measurement, and points to measure again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from statistics import median

from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.records.jsonl import MeasurementFile
from planner.records.measurement import Measurement

MIN_SAMPLES = 5
"""Fewest samples of a trustworthy median."""
MAX_CI_RATIO = 0.05
"""Largest half-width of the confidence interval over the median."""
DRIFT_RATIO = {"cuda": 0.03, "cpu": 0.10}
"""Change of the canary that makes the points between two canaries doubtful. On an otherwise idle H100, canaries were
−2.1 to +1.5 % from their median within a quarter of an hour, because the clock that the power limit allows depends on
temperature."""
LOADED_RATIO = 0.4
"""Share of the CPUs that other processes used, at the median over a record's points, above which the machine had no
quiet moment to compare with."""
BEYOND_PEAK = 3.0
"""Multiple of the GPU's peak that no product or copy can exceed, whatever the clock and the datasheet."""
BELOW_PEAK, LARGE_FLOP, LARGE_BYTES = 0.05, 2.0 * 4096.0**3, 1e8
"""Share of its peak that a sound GPU exceeds many times over in its fastest product or copy of at least these sizes."""
MIN_SHARED = 5
"""Fewest points that two records must share for one to be called slower than the other."""
MAX_SHARE = 0.20
"""Share of points with a fault above which the record as a whole is not trustworthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault of a record."""

    id: str
    """contended, loaded, throttled, drift, few-samples, wide, energy, alloc-retries, failed, damaged, no-canary,
    empty, imported, beyond-peak, below-peak."""
    what: str
    """Description of the fault, with the number of points."""
    serious: bool
    """True if the record as a whole is not trustworthy."""
    probe_ids: tuple[str, ...]
    kinds: tuple[str, ...]
    """Kinds of the affected points, which should be measured again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of `mpplan check`."""

    trustworthy: bool
    points: int
    """Number of points with a result; the last line of each probe id counts."""
    findings: tuple[Finding, ...]


def check_record(file: MeasurementFile, gpu: Gpu | None = None) -> Verdict:
    """Look for everything that makes the figures of a record doubtful.

    Args:
        file: the record.
        gpu: the device's row of the catalogue; None if there is no row to compare the rates with.
    """
    points = file.latest()
    timed = [point for point in points if point.status == "ok" and point.time.median_s is not None]
    findings = [*_imported(points), *_damaged(file), *_faults(points, timed, _drifted(file, timed)), *_loaded(timed)]
    findings += _implausible(timed, gpu) if gpu is not None else []
    if not timed and not any(point.kind == "numerics" and point.status == "ok" for point in points):
        findings.append(_finding("empty", "no point has a time", (), serious=True))
    elif timed and not any(point.kind == "canary" for point in timed):
        findings.append(_finding("no-canary", "no canary was measured, so drift cannot be seen", ()))
    return Verdict(
        trustworthy=not any(finding.serious for finding in findings),
        points=sum(point.status == "ok" for point in points),
        findings=tuple(findings),
    )


def time_against(points: Iterable[Measurement], earlier: Iterable[Measurement]) -> tuple[float, int] | None:
    """Median ratio of one record's kernel times to an earlier record's, and the number of points that both measured.

    None if they share too few points to tell.
    """
    times = [
        {
            p.probe_id: p.time.median_s
            for p in record
            if p.usable_time and p.kind not in ("canary", "verify", "collective")
        }
        for record in (points, earlier)
    ]
    ratios = [(times[0][name] or 0.0) / (times[1][name] or 1.0) for name in times[0].keys() & times[1].keys()]
    return (median(ratios), len(ratios)) if len(ratios) >= MIN_SHARED else None


def _imported(points: Sequence[Measurement]) -> list[Finding]:
    """Findings that another tool measured the points, and one for each doubt about them."""
    imported = [point for point in points if point.imported.tool is not None]
    if not imported:
        return []
    tools = ", ".join(sorted({str(point.imported.tool) for point in imported}))
    findings = [_finding("imported", f"{_count(len(imported))} imported from {tools}, not measured by mpplan", ())]
    for doubt in dict.fromkeys(doubt for point in imported for doubt in point.imported.doubts):
        doubted = [point for point in imported if doubt in point.imported.doubts]
        findings.append(_finding("imported", doubt, doubted if len(doubted) < len(imported) else ()))
    return findings


def _faults(points: Sequence[Measurement], timed: Sequence[Measurement], drifted: list[Measurement]) -> list[Finding]:
    contended = [point for point in timed if point.sampling.quality == "contended"]
    throttled = [point for point in timed if point.sampling.quality == "throttled"]
    few = [
        point
        for point in timed
        if point.kind != "collective" and (point.sampling.samples or 0) < MIN_SAMPLES  # nccl-tests prints means
    ]
    wide = [point for point in timed if point.kind != "collective" and _wide(point)]  # times on a network vary
    inconsistent = [point for point in points if point.energy.quality == "inconsistent"]
    retried = [point for point in points if point.memory.alloc_retries]
    tests: list[tuple[str, list[Measurement], str]] = [
        ("contended", contended, "measured while something else ran"),
        ("throttled", throttled, "measured while the device slowed itself down"),
        ("drift", drifted, "measured next to a canary that had drifted"),
        ("few-samples", few, f"with fewer than {MIN_SAMPLES} samples"),
        ("wide", wide, f"with a confidence interval wider than ±{MAX_CI_RATIO:.0%}"),
        ("energy", inconsistent, "whose energy counter and power differ"),
        ("alloc-retries", retried, "whose allocator had to retry: times not used"),
        ("failed", [p for p in points if p.status in ("error", "gated")], "without a result (error, or never quiet)"),
    ]
    findings = []
    for name, bad, what in tests:
        if bad:
            share = len(bad) / max(len(timed), 1)
            findings.append(_finding(name, f"{_count(len(bad))} {what}", bad, serious=share > MAX_SHARE))
    return findings


def _loaded(timed: Sequence[Measurement]) -> list[Finding]:
    """Finding that other processes used the CPU throughout, so the level that was taken for quiet was not quiet."""
    canary_timed = [point for point in timed if point.sampling.clock == "canary"]
    loads = [point.sampling.other_load_ratio for point in canary_timed if point.sampling.other_load_ratio is not None]
    if not loads or median(loads) <= LOADED_RATIO:
        return []
    what = f"other processes used {median(loads):.0%} of the CPUs all along: times are longer than on a quiet machine"
    return [_finding("loaded", what, canary_timed, serious=True)]


def _implausible(timed: Sequence[Measurement], gpu: Gpu) -> list[Finding]:
    """Findings of rates beyond the GPU's capability, and of a GPU that reaches almost none of its peak."""
    shares = [(point, share) for point in timed if (share := _share_of_peak(point, gpu)) is not None]
    beyond = [point for point, share in shares if share > BEYOND_PEAK]
    products = [row for row in shares if (row[0].counts.flop_model or 0.0) >= LARGE_FLOP]
    copies = [row for row in shares if row[0].kind == "bandwidth" and (row[0].counts.bytes_min or 0.0) >= LARGE_BYTES]
    findings = []
    if beyond:
        what = f"{_count(len(beyond))} above {BEYOND_PEAK:g} times the peak of {gpu.name}, which no card reaches"
        findings.append(_finding("beyond-peak", what, beyond, serious=True))
    for name, large in (("product", products), ("copy", copies)):
        if large and (best := max(share for _, share in large)) < BELOW_PEAK:
            what = f"no {name} reaches more than {best:.2%} of the peak of {gpu.name} (another card? a locked clock?)"
            findings.append(_finding("below-peak", what, [point for point, _ in large], serious=True))
    return findings


def _share_of_peak(point: Measurement, gpu: Gpu) -> float | None:
    """Rate of a product or copy over the GPU's peak; None for other work, or if no peak is known."""
    seconds = point.time.median_s
    if not seconds:
        return None
    if point.kind == "bandwidth" and point.counts.bytes_min:
        return point.counts.bytes_min / seconds / gpu.memory_bytes_per_s
    peak = gpu.peak_flop_per_s.get(point.setup.precision or "")
    if point.kind not in ("gemm", "power") or not peak or not point.counts.flop_model:
        return None
    return point.counts.flop_model / seconds / peak


def _damaged(file: MeasurementFile) -> list[Finding]:
    lines = [problem.line for problem in file.damage if problem.line]
    if not lines:
        return []
    shown = ", ".join(str(line) for line in lines[:5]) + (", …" if file.unused_lines > 5 else "")
    word = "line" if file.unused_lines == 1 else "lines"
    return [_finding("damaged", f"{file.unused_lines} {word} cannot be used ({shown})", ())]


def _drifted(file: MeasurementFile, timed: Sequence[Measurement]) -> list[Measurement]:
    """Points whose canary before or after is off by more than the limit, or whose own quality is `drift`.

    The reference is the median of the quiet canaries, because the first one alone may have been disturbed.
    """
    canaries = [p for p in file.measurements if p.kind == "canary" and p.status == "ok" and p.time.median_s]
    quiet_s = [p.time.median_s or 0.0 for p in canaries if p.sampling.quality != "contended"]
    usual_s = median(quiet_s or [p.time.median_s or 0.0 for p in canaries] or [1.0])
    ratios = sorted((p.seq, (p.time.median_s or 0.0) / usual_s) for p in canaries)
    numbers = [seq for seq, _ in ratios]
    bad = []
    for point in timed:
        last, following = bisect_right(numbers, point.seq), bisect_left(numbers, point.seq)
        neighbours = ratios[max(last - 1, 0) : last] + ratios[following : following + 1]
        limit = DRIFT_RATIO.get(point.device.kind, DRIFT_RATIO["cuda"])
        if point.sampling.quality == "drift" or any(abs(ratio - 1) > limit for _, ratio in neighbours):
            bad.append(point)
    return bad


def _wide(point: Measurement) -> bool:
    sd = point.sampled_relative_sd
    return sd is not None and 1.96 * sd > MAX_CI_RATIO


def _count(number: int) -> str:
    return "1 point" if number == 1 else f"{number} points"


def _finding(name: str, what: str, points: Iterable[Measurement], *, serious: bool = False) -> Finding:
    points = tuple(points)
    kinds = tuple(dict.fromkeys(point.kind for point in points))
    return Finding(id=name, what=what, serious=serious, probe_ids=tuple(p.probe_id for p in points), kinds=kinds)


def doubtful(point: Measurement) -> bool:
    """Whether `--resume` should measure this point again."""
    if point.status in ("error", "gated"):
        return True
    spoilt = point.sampling.quality in ("contended", "throttled", "drift") or bool(point.memory.alloc_retries)
    return point.status == "ok" and spoilt

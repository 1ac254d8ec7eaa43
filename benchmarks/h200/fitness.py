"""Check whether a machine is fit for the campaign, from the record of its quick suite."""

from __future__ import annotations

from pathlib import Path

from planner.records.jsonl import read_measurements
from planner.records.measurement import Measurement

EXPECTED = {
    "cuda": {"fp32": "ok", "tf32": "ok", "fp16": "ok", "bf16-autocast": "ok", "bf16-fsdp": "ok", "fp8": "ok"},
    "cpu": {"fp32": "ok", "tf32": "unsupported"},
}
"""Status of the support lines on the machines for which the campaign is made: Hopper, and a CPU for rehearsal."""
EXPECTED_KINDS = {
    "cuda": ("bandwidth", "attention", "power", "gemm", "block", "end_to_end"),
    "cpu": ("bandwidth",),
}
"""Kinds of points that the quick suite must contain."""


def unfit(record: Path, device: str) -> list[str]:
    """Return why the rest of the campaign would be worthless, in sentences; empty where it is not.

    Args:
        record: record of the quick suite.
        device: `cuda` or `cpu`.
    """
    if not record.exists():
        return ["the quick suite wrote no record; the log says why"]
    points = read_measurements(record).latest()
    reasons = _wrong_support(points, EXPECTED[device]) + _missing_kinds(points, EXPECTED_KINDS[device])
    return reasons + (_no_energy(points) if device == "cuda" else [])


def _wrong_support(points: tuple[Measurement, ...], expected: dict[str, str]) -> list[str]:
    status = {point.setup.recipe: point for point in points if point.kind == "support"}
    return [
        f"{recipe} is `{point.status}` where `{wanted}` is expected: {point.reason or 'no reason given'}"
        if (point := status.get(recipe)) is not None
        else f"whether {recipe} runs was not found out"
        for recipe, wanted in expected.items()
        if recipe not in status or status[recipe].status != wanted
    ]


def _missing_kinds(points: tuple[Measurement, ...], expected: tuple[str, ...]) -> list[str]:
    """Return the kinds without a single usable point."""
    measured = {point.kind for point in points if point.status == "ok"}
    return [f"no point of kind `{kind}` was measured" for kind in expected if kind not in measured]


def _no_energy(points: tuple[Measurement, ...]) -> list[str]:
    """Return faults of the energy counter, which must be read and agree with the power field."""
    windows = [point for point in points if point.kind == "power" and point.status == "ok"]
    sources = {point.energy.source for point in windows}
    if windows and sources != {"counter"}:
        named = ", ".join(sorted(source or "none" for source in sources))
        return [f"energy comes from `{named}`, not from the counter: {windows[0].energy.reason or 'no reason given'}"]
    wrong = [point for point in windows if point.energy.quality == "inconsistent"]
    return [f"`{point.probe_id}`: {point.energy.reason}" for point in wrong]

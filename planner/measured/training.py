"""Findings of real training about precisions, for a plan: the lines of `mpplan numerics` in a record."""

from __future__ import annotations

from collections.abc import Iterable

from planner.lazy import dataclass
from planner.records.figures import TrainingNumerics
from planner.records.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionFinding:
    """One finding about one precision on one device."""

    precision: str
    """The lower precision, as a plan names it: `fp16`, `fp8` …"""
    recipe: str
    """Recipe by which the precision was applied."""
    device_kind: str
    """`cuda` or `cpu`."""
    device_name: str
    probe_id: str
    """Point of the record that holds the finding."""
    figures: TrainingNumerics
    """Content of the finding: the task, the pair of precisions, the verdict, the lost steps."""
    gpu: str | None = None
    """Catalogue id of the device; None for a CPU or if no row matches."""
    source: str = ""
    """Name of the record or document."""
    date: str | None = None
    """Day of the measurement."""
    settled_steps: int | None = None
    """For loss scaling: number of steps after the first one that was taken; None if only a record describes the run."""
    settled_skips: int | None = None
    """Number of these steps that an overflow undid."""
    diverged: int | None = None
    """For a pair of precisions: number of runs that ended without a finite result; None if unknown."""


def precision_findings(points: Iterable[Measurement]) -> tuple[PrecisionFinding, ...]:
    """Findings of a record about precisions, in its order; the last line counts if a point was measured again.

    Args:
        points: points of a record.
    """
    newest: dict[str, PrecisionFinding] = {}
    for point in points:
        precision, recipe = point.setup.precision, point.setup.recipe
        if point.kind != "numerics" or point.status != "ok" or precision is None or recipe is None:
            continue
        newest.pop(point.probe_id, None)
        newest[point.probe_id] = PrecisionFinding(
            precision=precision,
            recipe=recipe,
            device_kind=point.device.kind,
            device_name=point.device.name,
            probe_id=point.probe_id,
            figures=point.training_numerics,
        )
    return tuple(newest.values())

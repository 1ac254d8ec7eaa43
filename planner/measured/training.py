"""What real training showed of precisions: the lines of `mpplan numerics` in a record, for a plan."""

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
    """How it was applied."""
    device_kind: str
    """`cuda` or `cpu`."""
    device_name: str
    probe_id: str
    """Point of the record that says it."""
    figures: TrainingNumerics
    """What was found: the task, the pair, the verdict, the steps that were lost."""
    gpu: str | None = None
    """Catalogue id of the device; None where no row matches, and of a CPU."""
    source: str = ""
    """Name of the record or document."""
    date: str | None = None
    """Day of the measurement."""
    settled_steps: int | None = None
    """Of loss scaling: steps after the first one that was taken; None where only a record tells of the run."""
    settled_skips: int | None = None
    """Of them, those that an overflow undid."""
    diverged: int | None = None
    """Of a pair of precisions: runs that ended without a finite figure; None where that is not told."""


def precision_findings(points: Iterable[Measurement]) -> tuple[PrecisionFinding, ...]:
    """What a record tells of precisions, in its order; the last line of a point that was measured again.

    Args:
        points: of a record.
    """
    newest: dict[str, PrecisionFinding] = {}
    for point in points:
        asked, recipe = point.setup.precision, point.setup.recipe
        if point.kind != "numerics" or point.status != "ok" or asked is None or recipe is None:
            continue
        newest.pop(point.probe_id, None)
        newest[point.probe_id] = PrecisionFinding(
            precision=asked,
            recipe=recipe,
            device_kind=point.device.kind,
            device_name=point.device.name,
            probe_id=point.probe_id,
            figures=point.training_numerics,
        )
    return tuple(newest.values())

"""Summary of a record, for choosing between records, listing them, and explaining why one is not used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from planner.hardware.catalogue import match_device
from planner.lazy import dataclass
from planner.records.check import Verdict
from planner.records.home import CPU_LOCAL
from planner.records.jsonl import MeasurementFile
from planner.records.measurement import SEVERAL_RANKS, Measurement
from planner.units import today

SINGLE_GPU_KINDS = (
    "launch", "bandwidth", "gemm", "attention", "memory_op", "block", "optimizer", "end_to_end", "power",
)  # fmt: skip
"""Kinds of points that describe a single GPU."""
WORKLOAD_OF_KIND = {"memory_op": "memory-ops", "end_to_end": "end-to-end", "parallel_step": "parallel-step"}
"""Map from kinds of points to their names in `mpplan probe --workload`, if these differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFacts:
    """Facts about the content of a record's file; the index of the store holds these."""

    device_kind: str | None = None
    """`cuda` or `cpu`; None if no line could be used."""
    device_name: str | None = None
    memory_total_bytes: float | None = None
    power_limit_w: float | None = None
    date: str | None = None
    """ISO 8601 time of the last point."""
    precisions: tuple[str, ...] = ()
    """Precisions with a result."""
    torch_version: str | None = None
    driver_version: str | None = None
    points: int = 0
    """Number of points with a result."""
    trustworthy: bool = False
    unused_lines: int = 0
    """Number of lines that could not be used."""
    imported: str | None = None
    """Tool that measured an imported record; None if mpplan measured it."""
    imported_gpu: str | None = None
    """Catalogue id of the GPU of an imported record."""
    kernels: tuple[str, ...] = ()
    """Kinds and precisions of the results that describe a single device."""
    several_ranks: bool = False
    """Whether mpplan measured it on several ranks at once."""
    collectives: bool = False
    """Whether a result describes the links between its GPUs."""
    numerics_only: bool = False
    """Whether all results are of training in lower precisions (`mpplan numerics`), and none of the device's rates."""
    problem: str | None = None
    """Reason why nothing in the file can be used; None if some of it can, or if it is empty."""

    @property
    def gpu(self) -> str | None:
        """Catalogue id of the device, `cpu-local` for a CPU; None if no row matches."""
        described = catalogue_id(self.device_kind, self.device_name, self.memory_total_bytes, self.power_limit_w)
        return self.imported_gpu or described

    @property
    def day(self) -> str | None:
        """The day of the last point, `YYYY-MM-DD`."""
        return self.date and self.date[:10]

    @property
    def ahead(self) -> bool:
        """Whether it is dated in the future in every time zone, so that the clock was wrong when written or is now."""
        return self.day is not None and self.day > (today() + timedelta(days=1)).isoformat()

    @property
    def may_hold_rates(self) -> bool:
        """Whether it may hold rates of the device; not if it is of several ranks or of numerics and has no kernels."""
        return bool(self.kernels) or not (self.several_ranks or self.numerics_only)

    def lacks(self, other: RecordFacts) -> tuple[str, ...]:
        """Workloads and precisions that another record of the same device measured and this one lacks.

        Workloads have their names in `mpplan probe`. The result is empty if this record has anything that the other
        one lacks.
        """
        if self.device_name != other.device_name or not set(self.kernels) < set(other.kernels):
            return ()
        return tuple(WORKLOAD_OF_KIND.get(name, name) for name in other.kernels if name not in self.kernels)


def catalogue_id(
    kind: str | None, name: str | None, memory_total_bytes: float | None, power_limit_w: float | None
) -> str | None:
    """Catalogue id of a device as its driver describes it, `cpu-local` for a CPU; None if no row matches."""
    if kind == "cpu":
        return CPU_LOCAL
    if name is None or memory_total_bytes is None:
        return None
    gpu = match_device(name, memory_total_bytes, power_limit_w)
    return gpu.id if gpu else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSummary:
    """One record of a store."""

    name: str
    """File name without its suffix, as `mpplan records show` takes it."""
    path: Path
    shipped: bool
    """True if it came with the package and cannot be removed."""
    gpu: str | None
    """Catalogue id of the device, `cpu-local` for a CPU, None if no row matches."""
    facts: RecordFacts


def facts_of(file: MeasurementFile, verdict: Verdict) -> RecordFacts:
    """Collect the facts of a record."""
    if not file.measurements:
        return RecordFacts(unused_lines=file.unused_lines, problem=_why(file))
    last = file.measurements[-1]
    kinds = {point.kind for point in file.measurements if point.status == "ok"}
    measured = (point for point in file.measurements if point.status == "ok" and point.setup.precision)
    return RecordFacts(
        device_kind=last.device.kind,
        device_name=last.device.name,
        memory_total_bytes=last.device.memory_total_bytes,
        power_limit_w=last_limit_w(file.measurements),
        date=max((point.timestamp_utc for point in file.measurements if point.timestamp_utc), default=None),
        precisions=tuple(sorted({str(point.setup.precision) for point in measured})),
        torch_version=last.software.torch_version,
        driver_version=last.software.driver_version,
        points=verdict.points,
        trustworthy=verdict.trustworthy,
        unused_lines=file.unused_lines,
        imported=last.imported.tool,
        imported_gpu=last.imported.catalogue_gpu,
        kernels=_single_gpu_results(file.measurements),
        several_ranks=last.imported.tool is None and any(_is_of_several_ranks(point) for point in file.measurements),
        collectives=any(measures_network(point) for point in file.measurements),
        numerics_only=kinds == {"numerics"},
    )


def last_limit_w(points: Sequence[Measurement]) -> float | None:
    """Power limit of the last point that states one; points that failed or were not timed state none."""
    limits = (point.device_state.power_limit_w for point in reversed(points))
    return next((limit_w for limit_w in limits if limit_w is not None), None)


def resuming(facts: RecordFacts) -> str:
    """Command that completes the newest record of a device."""
    return "mpplan probe --device cpu --resume" if facts.device_kind == "cpu" else "mpplan probe --resume"


def _single_gpu_results(points: Iterable[Measurement]) -> tuple[str, ...]:
    of_device = [point for point in points if point.status == "ok" and point.kind in SINGLE_GPU_KINDS]
    kinds, precisions = {point.kind for point in of_device}, {point.setup.precision for point in of_device}
    return (*(kind for kind in SINGLE_GPU_KINDS if kind in kinds), *sorted(filter(None, precisions)))


def ranks_of(points: Iterable[Measurement]) -> tuple[int, int]:
    """Number of ranks and of nodes in the run that measured a record; 1 and 1 for a single process."""
    names = max((point.ranks.names for point in points), key=len, default=())
    return max(len(names), 1), max(len({name.partition(" rank ")[0] for name in names}), 1)


def _is_of_several_ranks(point: Measurement) -> bool:
    return point.kind in SEVERAL_RANKS or bool(point.ranks.names)


def measures_network(point: Measurement) -> bool:
    """Whether a line is a timed collective between GPUs; gloo and CPUs say nothing about the links between GPUs."""
    comm = point.communication
    between_gpus = point.device.kind == "cuda" and comm.backend in (None, "nccl")
    placed = bool(comm.op and comm.world and comm.world > 1 and comm.nodes and comm.bytes)
    return point.kind == "collective" and point.usable_time and between_gpus and placed


def _why(file: MeasurementFile) -> str | None:
    """First invalid line and its problem; None if there are no lines, as in a record of a probe that has just begun."""
    first = next((problem for problem in file.damage if problem.line), None)
    if first is None:
        return None
    return f"line {first.line}: {f'{first.key}: ' if first.key else ''}{first.what}"


def facts_document(facts: RecordFacts) -> dict[str, Any]:
    """Convert facts to plain JSON values."""
    return asdict(facts)


_TYPES: dict[str, tuple[type, ...]] = {
    field.name: {"tuple": (list,), "int": (int,), "bool": (bool,), "float": (int, float, type(None))}.get(
        str(field.type).split("[")[0].split(" ")[0], (str, type(None))
    )
    for field in fields(RecordFacts)
}
"""Types that JSON may hold, by field."""


def facts_from(document: Mapping[str, Any]) -> RecordFacts:
    """Read the facts that `facts_document` wrote.

    Raises:
        ValueError: the document has other fields or types.
    """
    if not isinstance(document, Mapping) or set(document) != set(_TYPES):
        raise ValueError("expected the facts of a record")
    for name, value in document.items():
        if not isinstance(value, _TYPES[name]):
            raise ValueError(f"{name}: expected another type")
    lists = {name: tuple(str(text) for text in document[name]) for name in ("precisions", "kernels")}
    return RecordFacts(**{**document, **lists})

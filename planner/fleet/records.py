"""The records that are joined: one file per node or GPU, all of the same kind of GPU and the same suite version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

from planner.errors import InputFileError, UsageError
from planner.fleet.readings import member_name, rank_names
from planner.lazy import dataclass
from planner.records.measurement import Measurement
from planner.records.store import StoredRecord, record_of_gpu
from planner.text import one_line

MEMORY_RATIO = 0.08
"""Largest relative difference in memory between two GPUs of one name and product, as `match_device` allows."""
_VERSIONS = ("torch_version", "driver_version", "cuda_version", "nccl_version")
"""Software versions that affect times; a difference causes a warning."""
_PROBE = "measure again with `mpplan probe`"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRecord:
    """One of the records."""

    name: str
    """File name without its suffix, preceded by the folder's name if two files have the same name."""
    stored: StoredRecord
    """The record as it was read."""
    points: tuple[Measurement, ...]
    """Last line of each probe id, for the newest version of the suite in the file."""
    members: tuple[str, ...]
    """The record's name, or one name for each of its ranks."""

    @property
    def path(self) -> str:
        """Path as the user typed it."""
        return str(self.stored.path)


def open_records(paths: Sequence[Path]) -> tuple[FleetRecord, ...]:
    """Read the records of a fleet, and check that they can be joined.

    Raises:
        UsageError: a file is missing or given twice, or two of them have the same name.
        InputFileError: no line of a file can be used, it was imported, or it is of another GPU or version of the suite
            than the first.
    """
    stored = [record_of_gpu(path, None) for path in paths]
    names = _names(stored)
    records = tuple(_record(name, record) for name, record in zip(names, stored, strict=True))
    for record in records:
        _must_be_measured(record)
    _must_be_different(records)
    for record in records[1:]:
        _must_fit(record, records[0])
    return records


def _record(name: str, stored: StoredRecord) -> FleetRecord:
    latest = stored.file.latest()
    newest = max(point.suite_version for point in latest)
    points = tuple(point for point in latest if point.suite_version == newest)
    ranks = rank_names(points)
    members = tuple(member_name(name, rank) for rank in ranks) if ranks else (name,)
    return FleetRecord(name=name, stored=stored, points=points, members=members)


def _names(stored: Sequence[StoredRecord]) -> list[str]:
    """Unique names of the records: `node03` for `node03.jsonl`, else `node03-record` for `node03/record.jsonl`."""
    names = [one_line(record.name) for record in stored]
    if len(set(names)) < len(names):
        names = [one_line(f"{record.path.resolve().parent.name}-{record.name}") for record in stored]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two records are called `{name}`", hint="give each file once, and a name of its own")
    return names


def _must_be_measured(record: FleetRecord) -> None:
    tool = next((point.imported.tool for point in record.points if point.imported.tool is not None), None)
    if tool is not None:
        raise InputFileError(
            f"{record.path}:1: imported_tool: expected a record that mpplan measured, found one imported from {tool}",
            hint=f"leave it out, or {_PROBE}",
        )


def _must_be_different(records: Sequence[FleetRecord]) -> None:
    """Check that no run and no device is given twice, since it would count twice."""
    keys: tuple[tuple[str, Callable[[FleetRecord], tuple[str, ...]]], ...] = (
        ("contains the same run as", run_ids_of),
        ("is of the same GPU as", device_hashes_of),
    )
    for words, key in keys:
        seen: dict[str, FleetRecord] = {}
        for record in records:
            for value in key(record):
                if value in seen:
                    raise UsageError(f"`{record.path}` {words} `{seen[value].path}`", hint=_once(record, seen[value]))
                seen[value] = record


def _once(*records: FleetRecord) -> str:
    """Advice for two records of one GPU."""
    merged = next((record.path for record in records if record.points[0].merged.run_ids), None)
    if merged is None:
        return "give each GPU's record once"
    return f"`{merged}` is a merged record, which has the other's GPU already: give each GPU's record once"


def run_ids_of(record: FleetRecord) -> tuple[str, ...]:
    """Run id of a record and, for a merged record, those of the runs that it was merged from."""
    point = record.points[0]
    return (point.run_id, *point.merged.run_ids)


def device_hashes_of(record: FleetRecord) -> tuple[str, ...]:
    """Hash of the device of a record, or of those behind a merged record; empty if unknown."""
    point = record.points[0]
    own_hash = () if point.device.uuid_hash is None else (point.device.uuid_hash,)
    return own_hash + point.merged.device_hashes


def _must_fit(record: FleetRecord, first: FleetRecord) -> None:
    """Check that a record is of the same kind of GPU and version of the suite as the first."""
    point, first_point = record.points[0], first.points[0]
    gpus = (record.stored.gpu, first.stored.gpu)
    pairs: list[tuple[str, object, object]] = [
        ("device_kind", point.device.kind, first_point.device.kind),
        ("device_name", point.device.name, first_point.device.name),
        ("suite_version", point.suite_version, first_point.suite_version),
        ("compute_capability", point.device.compute_capability, first_point.device.compute_capability),
        ("mig", bool(point.device.mig), bool(first_point.device.mig)),
    ]
    if None not in gpus:  # if a row is unknown due to a power limit, name and memory decide
        pairs.append(("device_name", *gpus))
    size, first_size = point.device.memory_total_bytes, first_point.device.memory_total_bytes
    if point.device.kind == "cuda" and size and first_size and abs(size / first_size - 1.0) > MEMORY_RATIO:
        pairs.append(("memory_total_bytes", f"{size:.0f}", f"{first_size:.0f}"))
    for key, value, expected in pairs:
        if value != expected:
            hint = "merge only records of one GPU model"
            if key == "suite_version":
                hint = "measure the older one again: `mpplan probe --resume` continues a record"
            raise InputFileError(
                f"{record.path}:1: {key}: expected `{expected}` as in {first.path}, found `{value}`", hint=hint
            )


def version_warnings(records: Sequence[FleetRecord]) -> list[str]:
    """Warnings about software versions that differ, with the records that have each."""
    warnings = []
    for name in _VERSIONS:
        by_version: dict[str, list[str]] = {}
        for record in records:
            by_version.setdefault(getattr(record.points[-1].software, name) or "unknown", []).append(record.name)
        if len(by_version) > 1:
            label = name.removesuffix("_version").replace("cuda", "CUDA").replace("nccl", "NCCL")
            shown = "; ".join(f"{version} in {shortlist(names)}" for version, names in by_version.items())
            warnings.append(f"{label} is not the same everywhere, which may explain part of a difference: {shown}")
    return warnings


def doubt_warnings(records: Sequence[FleetRecord]) -> list[str]:
    """Warnings about records that are not trustworthy as a whole, and about lines that could not be used."""
    warnings = []
    for record in records:
        for finding in record.stored.verdict.findings:
            if finding.serious:
                warnings.append(f"{record.name} cannot be trusted: {finding.what}")
        damage = record.stored.file.damage
        if damage:
            unused = record.stored.file.unused_lines
            more = f" (and {unused - 1:,} more)" if unused > 1 else ""
            warnings.append(f"{damage[0].describe(record.path)}{more}; the other lines are used")
    return warnings


def shortlist(names: Sequence[str], most: int = 4) -> str:
    """List names for a sentence: the first ones, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def agreed(parts: Sequence[object]) -> dict[str, object]:
    """Fields in which all dataclasses of one type agree; other fields are left out."""
    first = parts[0]
    names = [field.name for field in fields(first)]  # type: ignore[arg-type] # callers pass dataclasses
    return {
        name: getattr(first, name) for name in names if all(getattr(p, name) == getattr(first, name) for p in parts)
    }

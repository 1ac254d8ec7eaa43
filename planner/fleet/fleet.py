"""Join the records of a fleet into one record, and find the members that slow down the others."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from planner.errors import InputFileError, UsageError
from planner.fleet.lines import device_of, failed_line, merged_line, software_of
from planner.fleet.outliers import (
    KeepingCost,
    Member,
    Outlier,
    joint_log_paces,
    judged_members,
    keeping_cost,
    log_paces,
    slow_records,
)
from planner.fleet.readings import Reading, is_joint, reading_of, without
from planner.fleet.records import (
    FleetRecord,
    device_hashes_of,
    doubt_warnings,
    run_ids_of,
    shortlist,
    version_warnings,
)
from planner.lazy import dataclass
from planner.records.measurement import Measurement
from planner.records.origin import MergedFrom
from planner.rows import near_names

RUN_ID_DIGITS = 32
"""Number of digits of a run id. It is a hash, so that the same members give the same run id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A point that not all members have."""

    probe_id: str
    kept: bool
    """True if it was merged from the records that have it, False if it is not in the merged record."""
    lacking: tuple[tuple[str, str], ...]
    """Records without a usable result, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Result of joining records."""

    device_name: str
    gpu: str | None
    """Catalogue id; None if no row matches."""
    members: tuple[Member, ...]
    outliers: tuple[Outlier, ...]
    together: KeepingCost | None
    """Joint cost of keeping all outliers that are not left out; None if there are fewer than two."""
    measurements: tuple[Measurement, ...]
    """The merged record."""
    missing: tuple[Missing, ...]
    warnings: tuple[str, ...]
    """Versions that differ, records that cannot be trusted, lines that could not be used."""

    @property
    def kept(self) -> int:
        """Number of members in the merged record."""
        return sum(not member.left_out for member in self.members)


Readings = Mapping[str, Sequence[Reading]]
"""Readings of all records, by probe id."""


def join(records: Sequence[FleetRecord], left_out: Sequence[str] = ()) -> Fleet:
    """Join records into one.

    A point is merged if every record has it. A point that some records lack is merged if more than half of the records
    have it and the slowest member is in one of them, because its time is then still the one that the fleet waits for.
    Contended readings count as lacking if a point can be merged without them.

    Args:
        records: records from `open_records`.
        left_out: names of members, or of records to leave out all of their members.

    Raises:
        UsageError: a name is not one of the fleet's, or fewer than two members are left.
        InputFileError: the records share no result, or a point was measured with different numbers of ranks.
    """
    names = [(member, record.name) for record in records for member in record.members]
    excluded = _left_out(names, left_out)
    readings = _readings(records)
    results = [
        reading for point_readings in readings.values() for reading in point_readings if reading.point.status == "ok"
    ]
    members = judged_members(names, results, excluded)
    log_pace = log_paces(results)
    slowest = max(
        (m for m in members if m.name in log_pace and not m.left_out), key=lambda m: log_pace[m.name][0], default=None
    )
    kept_records = [record.name for record in records if any(name not in excluded for name in record.members)]
    lines, missing = _merged(readings, excluded, kept_records, slowest.record if slowest else None)
    if not any(line.status == "ok" for line in lines):
        raise InputFileError(
            f"{records[-1].path}: expected points that the other records have too, found none",
            hint="measure every node with the same suite and precisions",
        )
    outliers = _outliers(members, results, log_pace)
    kept_outliers = [outlier.name for outlier in outliers if not outlier.left_out and outlier.name in log_pace]
    kept = [member.name for member in members if not member.left_out]
    return Fleet(
        device_name=records[0].points[0].device.name,
        gpu=next((record.stored.gpu for record in records if record.stored.gpu), None),
        members=members,
        outliers=outliers,
        together=keeping_cost(log_pace, kept, kept_outliers, len(kept)) if len(kept_outliers) > 1 else None,
        measurements=_as_one_run(lines, [r for r in records if r.name in kept_records], kept),
        missing=tuple(missing),
        warnings=(*version_warnings(records), *doubt_warnings(records)),
    )


def _left_out(names: Sequence[tuple[str, str]], requested: Sequence[str]) -> set[str]:
    """Members to leave out, given by the names of members or of records."""
    excluded: set[str] = set()
    known = [name for pair in names for name in pair]
    for request in requested:
        matching = {member for member, record in names if request in (member, record)}
        if not matching:
            near = near_names(request, dict.fromkeys(known), 2)
            hint = f"did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else None
            all_names = shortlist(list(dict.fromkeys(member for member, _ in names)), 8)
            raise UsageError(
                f"--leave-out: no member is called `{request}`", hint=hint or f"the members are {all_names}"
            )
        excluded |= matching
    remaining = len(names) - len(excluded)
    if remaining < 2:
        word = "is" if remaining == 1 else "are"
        count = f"of {len(names)} members {remaining} {word} left" if excluded else "there is one member"
        raise UsageError(f"a fleet needs at least two members: {count}", hint="give one record for each node or GPU")
    return excluded


def _readings(records: Sequence[FleetRecord]) -> dict[str, list[Reading]]:
    """Readings by probe id, in the order of the records."""
    readings: dict[str, list[Reading]] = {}
    paths: dict[str, FleetRecord] = {}
    for record in records:
        for point in record.points:
            point_readings = readings.setdefault(point.probe_id, [])
            first = point_readings[0].point if point_readings else point
            for key in ("world", "nodes"):
                value, expected = getattr(point.communication, key), getattr(first.communication, key)
                if is_joint(point) and value != expected:
                    raise InputFileError(
                        f"{record.path}: {key}: `{point.probe_id}`: expected {expected} as in "
                        f"{paths[point_readings[0].record].path}, found {value}",
                        hint="measure each node with the same number of ranks",
                    )
            point_readings.append(reading_of(record.name, point, record.members))
        paths[record.name] = record
    return readings


def _merged(
    readings: Readings, excluded: Collection[str], records: Sequence[str], slowest: str | None
) -> tuple[list[Measurement], list[Missing]]:
    """Lines of the merged record, and the points that some records lack."""
    lines: list[Measurement] = []
    missing: list[Missing] = []
    for probe_id, point_readings in readings.items():
        kept_readings = [reading for reading in point_readings if reading.record in records]
        staying = {reading.record: without(reading, excluded) for reading in kept_readings}
        known = [reading for reading in staying.values() if reading is not None]
        unable = [reading for reading in known if reading.point.status in ("oom", "unsupported")]
        results = [reading for reading in known if reading.point.status == "ok"]
        if unable or (known and not results):
            lines.append(failed_line(unable or known))
            if results:
                lacking = [(reading.record, _why_lacking(reading.record, kept_readings, staying)) for reading in unable]
                missing.append(Missing(probe_id=probe_id, kept=False, lacking=tuple(lacking)))
            continue
        chosen = _chosen(results, records, slowest)
        have = {reading.record for reading in chosen or results if chosen or reading.is_quiet}
        lacking = [(name, _why_lacking(name, kept_readings, staying)) for name in records if name not in have]
        if chosen:
            lines.append(merged_line(chosen, [name for name, _ in lacking]))
        if lacking:
            missing.append(Missing(probe_id=probe_id, kept=bool(chosen), lacking=tuple(lacking)))
    return lines, missing


def _chosen(results: Sequence[Reading], records: Sequence[str], slowest: str | None) -> list[Reading]:
    """Readings from which a point is merged: the undisturbed ones if they suffice, else all if they do, else none."""
    for usable in ([reading for reading in results if reading.is_quiet], list(results)):
        have = {reading.record for reading in usable}
        if len(have) == len(records) or (2 * len(have) > len(records) and slowest in (None, *have)):
            return usable
    return []


def _why_lacking(name: str, kept_readings: Sequence[Reading], staying: Mapping[str, Reading | None]) -> str:
    reading = next((reading for reading in kept_readings if reading.record == name), None)
    if reading is None:
        return "not in the record"
    if staying[name] is None:
        return "measured together with a member that is left out"
    if reading.point.status != "ok":
        return f"{reading.point.status}: {reading.point.reason}" if reading.point.reason else reading.point.status
    return "measured while something else ran"


def _outliers(
    members: Sequence[Member], results: Sequence[Reading], log_pace: Mapping[str, tuple[float, int]]
) -> tuple[Outlier, ...]:
    """Members and records that are far from the others, with the costliest first."""
    kept = [member.name for member in members if not member.left_out]
    outliers = [
        Outlier(
            name=member.name, why=member.why, left_out=member.left_out,
            cost=keeping_cost(log_pace, kept, [member.name], len({*kept, member.name})),
        )
        for member in members
        if member.why
    ]  # fmt: skip
    joint_log_pace = joint_log_paces(results)
    kept_records = {member.record for member in members if not member.left_out}
    for name, why in slow_records(results, members).items():
        own = [member.name for member in members if member.record == name]
        cost = keeping_cost(joint_log_pace, kept_records, [name], len({*kept, *own}))
        outliers.append(Outlier(name=name, why=(why,), left_out=name not in kept_records, cost=cost))
    return tuple(sorted(outliers, key=lambda outlier: -outlier.cost.cost_ratio))


def _as_one_run(
    lines: Sequence[Measurement], records: Sequence[FleetRecord], members: Sequence[str]
) -> tuple[Measurement, ...]:
    """Give all lines one run id, one device and one set of software versions."""
    made_of = "\n".join([*sorted(record.points[0].run_id for record in records), *sorted(members)])
    run_id = hashlib.sha256(made_of.encode()).hexdigest()[:RUN_ID_DIGITS]
    device = device_of([record.points[-1].device for record in records])
    software = software_of([record.points[-1].software for record in records])
    merged = MergedFrom(
        run_ids=tuple(sorted({name for record in records for name in run_ids_of(record)})),
        device_hashes=tuple(sorted({name for record in records for name in device_hashes_of(record)})),
    )
    return tuple(
        replace(line, run_id=run_id, seq=seq, device=device, software=software, merged=merged)
        for seq, line in enumerate(lines)
    )

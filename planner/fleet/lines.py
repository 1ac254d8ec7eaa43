"""Merging of the readings of a fleet's records into one line.

Synchronous training waits for the slowest member. The time of a point is therefore that of the slowest member, with the
interval, phases, clocks and numerics of the same line. Memory is the largest of any member, since every member must
hold the point. Power and energy are means over the members, because a bill covers all of them. They do not include the
power that faster members draw while they wait for the slowest. For points of several ranks, the means are over the
groups, whose figures are sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from statistics import median_low

from planner.fleet.readings import Reading, together
from planner.fleet.records import agreed, shortlist
from planner.records.figures import EnergyUse, PeakMemory, PowerDraw
from planner.records.machine import DeviceIdentity, SoftwareVersions
from planner.records.measurement import Measurement

_UNSOUND = ("inconsistent", "short")
"""Qualities of energy windows whose mean power is not used."""
_FAILURES = ("oom", "unsupported", "gated", "error")
"""Statuses of points without a result, the most informative first; the first one that occurs represents the fleet."""


def merged_line(readings: Sequence[Reading], lacking: Sequence[str]) -> Measurement:
    """Merge readings into the line of the fleet; run, number and machine are still those of the slowest member.

    Args:
        readings: readings of the same point with a result, at least one.
        lacking: names of the records without a result.
    """
    slowest = max(readings, key=lambda reading: reading.point.time.median_s or 0.0)
    ranks = together(readings)
    timed = slowest.point.time.median_s is not None
    notes = [f"slowest of {len(ranks.names)}: {slowest.slowest}"] if timed and len(ranks.names) > 1 else []
    notes += [f"not measured by {shortlist(lacking)}"] if lacking else []
    limits = [limit for reading in readings if (limit := reading.point.device_state.power_limit_w) is not None]
    return replace(
        slowest.point,
        reason="; ".join(notes) or None,
        memory=_memory(readings, slowest),
        energy=_energy(readings, slowest),
        power=_power(readings),
        device_state=replace(slowest.point.device_state, power_limit_w=median_low(limits) if limits else None),
        ranks=ranks,
        timestamp_utc=_latest(readings),
        monotonic_s=None,
    )


def failed_line(readings: Sequence[Reading]) -> Measurement:
    """Line of a point without a result for the fleet: some member cannot run it, or no member has a result."""
    worst = min(readings, key=lambda reading: _FAILURES.index(reading.point.status))
    status = worst.point.status
    names = [reading.record for reading in readings if reading.point.status == status]
    why = f": {worst.point.reason}" if worst.point.reason else ""
    return replace(
        worst.point,
        reason=f"in {shortlist(names)}{why}",
        ranks=replace(worst.ranks, names=(), slowed=()),
        timestamp_utc=_latest(readings),
        monotonic_s=None,
    )


def _latest(readings: Sequence[Reading]) -> str | None:
    return max((reading.point.timestamp_utc for reading in readings if reading.point.timestamp_utc), default=None)


def _sound(readings: Sequence[Reading]) -> list[Reading]:
    """Readings whose power can be used, or all readings if there are none."""
    sound = [reading for reading in readings if reading.point.energy.quality not in _UNSOUND]
    return sound or list(readings)


def _power(readings: Sequence[Reading]) -> PowerDraw:
    """Power with each figure as the mean over the members that have it."""
    sound = _sound(readings)
    return PowerDraw(**{field.name: _mean([(r, getattr(r.point.power, field.name)) for r in sound])
                        for field in fields(PowerDraw)})  # fmt: skip


def _energy(readings: Sequence[Reading], slowest: Reading) -> EnergyUse:
    """Mean energy of an iteration over the members; other fields are those of the slowest member with an energy."""
    known = [reading for reading in _sound(readings) if reading.point.energy.j_per_iteration is not None]
    if not known:
        return slowest.point.energy
    slowest_known = max(known, key=lambda reading: reading.point.time.median_s or 0.0)
    energy_j = _mean([(reading, reading.point.energy.j_per_iteration) for reading in known])
    return replace(slowest_known.point.energy, j_per_iteration=energy_j)


def _mean(values: Sequence[tuple[Reading, float | None]]) -> float | None:
    """Mean weighted by members: a record of several members counts for all of them."""
    known = [(len(reading.ranks.names), value) for reading, value in values if value is not None]
    return sum(count * value for count, value in known) / sum(count for count, _ in known) if known else None


def _memory(readings: Sequence[Reading], slowest: Reading) -> PeakMemory:
    """Memory with each figure as the largest of any member."""
    slowest_memory = slowest.point.memory
    values: dict[str, object] = {"source": slowest_memory.source}
    for field in fields(PeakMemory):
        if field.name != "source":
            known = [v for reading in readings if (v := getattr(reading.point.memory, field.name)) is not None]
            values[field.name] = max(known, default=None)
    return PeakMemory(**values)  # type: ignore[arg-type] # the fields are its own


def device_of(devices: Sequence[DeviceIdentity]) -> DeviceIdentity:
    """Common identity of all devices: fields that differ are unknown, memory is the smallest, the hash is dropped."""
    sizes = [device.memory_total_bytes for device in devices if device.memory_total_bytes is not None]
    known = agreed(devices) | {"uuid_hash": None, "memory_total_bytes": min(sizes, default=None)}
    return DeviceIdentity(**known)  # type: ignore[arg-type] # the fields are its own


def software_of(software: Sequence[SoftwareVersions]) -> SoftwareVersions:
    """Software of all records: of differing versions, up to three are listed; only the common environment is kept."""
    known = agreed(software)
    for field in fields(SoftwareVersions):
        if field.name not in known and field.name.endswith("_version"):
            versions = dict.fromkeys(getattr(each, field.name) or "unknown" for each in software)
            known[field.name] = " and ".join(list(versions)[:3]) + (" …" if len(versions) > 3 else "")
    shared = set.intersection(*(set(each.environment.items()) for each in software))
    return SoftwareVersions(**(known | {"environment": dict(sorted(shared))}))  # type: ignore[arg-type] # its own

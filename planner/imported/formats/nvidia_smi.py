"""`nvidia-smi --query-gpu=timestamp,name,index,power.draw --format=csv -l 1`: samples of power, GPU after GPU.

The header names each column with its unit (`power.draw [W]`), and the cells repeat the unit unless `nounits` was given.
Times are local, like `2026/11/22 12:34:56.789` (nvidia-smi manual, `--format`, `--help-query-gpu`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from planner.imported.formats.base import ImportFormat
from planner.imported.formats.power import PowerLog, numbered, training_point
from planner.imported.reading import ImportContext, Reading
from planner.imported.source import SourceFile, clean_name
from planner.lazy import dataclass
from planner.records.machine import SoftwareVersions
from planner.runlog.moments import Clock, Moment, parse_moment
from planner.units import MIB

HINT = "write it with `nvidia-smi --query-gpu=timestamp,index,name,memory.total,power.draw --format=csv -l 1`"
POWER = {"power.draw.instant": "instant", "power.draw": "average", "power.draw.average": "average"}
"""Columns of power, best first. On Ampere and later, `power.draw` is the average over a second (nvidia-smi manual)."""
NAMES = ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "index")
"""Columns that distinguish GPUs; they are used for nothing else."""
UNREAD = ("[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", "[Insufficient Permissions]")
"""Cells in place of a power that could not be read."""
_UNIT = re.compile(r"\s*\[[^]]*\]$")
_BLENDED = "no column tells GPUs apart: all samples are taken to be of one"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Samples:
    watts: list[float] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)


def _columns(cells: Sequence[str]) -> list[str]:
    return [_UNIT.sub("", cell.strip()) for cell in cells]


def _recognises(head: str) -> bool:
    names = _columns(head.partition("\n")[0].split(","))
    return any(name in POWER for name in names)


def _read(source: SourceFile, context: ImportContext) -> Reading:
    rows = csv.reader(source.text.splitlines(), skipinitialspace=True)
    names = _columns(next(rows, []))
    power = next((name for name in POWER if name in names), None)
    if power is None:
        raise source.fail(1, "power.draw: expected a column of this name", HINT)
    samples, first = _Samples(), dict[str, str]()
    try:
        for cells in rows:
            if not cells or _columns(cells) == names:  # the header is repeated if several logs were joined
                continue
            if len(cells) != len(names):
                raise source.fail(rows.line_num, f"expected {len(names)} cells, found {len(cells)}", HINT)
            row = dict(zip(names, (cell.strip() for cell in cells), strict=True))
            _take(source, rows.line_num, power, row, samples)
            first = first or row
    except csv.Error as error:
        raise source.fail(rows.line_num, f"expected CSV: {error}", HINT) from None
    if not samples.watts:
        raise source.fail(1, f"{power}: expected samples, found none", HINT)
    log = PowerLog(
        watts=np.array(samples.watts),
        gpu=numbered(samples.gpus),
        clock=Clock.of(samples.moments) if samples.moments else None,
        field=POWER[power],
    )
    doubts = [] if any(name in names for name in NAMES) else [_BLENDED]
    if samples.unread:
        left_out = len(samples.unread)
        what = "1 sample could not be read and is" if left_out == 1 else f"{left_out} samples could not be read and are"
        doubts.append(f"{what} left out")
    memory_mib = first.get("memory.total", "").removesuffix(" MiB")
    return Reading(
        points=(training_point(source, log, context, HINT),),
        doubts=(*doubts, "read with nvidia-smi, whose own calls may lag"),
        device_name=clean_name(first.get("name") or first.get("gpu_name") or "") or None,
        memory_total_bytes=source.number(2, "memory.total", memory_mib, above_zero=True) * MIB if memory_mib else None,
        software=SoftwareVersions(driver_version=clean_name(first.get("driver_version", "")) or None),
        date=samples.moments[0].iso() if samples.moments else None,
    )


def _take(source: SourceFile, line: int, power: str, row: dict[str, str], samples: _Samples) -> None:
    if row[power] in UNREAD:
        samples.unread.append(line)
        return
    samples.watts.append(source.number(line, power, row[power].removesuffix(" W")))
    samples.gpus.append(next((row[name] for name in NAMES if name in row), ""))
    if "timestamp" in row:
        moment = parse_moment(row["timestamp"])
        if moment is None:
            raise source.fail(line, f"timestamp: expected a time, found `{clean_name(row['timestamp'])}`", HINT)
        if samples.moments and samples.moments[-1].zoned is not moment.zoned:
            raise source.fail(line, "timestamp: expected a time zone on every time or on none", HINT)
        samples.moments.append(moment)


NVIDIA_SMI = ImportFormat(
    name="nvidia-smi",
    what="CSV of `nvidia-smi --query-gpu=timestamp,…,power.draw --format=csv`",
    gives="mean power and energy of a step, which `mpplan calibrate` learns from",
    takes_steps=True,
    recognises=_recognises,
    read=_read,
)

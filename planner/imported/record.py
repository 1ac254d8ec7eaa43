"""Conversion of imported files to the lines of one record: one device, one run, and each line's source and doubts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from planner.errors import InputFileError, UsageError
from planner.hardware.catalogue import bears_name, find_gpu, load_gpus, match_device
from planner.hardware.gpu import Gpu
from planner.imported.formats.base import ImportFormat
from planner.imported.reading import Reading
from planner.imported.source import SourceFile
from planner.lazy import dataclass
from planner.records.machine import DeviceIdentity
from planner.records.measurement import Measurement
from planner.records.origin import Origin

RUN_ID_DIGITS = 32
"""Number of digits of a run id, which is a hash; a probe's run has a random id of the same length."""
NO_ROW = "no GPU in the catalogue is called `{name}`: no plan can use the points"
GPU_W = (5.0, 5000.0)
"""Plausible range of the power of one GPU: above a sleeping GPU, and at most the limit of the catalogue for one."""
MOST_DOUBTS = 20
"""Most doubts in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """One file, its format and its content."""

    source: SourceFile
    form: ImportFormat
    reading: Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedDevice:
    """The GPU on which all files were measured."""

    name: str
    """Name in the files, otherwise the name in the catalogue."""
    gpu: str | None
    """Catalogue id; None if no row has the name."""
    memory_total_bytes: float | None
    """Size of the memory, as a file gives it."""


def device_of(files: Sequence[ImportedFile], gpu: str | None) -> ImportedDevice:
    """Find the GPU on which the files were measured.

    Args:
        files: at least one.
        gpu: the GPU that the user named; None means the GPU that the files name.

    Raises:
        UsageError: no file names the GPU or several rows have its name, and the user did not choose one; or the GPU
            that they named is unknown.
        InputFileError: two files, or a file and the user, name different GPUs.
    """
    named = find_gpu(gpu) if gpu is not None else None
    first = next((file for file in files if file.reading.device_name), None)
    for file in files:
        _check_same(file, first, named)
    name = None if first is None else first.reading.device_name
    memory_bytes = next((f.reading.memory_total_bytes for f in files if f.reading.memory_total_bytes), None)
    if named is None:
        named = _by_name(name, memory_bytes)
    if name is None:
        assert named is not None
        name = named.name
    return ImportedDevice(name=name, gpu=None if named is None else named.id, memory_total_bytes=memory_bytes)


def _check_same(file: ImportedFile, first: ImportedFile | None, named: Gpu | None) -> None:
    name = file.reading.device_name
    if name is None or first is None:
        return
    first_name = first.reading.device_name
    if name != first_name:
        raise InputFileError(
            f"{file.source.name}:1: expected files of one GPU, found `{name}` after `{first_name}`",
            hint="import the files of each GPU on their own",
        )
    if named is not None and not bears_name(named, name):
        raise InputFileError(
            f"{file.source.name}:1: expected a file of `{named.id}`, found one of `{name}`",
            hint="leave out `--gpu`, or name the GPU of the file",
        )


def _by_name(name: str | None, memory_bytes: float | None) -> Gpu | None:
    """Row of the catalogue for a driver's device name; None if no row has it.

    Raises:
        UsageError: there is no name, or several rows have it.
    """
    if name is None:
        raise UsageError("no file says which GPU was measured", hint="name it with `--gpu`; `mpplan gpus` lists them")
    if memory_bytes is not None and (matched := match_device(name, memory_bytes)) is not None:
        return matched
    rows = [gpu for gpu in load_gpus().values() if gpu.device_name_pattern is not None and bears_name(gpu, name)]
    if len(rows) > 1:
        several = ", ".join(f"`{gpu.id}`" for gpu in rows)
        raise UsageError(f"several GPUs are called `{name}`", hint=f"name one with `--gpu`: {several}")
    return rows[0] if rows else None


def to_measurements(files: Sequence[ImportedFile], device: ImportedDevice, mpplan_version: str) -> list[Measurement]:
    """Make the lines of a record.

    The same files give the same record, except for the time of writing.

    Args:
        files: at least one.
        device: their GPU.
        mpplan_version: version of the importing program.

    Raises:
        InputFileError: a power is not plausible for a GPU.
    """
    digest = hashlib.sha256("".join(file.source.sha256 for file in files).encode())
    written = datetime.now(UTC).isoformat(timespec="milliseconds")
    measurements: list[Measurement] = []
    for file in files:
        _check_power(file)
        measurements += _lines(file, device, digest.hexdigest()[:RUN_ID_DIGITS], len(measurements))
    return [
        replace(line, timestamp_utc=written, software=replace(line.software, mpplan_version=mpplan_version))
        for line in measurements
    ]


def _check_power(file: ImportedFile) -> None:
    """Reject a power that no GPU draws, which indicates wrong units: milliwatts, kilojoules, the power of a node.

    Raises:
        InputFileError: there is such a power.
    """
    low, high = GPU_W
    for point in file.reading.points:
        mean_w = point.power.mean_w
        if mean_w is not None and not low <= mean_w <= high:
            raise InputFileError(
                f"{file.source.name}:1: expected {low:g} to {high:g} W per GPU, found a mean of {mean_w:.4g} W",
                hint="check the units and the number of GPUs in the file",
            )


def _lines(file: ImportedFile, device: ImportedDevice, run_id: str, begun: int) -> list[Measurement]:
    reading, tool = file.reading, file.form.name
    unknown = () if device.gpu else (NO_ROW.format(name=device.name),)
    origin = Origin(
        tool=tool, version=reading.tool_version, file=file.source.name, sha256=file.source.sha256, date=reading.date,
        gpu=device.gpu,
    )  # fmt: skip
    return [
        Measurement(
            suite_version=0,
            run_id=run_id,
            probe_id=f"{point.kind}/{point.name}/{tool}-{file.source.sha256[:8]}",
            seq=begun + number,
            status="ok",
            kind=point.kind,
            setup=point.setup,
            shape=point.shape,
            communication=point.communication,
            counts=point.counts,
            time=point.time,
            sampling=point.sampling,
            energy=point.energy,
            power=point.power,
            device=DeviceIdentity(kind="cuda", name=device.name, memory_total_bytes=device.memory_total_bytes),
            software=reading.software,
            imported=replace(
                origin,
                sd_ratio=point.sd_ratio,
                power_sd_ratio=point.power_sd_ratio,
                doubts=(*reading.doubts, *point.doubts, *unknown)[:MOST_DOUBTS],
            ),
        )
        for number, point in enumerate(reading.points)
    ]

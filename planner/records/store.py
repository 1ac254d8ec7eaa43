"""The store of records: the user's own and the shipped ones, and which of them is used for a GPU.

User records are in the user's data directory, shipped ones in `catalog/records/`. The newest trustworthy record of a
GPU is used; user records take precedence over shipped ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from planner.errors import InputFileError, UsageError
from planner.hardware.catalogue import match_device
from planner.records.check import Verdict, check_record
from planner.records.home import CPU_LOCAL, SHIPPED, records_dir
from planner.records.jsonl import MeasurementFile, RecordProblem, read_measurements
from planner.records.measurement import Measurement

_SUFFIXES = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """One record file with what is needed to choose between records."""

    name: str
    """File name without its ending; what `mpplan records show` takes."""
    path: Path
    shipped: bool
    """True: came with the package, cannot be removed."""
    gpu: str | None
    """Catalogue id of the device, `cpu-local` for a CPU, None where no row matches."""
    device_name: str | None
    """None where no line could be used."""
    date: str | None
    """ISO 8601 time of the last point."""
    verdict: Verdict
    file: MeasurementFile


def open_record(path: Path, *, shipped: bool = False) -> StoredRecord:
    """Read one record file.

    Raises:
        UsageError: the file is missing or unreadable.
    """
    file = read_measurements(path)
    last = file.measurements[-1] if file.measurements else None
    return StoredRecord(
        name=_name(path),
        path=path,
        shipped=shipped,
        gpu=gpu_of(last) if last else None,
        device_name=last.device.name if last else None,
        date=max((point.timestamp_utc for point in file.measurements if point.timestamp_utc), default=None),
        verdict=check_record(file),
        file=file,
    )


def gpu_of(point: Measurement) -> str | None:
    """Catalogue id of the device that a line was measured on; None where no row matches."""
    device = point.device
    if device.kind == "cpu":
        return CPU_LOCAL
    if device.memory_total_bytes is None:
        return None
    gpu = match_device(device.name, device.memory_total_bytes, point.device_state.power_limit_w)
    return gpu.id if gpu else None


def list_records(directory: Path | None = None) -> tuple[StoredRecord, ...]:
    """User and shipped records, newest first. A missing directory holds none."""
    own = [open_record(path) for path in _files(directory or records_dir())]
    shipped = [open_record(path, shipped=True) for path in _files(SHIPPED)]
    return tuple(sorted([*own, *shipped], key=lambda record: record.date or "", reverse=True))


def newest_record(gpu: str, records: Iterable[StoredRecord] | None = None) -> StoredRecord | None:
    """The newest trustworthy record of a GPU, a user record before a shipped one; None where there is none."""
    listed = list_records() if records is None else records
    trusted = [record for record in listed if record.gpu == gpu and record.verdict.trustworthy]
    return max(trusted, key=lambda record: (not record.shipped, record.date or ""), default=None)


def record_of_gpu(path: Path, gpu: str | None) -> StoredRecord:
    """A record that the user named, checked to be of the GPU that was asked for (None: any).

    Raises:
        UsageError: the file is missing or unreadable.
        InputFileError: no line can be used, or it is a record of another GPU.
    """
    record = open_record(path)
    if not record.file.measurements:
        first = record.file.problems[0] if record.file.problems else RecordProblem(line=0, key=None, what="empty")
        raise InputFileError(first.said_of(str(path)), hint="measure again with `mpplan probe`")
    if gpu is not None and record.gpu != gpu:
        is_a = f", which is `{record.gpu}`" if record.gpu else ""
        other_record = f"pass a record of `{gpu}`"
        raise InputFileError(
            f"{path}:1: device_name: expected a record of `{gpu}`, found `{record.device_name}`{is_a}",
            hint=f"plan with `--gpu {record.gpu}`, or {other_record}" if record.gpu else other_record,
        )
    return record


def find_record(name: str, records: Iterable[StoredRecord] | None = None) -> StoredRecord:
    """The record of this name, or whose name starts with it.

    Raises:
        UsageError: none or several match.
    """
    listed = tuple(list_records() if records is None else records)
    exact = [record for record in listed if record.name == name]
    near = exact or [record for record in listed if record.name.startswith(name)]
    if len(near) == 1:
        return near[0]
    if not near:
        raise UsageError(f"no record `{name}`", hint="`mpplan records list` lists them")
    raise UsageError(f"`{name}` fits {len(near)} records", hint=f"name one: {', '.join(r.name for r in near)}")


def remove_record(record: StoredRecord) -> None:
    """Delete a user record and its traces.

    Raises:
        UsageError: it came with the package, or cannot be deleted.
    """
    if record.shipped:
        raise UsageError(f"`{record.name}` came with the package", hint="only records of your own can be removed")
    try:
        record.path.unlink()
        for trace in record.path.parent.glob(f"{record.name}.trace.jsonl*"):
            trace.unlink()
    except OSError as error:
        raise UsageError(f"cannot remove `{record.path}`: {error.strerror}", hint="check its permissions") from error


def _name(path: Path) -> str:
    for suffix in reversed(_SUFFIXES):
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.stem


def _files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    files = [path for path in directory.iterdir() if path.name.endswith(_SUFFIXES) and ".trace.jsonl" not in path.name]
    return sorted(path for path in files if path.is_file())

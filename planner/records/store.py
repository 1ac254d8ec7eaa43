"""The store of records: the user's own and the shipped ones, and the choice of the record that is used for a GPU.

User records are in the user's data directory, shipped ones in `catalog/records/`. The newest trustworthy record of a
GPU is used; user records take precedence over shipped ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from planner.errors import InputFileError, MpplanError, UsageError
from planner.files import kind_unless_file
from planner.hardware.catalogue import load_gpus
from planner.lazy import dataclass
from planner.records.check import Verdict, check_record
from planner.records.home import NAMED, SHIPPED, has_data_dir, records_dir
from planner.records.index import FileState, read_index, write_index
from planner.records.jsonl import MeasurementFile, read_measurements
from planner.records.measurement import Measurement
from planner.records.problem import RecordProblem
from planner.records.summary import (
    SINGLE_GPU_KINDS,
    RecordFacts,
    RecordSummary,
    catalogue_id,
    facts_document,
    facts_from,
    facts_of,
)

RECORD_SUFFIXES = (".jsonl", ".jsonl.gz")
"""Suffixes of record files."""
PARTS_SUFFIX = ".parts.jsonl"
"""Suffix of the file beside a record that holds the full results of `mpplan numerics`."""
_SHOWN_NAMES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """One record file with its verdict and the facts for choosing between records."""

    name: str
    """File name without its suffix, as `mpplan records show` takes it."""
    path: Path
    shipped: bool
    """True if it came with the package and cannot be removed."""
    file: MeasurementFile
    verdict: Verdict
    facts: RecordFacts
    """Summary of its content."""

    @property
    def gpu(self) -> str | None:
        """Catalogue id of the device, `cpu-local` for a CPU, None if no row matches."""
        return self.facts.gpu

    @property
    def device_name(self) -> str | None:
        """Name of the device; None if no line could be used."""
        return self.facts.device_name

    @property
    def date(self) -> str | None:
        """ISO 8601 time of the last point."""
        return self.facts.date


def open_record(path: Path, *, shipped: bool = False) -> StoredRecord:
    """Read one record file.

    Raises:
        UsageError: the file is missing or unreadable.
    """
    if shipped and path.is_file():  # cached, since it is first listed and then used
        return _shipped_record(path, path.stat().st_mtime_ns)
    return _opened(path, shipped=shipped)


@lru_cache(maxsize=2)
def _shipped_record(path: Path, _changed_ns: int) -> StoredRecord:
    return _opened(path, shipped=True)


def _opened(path: Path, *, shipped: bool) -> StoredRecord:
    file = read_measurements(path)
    gpu = gpu_of(file.measurements[-1]) if file.measurements else None
    verdict = check_record(file, load_gpus().get(gpu or ""))
    facts = facts_of(file, verdict)
    return StoredRecord(name=_name(path), path=path, shipped=shipped, file=file, verdict=verdict, facts=facts)


def gpu_of(point: Measurement) -> str | None:
    """Catalogue id of the device that a line was measured on; None if no row matches."""
    device = point.device
    return point.imported.catalogue_gpu or catalogue_id(
        device.kind, device.name, device.memory_total_bytes, point.device_state.power_limit_w
    )


def fleet_size(points: Iterable[Measurement]) -> int:
    """Number of GPUs in a merged record, whose rates are those of the slowest GPU; 0 for a record of one GPU.

    Points of several ranks list rank names in any record, but only a merged record does so at kernels of a single GPU.
    """
    return max((len(point.ranks.names) for point in points if point.kind in SINGLE_GPU_KINDS), default=0)


def summarise(record: StoredRecord) -> RecordSummary:
    """Summarise a record."""
    return RecordSummary(name=record.name, path=record.path, shipped=record.shipped, gpu=record.gpu, facts=record.facts)


def list_records(
    directory: Path | None = None, *, shipped_of: Iterable[str] | None = None, named: bool = False
) -> tuple[RecordSummary, ...]:
    """List summaries of user and shipped records, newest first. A missing directory holds none.

    An entry that is named like a record but is none (a directory, a pipe, a damaged file) is listed with its `problem`.

    Args:
        directory: directory of the user's records; None means the store, whose index saves reading unchanged files.
        shipped_of: GPUs whose shipped records are wanted, as their file names show; None means all.
        named: whether to include the shipped records that plans use only if they are named.

    Raises:
        UsageError: the directory exists and cannot be listed.
    """
    user_records: list[RecordSummary] = []
    if directory is not None:
        user_records = list(_summaries(directory))
    elif has_data_dir():
        user_records = _indexed(records_dir())
    by_name = (_summary(Path(entry.path), shipped=True) for entry in _entries(SHIPPED / NAMED)) if named else ()
    return _newest_first([*user_records, *_shipped(shipped_of), *by_name])


def _newest_first(records: Iterable[RecordSummary]) -> tuple[RecordSummary, ...]:
    return tuple(sorted(records, key=_date, reverse=True))


def newest_record(gpu: str, records: Iterable[RecordSummary]) -> RecordSummary | None:
    """Newest trustworthy record of a single GPU, preferring user records to shipped ones; None if there is none.

    An imported record is used only if it is named. A record of several ranks is used if it has kernels, but never
    instead of a record of a single GPU, because it has few kernels. A record of a part of the suite is not used instead
    of an older record that measured all of that part and more.
    """
    return newest_whole(_of_the_best_kind(gpu, records))


def newest_whole(records: Iterable[RecordSummary]) -> RecordSummary | None:
    """Newest record, leaving out records that measured only a part of what another one did; None if there are none."""
    listed = tuple(records)
    whole = [record for record in listed if not any(record.facts.lacks(other.facts) for other in listed)]
    return max(whole, key=_date, default=None)


def newer_part(gpu: str, records: Iterable[RecordSummary]) -> RecordSummary | None:
    """Newest record of a GPU if `newest_record` chooses another one, which measured more; otherwise None."""
    listed = tuple(records)
    newest, used = max(_of_the_best_kind(gpu, listed), key=_date, default=None), newest_record(gpu, listed)
    return None if newest is None or used is None or newest.path == used.path else newest


def record_before(used: RecordSummary, records: Iterable[RecordSummary]) -> RecordSummary | None:
    """The user's newest trustworthy record of the same device before `used`; None if there is none."""
    older = [
        record
        for record in _of_the_best_kind(used.gpu or "", records)
        if not record.shipped and record.facts.device_name == used.facts.device_name and _date(record) < _date(used)
    ]
    return max(older, key=_date, default=None)


def _of_the_best_kind(gpu: str, records: Iterable[RecordSummary]) -> list[RecordSummary]:
    """Trustworthy records with kernels of the best kind: single GPU before several ranks, then user before shipped."""
    of_kernels = [record for record in _trusted(gpu, records) if record.facts.may_hold_rates]
    best = max((_kind(record) for record in of_kernels), default=None)
    return [record for record in of_kernels if _kind(record) == best]


def _kind(record: RecordSummary) -> tuple[bool, bool]:
    return not record.facts.several_ranks, not record.shipped


def _date(record: RecordSummary) -> tuple[bool, str]:
    """Sort key for the newest record; records dated in the future come last, or they would stay newest for good."""
    return not record.facts.ahead, record.facts.date or ""


def newest_network(gpu: str, records: Iterable[RecordSummary]) -> RecordSummary | None:
    """Newest trustworthy user record of collectives between GPUs of this type; None if there is none.

    A shipped record is of another fabric, and an imported one is used only if it is named.
    """
    candidates = [record for record in _trusted(gpu, records) if record.facts.collectives and not record.shipped]
    return max(candidates, key=_date, default=None)


def _trusted(gpu: str, records: Iterable[RecordSummary]) -> list[RecordSummary]:
    """Trustworthy records of a GPU that mpplan measured itself."""
    return [
        record for record in records if record.gpu == gpu and record.facts.trustworthy and record.facts.imported is None
    ]


def record_of_gpu(path: Path, gpu: str | None) -> StoredRecord:
    """Open a record that the user named, and check that it is of the given GPU (None: any).

    Raises:
        UsageError: the file is missing or unreadable.
        InputFileError: no line can be used, or it is a record of another GPU.
    """
    record = open_record(path)
    must_be_of_gpu(record, gpu)
    return record


def must_be_of_gpu(record: StoredRecord, gpu: str | None) -> None:
    """Check that an opened record has usable lines and is of the given GPU (None: any).

    Raises:
        InputFileError: no line can be used, or it is a record of another GPU.
    """
    if not record.file.measurements:
        first = record.file.problems[0] if record.file.problems else RecordProblem(line=0, key=None, what="empty")
        hint = "update mpplan to read it" if record.file.is_newer else "measure again with `mpplan probe`"
        raise InputFileError(first.describe(str(record.path)), hint=hint)
    if gpu is not None and record.gpu != gpu:
        is_a = f", which is `{record.gpu}`" if record.gpu else ""
        other_record = f"pass a record of `{gpu}`"
        raise InputFileError(
            f"{record.path}:1: device_name: expected a record of `{gpu}`, found `{record.device_name}`{is_a}",
            hint=f"plan with `--gpu {record.gpu}`, or {other_record}" if record.gpu else other_record,
        )


def _own_first(same: list[RecordSummary]) -> list[RecordSummary]:
    """Among records of one name, keep the user's own, as plans do; if there are none, keep the shipped ones."""
    return [record for record in same if not record.shipped] or same


def find_record(name: str, records: Iterable[RecordSummary] | None = None, *, prefix: bool = False) -> RecordSummary:
    """Find the record of this name.

    Args:
        name: full name of the record or of its file; a record may have a compressed copy of the same name beside it.
        records: records to choose from; None means those of the store and of the package.
        prefix: whether to accept a prefix that only one record's name starts with.

    Raises:
        UsageError: the name is empty, or none or several match.
    """
    if not name.strip():
        raise UsageError("the name of a record is empty", hint="`mpplan records list` lists them")
    listed = tuple(list_records(named=True) if records is None else records)
    files = [record for record in listed if record.path.name == name]
    exact = _own_first(files or [record for record in listed if record.name == name])
    near = [record for record in listed if record.name.startswith(name)]
    chosen = exact or (near if prefix else [])
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        raise UsageError(f"`{name}` matches {len(chosen)} records", hint=f"name one: {_names(chosen)}")
    if near:
        raise UsageError(f"no record `{name}`", hint=f"name one in full, or add --prefix: {_names(near)}")
    raise UsageError(f"no record `{name}`", hint="`mpplan records list` lists them")


def _names(records: Iterable[RecordSummary]) -> str:
    named = tuple(records)
    same = len({record.name for record in named}) < len(named)
    names = [record.path.name if same else record.name for record in named]
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def remove_record(record: RecordSummary) -> None:
    """Delete a user record and its traces.

    Raises:
        UsageError: it came with the package, or cannot be deleted.
    """
    if record.shipped:
        raise UsageError(f"`{record.name}` came with the package", hint="only your own records can be removed")
    try:
        record.path.unlink()
        for suffix in (".trace.jsonl", ".trace.jsonl.gz", PARTS_SUFFIX):
            record.path.with_name(record.name + suffix).unlink(missing_ok=True)
        for suffix in (".underway", ".lock"):  # left by a process that was killed; the second names its host
            record.path.with_name(record.path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot remove `{record.path}`: {error.strerror}", hint="check its permissions") from error


def _name(path: Path) -> str:
    for suffix in reversed(RECORD_SUFFIXES):
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.stem


def _is_beside(name: str) -> bool:
    """Whether a file belongs to a record without being one."""
    return ".trace.jsonl" in name or name.endswith(PARTS_SUFFIX)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """Directory entries that are named like records, sorted by name.

    Raises:
        UsageError: the directory exists and cannot be listed.
    """
    try:
        with os.scandir(directory) as listed:
            entries = [e for e in listed if e.name.endswith(RECORD_SUFFIXES) and not _is_beside(e.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        hint = "check its permissions"
        raise UsageError(f"cannot list the records in `{directory}`: {error.strerror}", hint=hint) from error
    return sorted(entries, key=lambda entry: entry.name)


def _summaries(directory: Path) -> Iterator[RecordSummary]:
    for entry in _entries(directory):
        yield _summary(Path(entry.path))


def _shipped(gpus: Iterable[str] | None) -> Iterator[RecordSummary]:
    starts = None if gpus is None else tuple(f"{gpu}-" for gpu in gpus)
    for entry in _entries(SHIPPED):
        if starts is None or entry.name.startswith(starts):
            yield _summary(Path(entry.path), shipped=True)


def _indexed(store: Path) -> list[RecordSummary]:
    """Summarise the records of the store, reading only those that the index does not hold in their current state."""
    known = read_index(store)
    entries: dict[str, tuple[FileState, dict[str, object]]] = {}
    summaries = []
    for entry in _entries(store):
        path = Path(entry.path)
        state = _state(entry)
        summary = _remembered(path, state, known.get(entry.name)) or _summary(path)
        if state is not None:
            entries[entry.name] = state, facts_document(summary.facts)
        summaries.append(summary)
    if entries != known:
        write_index(store, entries)
    return summaries


def _state(entry: os.DirEntry[str]) -> FileState | None:
    """State of a regular file; None for anything else."""
    try:
        return FileState.of(entry.stat()) if entry.is_file() else None
    except OSError:
        return None


def _remembered(
    path: Path, state: FileState | None, known: tuple[FileState, dict[str, object]] | None
) -> RecordSummary | None:
    """Summary from the index, if the file has not changed since."""
    if known is None or known[0] != state:
        return None
    try:
        return _in_short(path, facts_from(known[1]))
    except ValueError:
        return None


def _summary(path: Path, *, shipped: bool = False) -> RecordSummary:
    """Summarise a record; one that cannot be read has a problem. A pipe in a store is not a record and not opened."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return _in_short(path, RecordFacts(problem=error.strerror or str(error)), shipped=shipped)
    kind = kind_unless_file(mode)
    if kind is not None:
        return _in_short(path, RecordFacts(problem=f"it is {kind}"), shipped=shipped)
    try:
        return summarise(open_record(path, shipped=shipped))
    except MpplanError as error:
        return _in_short(path, RecordFacts(problem=str(error)), shipped=shipped)


def _in_short(path: Path, facts: RecordFacts, *, shipped: bool = False) -> RecordSummary:
    return RecordSummary(name=_name(path), path=path, shipped=shipped, gpu=facts.gpu, facts=facts)

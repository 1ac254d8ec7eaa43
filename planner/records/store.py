"""The store of records: the user's own and the shipped ones, and which of them is used for a GPU.

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
    KINDS_OF_KERNELS,
    RecordFacts,
    RecordSummary,
    catalogue_id,
    facts_document,
    facts_from,
    facts_of,
)

RECORD_SUFFIXES = (".jsonl", ".jsonl.gz")
"""Endings of the files of records."""
PARTS_SUFFIX = ".parts.jsonl"
"""Ending of the file beside a record that holds what `mpplan numerics` found in full."""
_SHOWN_NAMES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """One record file with what is needed to choose between records."""

    name: str
    """File name without its ending; what `mpplan records show` takes."""
    path: Path
    shipped: bool
    """True: came with the package, cannot be removed."""
    file: MeasurementFile
    verdict: Verdict
    facts: RecordFacts
    """What it says in short."""

    @property
    def gpu(self) -> str | None:
        """Catalogue id of the device, `cpu-local` for a CPU, None where no row matches."""
        return self.facts.gpu

    @property
    def device_name(self) -> str | None:
        """None where no line could be used."""
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
    if shipped and path.is_file():  # listed first, then used: read once
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
    """Catalogue id of the device that a line was measured on; None where no row matches."""
    device = point.device
    return point.imported.catalogue_gpu or catalogue_id(
        device.kind, device.name, device.memory_total_bytes, point.device_state.power_limit_w
    )


def fleet_size(points: Iterable[Measurement]) -> int:
    """GPUs that the rates of a merged record are the slowest's of; 0 in a record of one GPU.

    Points of several ranks name them in any record; only a merged one names members at kernels of a single GPU.
    """
    return max((len(point.ranks.names) for point in points if point.kind in KINDS_OF_KERNELS), default=0)


def summarise(record: StoredRecord) -> RecordSummary:
    """A record in short."""
    return RecordSummary(name=record.name, path=record.path, shipped=record.shipped, gpu=record.gpu, facts=record.facts)


def list_records(
    directory: Path | None = None, *, shipped_of: Iterable[str] | None = None, named: bool = False
) -> tuple[RecordSummary, ...]:
    """User and shipped records in short, newest first. A missing directory holds none.

    What has the name of a record and is none (a directory, a pipe, a damaged file) is listed with its `problem`.

    Args:
        directory: where the user's records are; None: the store, whose index saves reading what has not changed.
        shipped_of: GPUs whose shipped records are wanted, which their names tell; None: all.
        named: with those of the package that plans use only where they are named.

    Raises:
        UsageError: the directory is there and cannot be listed.
    """
    own: list[RecordSummary] = []
    if directory is not None:
        own = list(_summaries(directory))
    elif has_data_dir():
        own = _indexed(records_dir())
    by_name = (_summary(Path(entry.path), shipped=True) for entry in _entries(SHIPPED / NAMED)) if named else ()
    return _newest_first([*own, *_shipped(shipped_of), *by_name])


def _newest_first(records: Iterable[RecordSummary]) -> tuple[RecordSummary, ...]:
    return tuple(sorted(records, key=_date, reverse=True))


def newest_record(gpu: str, records: Iterable[RecordSummary]) -> RecordSummary | None:
    """The newest trustworthy record of a GPU by itself, a user record before a shipped one; None where there is none.

    An imported record is used where it is named, and never instead of one that mpplan measured. One of several ranks
    is used where it has kernels, and never instead of one of a single GPU: it has few of them. One of a part of the
    suite is not used instead of an older one that measured all of that and more.
    """
    return newest_whole(_of_the_best_kind(gpu, records))


def newest_whole(records: Iterable[RecordSummary]) -> RecordSummary | None:
    """The newest of some records, none that measured only a part of what another did; None where there are none."""
    listed = tuple(records)
    whole = [record for record in listed if not any(record.facts.lacks(other.facts) for other in listed)]
    return max(whole, key=_date, default=None)


def newer_part(gpu: str, records: Iterable[RecordSummary]) -> RecordSummary | None:
    """The newest record of a GPU, where `newest_record` is another, which measured more; else None."""
    listed = tuple(records)
    newest, used = max(_of_the_best_kind(gpu, listed), key=_date, default=None), newest_record(gpu, listed)
    return None if newest is None or used is None or newest.path == used.path else newest


def record_before(used: RecordSummary, records: Iterable[RecordSummary]) -> RecordSummary | None:
    """The user's newest other trustworthy record of such a device by itself that is older; None where there is none."""
    older = [
        record
        for record in _of_the_best_kind(used.gpu or "", records)
        if not record.shipped and record.facts.device_name == used.facts.device_name and _date(record) < _date(used)
    ]
    return max(older, key=_date, default=None)


def _of_the_best_kind(gpu: str, records: Iterable[RecordSummary]) -> list[RecordSummary]:
    """Trustworthy records of kernels: of one GPU by itself before those of ranks, a user's before shipped ones."""
    of_kernels = [record for record in _trusted(gpu, records) if record.facts.gives_kernels]
    best = max((_kind(record) for record in of_kernels), default=None)
    return [record for record in of_kernels if _kind(record) == best]


def _kind(record: RecordSummary) -> tuple[bool, bool]:
    return not record.facts.several_ranks, not record.shipped


def _date(record: RecordSummary) -> tuple[bool, str]:
    """By which the newest is found; one that is dated ahead of the clock would stay the newest for good."""
    return not record.facts.ahead, record.facts.date or ""


def newest_network(gpu: str, records: Iterable[RecordSummary]) -> RecordSummary | None:
    """The newest trustworthy user record of collectives between such GPUs; None where there is none.

    A shipped one tells of another fabric, an imported one is used where it is named.
    """
    own = [record for record in _trusted(gpu, records) if record.facts.collectives and not record.shipped]
    return max(own, key=_date, default=None)


def _trusted(gpu: str, records: Iterable[RecordSummary]) -> list[RecordSummary]:
    """The trustworthy records of a GPU that mpplan measured."""
    return [
        record for record in records if record.gpu == gpu and record.facts.trustworthy and record.facts.imported is None
    ]


def record_of_gpu(path: Path, gpu: str | None) -> StoredRecord:
    """A record that the user named, checked to be of the GPU that was asked for (None: any).

    Raises:
        UsageError: the file is missing or unreadable.
        InputFileError: no line can be used, or it is a record of another GPU.
    """
    record = open_record(path)
    must_be_of_gpu(record, gpu)
    return record


def must_be_of_gpu(record: StoredRecord, gpu: str | None) -> None:
    """Check a record that the user named, which is open already, as `record_of_gpu` does.

    Raises:
        InputFileError: no line can be used, or it is a record of another GPU.
    """
    if not record.file.measurements:
        first = record.file.problems[0] if record.file.problems else RecordProblem(line=0, key=None, what="empty")
        hint = "update mpplan to read it" if record.file.is_newer else "measure again with `mpplan probe`"
        raise InputFileError(first.said_of(str(record.path)), hint=hint)
    if gpu is not None and record.gpu != gpu:
        is_a = f", which is `{record.gpu}`" if record.gpu else ""
        other_record = f"pass a record of `{gpu}`"
        raise InputFileError(
            f"{record.path}:1: device_name: expected a record of `{gpu}`, found `{record.device_name}`{is_a}",
            hint=f"plan with `--gpu {record.gpu}`, or {other_record}" if record.gpu else other_record,
        )


def _own_first(same: list[RecordSummary]) -> list[RecordSummary]:
    """Of records of one name the user's own, as in plans; those of the package where there is none."""
    return [record for record in same if not record.shipped] or same


def find_record(name: str, records: Iterable[RecordSummary] | None = None, *, prefix: bool = False) -> RecordSummary:
    """The record of this name.

    Args:
        name: all of it, or of its file: a record may lie beside a packed copy of the same name.
        records: to choose from; None: those of the store and of the package.
        prefix: also the only record whose name starts with it.

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
        raise UsageError(f"`{name}` fits {len(chosen)} records", hint=f"name one: {_names(chosen)}")
    if near:
        raise UsageError(f"no record `{name}`", hint=f"name one in full, or add --prefix: {_names(near)}")
    raise UsageError(f"no record `{name}`", hint="`mpplan records list` lists them")


def _names(records: Iterable[RecordSummary]) -> str:
    listed = tuple(records)
    same = len({record.name for record in listed}) < len(listed)
    names = [record.path.name if same else record.name for record in listed]
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def remove_record(record: RecordSummary) -> None:
    """Delete a user record and its traces.

    Raises:
        UsageError: it came with the package, or cannot be deleted.
    """
    if record.shipped:
        raise UsageError(f"`{record.name}` came with the package", hint="only records of your own can be removed")
    try:
        record.path.unlink()
        for beside in (".trace.jsonl", ".trace.jsonl.gz", PARTS_SUFFIX):
            record.path.with_name(record.name + beside).unlink(missing_ok=True)
        record.path.with_name(record.path.name + ".underway").unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot remove `{record.path}`: {error.strerror}", hint="check its permissions") from error


def _name(path: Path) -> str:
    for suffix in reversed(RECORD_SUFFIXES):
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.stem


def _is_beside(name: str) -> bool:
    """Whether a file belongs to a record and is none itself."""
    return ".trace.jsonl" in name or name.endswith(PARTS_SUFFIX)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """What has the name of a record, sorted by name.

    Raises:
        UsageError: the directory is there and cannot be listed.
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
    """The records of the store, of which only those are read that the index does not know as they are now."""
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
    """What the system says of a regular file; None of anything else."""
    try:
        return FileState.of(entry.stat()) if entry.is_file() else None
    except OSError:
        return None


def _remembered(
    path: Path, state: FileState | None, known: tuple[FileState, dict[str, object]] | None
) -> RecordSummary | None:
    """The summary of the index, where the file is as it was."""
    if known is None or known[0] != state:
        return None
    try:
        return _in_short(path, facts_from(known[1]))
    except ValueError:
        return None


def _summary(path: Path, *, shipped: bool = False) -> RecordSummary:
    """A record in short; what cannot be read has a problem. A pipe in a store is no record and is not opened."""
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

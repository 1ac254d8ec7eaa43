"""`--records`: a record file, or a folder of them, that the user names for the GPUs of a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from planner.errors import InputFileError, UsageError
from planner.records import StoredRecord, list_records, newest_record, record_of_gpu


def named_records(name: str, gpus: Sequence[str]) -> tuple[StoredRecord, ...]:
    """The records of these GPUs: of a file, itself; of a folder, the newest trustworthy one per GPU.

    Raises:
        UsageError: there is no such file or folder, or the folder has no trustworthy record of any of the GPUs.
        InputFileError: no line of the file can be used, or it is a record of another GPU.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        own = [record for record in list_records(path) if not record.shipped]
        found = [record for gpu in gpus if (record := newest_record(gpu, own)) is not None]
        if not found:
            raise UsageError(
                f"--records: no trustworthy record of {' or '.join(gpus)} in `{name}`",
                hint="`mpplan check FILE` says what is wrong with one; leave out --records for your own store",
            )
        return tuple(found)
    record = record_of_gpu(path, gpus[0] if len(gpus) == 1 else None)
    if record.gpu not in gpus:
        raise InputFileError(
            f"{name}:1: device_name: expected a record of {' or '.join(gpus)}, found `{record.device_name}`",
            hint="pass a record of one of them, or leave out --records",
        )
    return (record,)


def damage(records: Iterable[StoredRecord]) -> tuple[str, ...]:
    """`file:line: key: what` of every line that could not be used."""
    return tuple(
        problem.said_of(str(record.path)) for record in records for problem in record.file.problems if not problem.used
    )

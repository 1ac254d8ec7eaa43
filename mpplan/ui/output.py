"""Destinations of results: checked before the work, written completely or not at all; `-` is stdout."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from mpplan.ui.sink import uncleaned
from planner.errors import UsageError
from planner.files import replace_file
from planner.lazy import dataclass
from planner.records.home import user_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A destination that was writable when it was opened."""

    path: Path | None
    """The path; None means stdout."""

    @property
    def is_stdout(self) -> bool:
        """Whether the result goes to stdout."""
        return self.path is None

    def write(self, content: str | bytes) -> None:
        """Write the whole content, text in UTF-8, or else leave the previous content in place.

        Raises:
            UsageError: the destination can no longer be written.
        """
        if self.path is None:
            _to_stdout(content)
            return
        data = content.encode() if isinstance(content, str) else content
        try:
            if self.path.exists() and not self.path.is_file():
                self.path.write_bytes(data)  # a device or a named pipe cannot be replaced
            else:
                replace_file(self.path, data)
        except OSError as error:
            raise _refused(self.path, error.strerror or str(error)) from error


def open_output(name: str, flag: str = "--output", *, takes_stdout: bool = True) -> Output:
    """Check that a result can be written to `name` before the work starts. Create nothing.

    Args:
        name: a path, or `-` for stdout.
        flag: the flag that gave the name, for the message.
        takes_stdout: whether the hint of an error suggests `-`.

    Raises:
        UsageError: the path is empty, a directory, in a missing directory, or not writable.
    """
    if name == "-":
        return Output(path=None)
    if not name.strip():
        raise UsageError(f"{flag}: the path is empty", hint=f"name a file, for example `{flag} plan.html`")
    path = user_path(name)
    try:
        _probe(path)
    except OSError as error:
        raise _refused(path, error.strerror or str(error), takes_stdout=takes_stdout) from error
    except ValueError as error:  # there is a NUL in the name
        raise _refused(path, str(error), takes_stdout=takes_stdout) from error
    return Output(path=path)


def new_output(name: str | None, flag: str = "--output") -> Output | None:
    """Check a destination that must not replace a file, which may be the only copy of a measurement.

    Args:
        name: as for `open_output`; None: nothing is written.
        flag: the flag that gave the name, for the message.

    Raises:
        UsageError: as `open_output`, or the file already exists and is not empty.
    """
    if name is None:
        return None
    place = open_output(name, flag)
    if place.path is not None and place.path.is_file() and place.path.stat().st_size:
        raise UsageError(f"{flag}: `{place.path}` exists already", hint="name another file")
    return place


def new_record(name: str | None, flag: str = "--output") -> Output | None:
    """Check the destination of a new measurement record, including the suffix of its name.

    Raises:
        UsageError: as `new_output`, or the name has no record suffix.
    """
    from planner.records.store import RECORD_SUFFIXES  # this reads the GPU catalogue, which most outputs do not need

    place = new_output(name, flag)
    if place is not None and place.path is not None and not place.path.name.endswith(RECORD_SUFFIXES):
        raise UsageError(f"{flag}: a record ends in `.jsonl` or `.jsonl.gz`", hint=f"name it `{place.path.stem}.jsonl`")
    return place


def growing_record(name: str, *, resume: bool, flag: str = "--output", takes_stdout: bool = True) -> Path:
    """Return the path of a measurement record that grows line by line: a new record or a resumed one.

    Args:
        name: a path.
        resume: whether to continue an existing record.
        flag: the flag that gave the name, for the message.
        takes_stdout: as for `open_output`.

    Raises:
        UsageError: as `open_output`, or the name is not that of a growing record, or the record already exists.
    """
    open_output(name, flag, takes_stdout=takes_stdout)
    path = user_path(name)
    if path.suffix == ".gz":  # lines appended to a compressed file would make it invalid
        unpacked = path.with_suffix("").with_suffix(".jsonl")
        is_there = path.exists() and unpacked == path.with_suffix("")
        command = shlex.join(["gunzip", str(path)])
        hint = f"unpack it first, `{command}`, and name `{unpacked}`" if is_there else f"name it `{unpacked}`"
        raise UsageError(f"{flag}: a record is not packed while it is measured", hint=hint)
    if path.suffix != ".jsonl":
        raise UsageError(f"{flag}: a record ends in `.jsonl`", hint=f"name it `{path.stem}.jsonl`")
    if path.exists() and path.stat().st_size and not resume:
        raise UsageError(f"`{path}` exists already", hint="continue it with `--resume`, or name another file")
    return path


def _probe(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(0, "it is a directory")
    if not path.parent.exists():
        raise FileNotFoundError(0, f"there is no directory `{path.parent}`")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(0, "permission denied")
    if path.exists() and not path.is_file():
        return
    # Only a trial write detects root, read-only mounts and full disks alike.
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(dir=path.resolve().parent, prefix=".mpplan-"):
        pass


def _to_stdout(content: str | bytes) -> None:
    if isinstance(content, str):
        sys.stdout.write(content)
    else:
        sys.stdout.flush()
        binary = uncleaned(sys.stdout).buffer
        binary.write(content)
        binary.flush()


def _refused(path: Path, reason: str, *, takes_stdout: bool = True) -> UsageError:
    hint = "choose another path, or `-` for stdout" if takes_stdout else "choose another path"
    return UsageError(f"cannot write `{path}`: {reason}", hint=hint)

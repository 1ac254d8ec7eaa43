"""Reading files named by a user (regular files and pipes of bounded size), and replacing files as a whole.

Directories and devices are rejected at once, because reading them would fail late or never end. A pipe, such as
`<(zcat plan.json.gz)`, is read to its end; a pipe without a writer counts as empty, without waiting for one.
"""

from __future__ import annotations

import codecs
import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from planner.errors import InputFileError, MpplanError, UsageError

LARGEST_BYTES = 256 * 2**20
"""Largest plausible size of a table, configuration or picture."""

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def open_file(path: Path, *, most_bytes: int = LARGEST_BYTES) -> BufferedReader:
    """Open a regular file or a pipe for reading bytes, without waiting for a writer; the caller closes it.

    Args:
        path: the file.
        most_bytes: largest size allowed.

    Raises:
        UsageError: the file is missing or must not be read.
        InputFileError: it is neither a file nor a pipe, or is larger than `most_bytes`.
    """
    try:
        if not _can_be_read(mode := path.stat().st_mode):
            raise _no_file(path, mode)
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise unreadable(path, error) from None
    file = os.fdopen(descriptor, "rb")
    status = os.fstat(descriptor)
    if not _can_be_read(status.st_mode) or status.st_size > most_bytes:
        file.close()
        if not _can_be_read(status.st_mode):
            raise _no_file(path, status.st_mode)
        raise _too_large(path, most_bytes)
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)
    return file


def _can_be_read(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def read_bytes(path: Path, *, most_bytes: int = LARGEST_BYTES) -> bytes:
    """The content of a file or a pipe.

    Raises:
        UsageError: the file is missing or cannot be read.
        InputFileError: it is neither a file nor a pipe, or is larger than `most_bytes`.
    """
    with open_file(path, most_bytes=most_bytes) as file:
        try:
            content = file.read(most_bytes + 1)  # files in /proc have a size of 0 but contain text
        except OSError as error:
            raise unreadable(path, error) from None
    if len(content) > most_bytes:
        raise _too_large(path, most_bytes)
    return content


def decoded(content: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte-order mark, as spreadsheets and Windows' shells write it.

    Raises:
        UnicodeDecodeError: it is neither.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    return content.decode("utf-8-sig")


def read_text(path: Path, name: str | None = None, *, most_bytes: int = LARGEST_BYTES) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte-order mark, without this mark.

    Args:
        path: the file.
        name: name of the file in errors; None for the last part of its path.
        most_bytes: largest size allowed.

    Raises:
        UsageError: the file is missing or cannot be read.
        InputFileError: it is neither a file nor a pipe, is too large, or is in neither encoding.
    """
    try:
        return decoded(read_bytes(path, most_bytes=most_bytes))
    except UnicodeDecodeError:
        display_name = path.name if name is None else name
        raise InputFileError(f"{display_name}:1: expected text in UTF-8", hint="save the file as UTF-8") from None


def replace_file(path: Path, data: bytes) -> None:
    """Write a file completely or not at all: write a temporary file beside it, and move that over it.

    A link is followed, so that the file to which it leads is replaced. That file keeps its permissions; a new file gets
    the usual ones.

    Raises:
        OSError: the file cannot be written; its previous content stays.
    """
    target = Path(os.path.realpath(path))
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    temporary = target.with_name(f".mpplan-{os.urandom(8).hex()}")

    def open_new(name: str, flags: int) -> int:
        return os.open(name, flags, 0o666 if mode is None else mode)

    try:
        with open(temporary, "xb", opener=open_new) as file:
            file.write(data)
        if mode is not None:  # the process's umask may have taken some of it away
            temporary.chmod(mode)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def unreadable(path: Path, error: OSError | ValueError) -> MpplanError:
    """The error for a file that the system cannot open or read."""
    reason = getattr(error, "strerror", None) or str(error)
    return UsageError(f"cannot read `{path}`: {reason}", hint="check the path and its permissions")


def kind_unless_file(mode: int) -> str | None:
    """The kind of a file system object by its mode (`st_mode`); None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")


def _no_file(path: Path, mode: int) -> InputFileError:
    return InputFileError(f"{path}: expected a file, found {kind_unless_file(mode)}", hint="pass the path of a file")


def _too_large(path: Path, most_bytes: int) -> InputFileError:
    most = f"{most_bytes / 2**20:,.1f} MiB".replace(".0 ", " ") if most_bytes >= 2**20 else f"{most_bytes:,} bytes"
    return InputFileError(f"{path}: larger than {most}", hint="pass a smaller file")

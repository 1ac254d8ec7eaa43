"""Access to a file of another tool: its name, bytes and text, and errors that give the place of a problem."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from planner.errors import InputFileError
from planner.files import LARGEST_BYTES, read_bytes
from planner.runlog.amounts import as_number
from planner.text import one_line, shortened

HEAD_CHARACTERS = 65_536
"""Number of characters at the beginning of a file from which its format is recognised."""
_GZIP = b"\x1f\x8b"
_NAME_CHARACTERS = 120
"""Most characters of a file's name in a record."""


class SourceFile:
    """One file that the user named; it is unpacked and decoded at most once, on first use."""

    def __init__(self, *, name: str, content: bytes) -> None:
        """Hold a file.

        Args:
            name: name without the folder.
            content: bytes as stored on disk.
        """
        self.name = name
        self.content = content

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the content, in hex digits."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def plain(self) -> bytes:
        """Content, unpacked if it is a gzip archive.

        Raises:
            InputFileError: the archive is damaged, or larger than `LARGEST_BYTES` when unpacked.
        """
        if not self.content.startswith(_GZIP):
            return self.content
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            plain = unpacker.decompress(self.content, LARGEST_BYTES + 1)
        except zlib.error as error:
            raise self.fail(1, f"expected a gzip archive: {error}") from None
        if len(plain) > LARGEST_BYTES:
            raise self.fail(1, f"expected at most {LARGEST_BYTES // 2**20} MiB when unpacked", "pass a smaller file")
        if not unpacker.eof:
            raise self.fail(1, "expected a complete gzip archive, found one that ends early")
        if unpacker.unused_data.strip(b"\0"):
            raise self.fail(1, "expected one gzip archive, found more data after it")
        return plain

    @cached_property
    def text(self) -> str:
        """Content as text, without a byte-order mark.

        Raises:
            InputFileError: it is not UTF-8, or not text.
        """
        if b"\0" in self.plain[:HEAD_CHARACTERS]:
            raise self.fail(1, "expected text, found a binary file")
        try:
            return self.plain.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise self.fail(1, "expected text in UTF-8") from None

    @property
    def head(self) -> str:
        """First characters, for recognising the format; empty if the file is not text."""
        try:
            return self.text[:HEAD_CHARACTERS]
        except InputFileError:
            return ""

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines that are not blank, without surrounding white space."""
        for number, line in enumerate(self.text.splitlines(), 1):
            if text := line.strip():
                yield number, text

    def document(self) -> Any:
        """Content as one JSON document.

        Raises:
            InputFileError: it is not JSON, or it is nested too deeply.
        """
        return self.parse_json(self.text, 1)

    def parse_json(self, text: str, line: int) -> Any:
        """Parse a JSON text from this file.

        Raises:
            InputFileError: it is not JSON.
        """
        try:
            return json.loads(text, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise self.fail(line + error.lineno - 1, f"expected JSON: {error.msg}") from None
        except (ValueError, RecursionError) as error:  # thousands of digits, NaN, or nested too deeply
            what = str(error) if isinstance(error, _ConstantError) else "expected JSON of ordinary size"
            raise self.fail(line, what) from None

    def fail(self, line: int | None, what: str, hint: str | None = None) -> InputFileError:
        """Return the error for a line: `file:line: what`."""
        place = self.name if line is None else f"{self.name}:{line}"
        return InputFileError(f"{place}: {what}", hint=hint or "pass the file as the tool wrote it")

    def number(self, line: int, key: str, value: object, *, above_zero: bool = False) -> float:
        """Read a finite number of at least 0 (or above 0) from a cell or a JSON value.

        Raises:
            InputFileError: it is not such a number.
        """
        amount = as_number(value)
        if amount is None or (above_zero and amount == 0):
            low = "above 0" if above_zero else "of at least 0"
            raise self.fail(line, f"{key}: expected a number {low}, found `{shortened(str(value)[:200])}`")
        return amount


class _ConstantError(ValueError):
    """NaN or an infinity, which JSON does not allow but Python's reader accepts."""


def _refuse_constant(name: str) -> float:
    raise _ConstantError(f"expected finite numbers, found `{name}`")


def read_source(path: Path) -> SourceFile:
    """Read a file that the user named, once.

    Raises:
        UsageError: it is missing or cannot be read.
        InputFileError: it is neither a file nor a pipe, or is larger than `planner.files.LARGEST_BYTES`.
    """
    return SourceFile(name=file_name(path), content=read_bytes(path))


def file_name(path: Path) -> str:
    """Last part of a path, with characters that UTF-8 cannot encode replaced, and cut if it is long."""
    name = path.name.encode("utf-8", "replace").decode()
    return shortened(name, _NAME_CHARACTERS)


def clean_name(text: str, most: int = 60) -> str:
    """Put a name from a file (of a window, a kernel) on one line, and cut it if it is long."""
    return shortened(one_line(text), most)

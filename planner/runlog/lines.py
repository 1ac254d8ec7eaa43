"""Streamed lines of a log: unpacked, decoded, and without colours and the prefixes of launchers."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO

from planner.errors import InputFileError
from planner.lazy import dataclass
from planner.runlog.moments import Moment, parse_moment

CHUNK_BYTES = 2**20
LONGEST_LINE = 65_536
"""Most characters of a line that are kept; no framework writes lines that long."""
LARGEST_DOCUMENT = 64 * 2**20
"""Most characters of a first line that is a JSON document, such as a `trainer_state.json` on one line."""
_GZIP = b"\x1f\x8b"
_LINE_END = re.compile(r"\r\n|\n|\r")
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]{0,200}\x07)")
RANK = re.compile(r"^(?:[\w.-]{1,80}/\d{1,6} )?\[(?:rank|default|Rank )(\d{1,7})\]:? ?|^ {0,6}(\d{1,7}): ")
"""Prefix with the rank: torchrun's tee (`[default0]:`), PyTorch's logger (`[rank0]:`), both possibly after NeMo-Run's
task, or `srun --label`."""
MOST_PREFIXES = 2
"""`srun --label` before torchrun's tee: the task of a node, then the rank in it."""
RANKS = 10_000_000
"""More ranks than a prefix has digits for."""
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)")
STAMP_WITHIN = 60
"""Number of characters at the beginning of a line that must contain its whole time stamp."""
STAMP_AFTER = 24
"""Most characters before a time stamp; a later one is a date within the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line, or one state of a line that was overwritten (CR)."""

    number: int
    """Number of the line in the file, from 1."""
    text: str
    """Text without colours and rank."""
    rank: int | None = None
    """Rank of the process that wrote it, or another number that only this process has; None if unknown."""
    whole: bool = True
    """Whether the line is complete; False for a last line without a line break."""


def log_texts(file: BinaryIO, name: str) -> Iterator[str]:
    """Yield the text of a log in pieces that may end within a line; the first holds the whole first line if it is JSON.

    Args:
        file: file at its beginning; a gzip archive is unpacked.
        name: name of the file, for errors.

    Raises:
        InputFileError: it is not text, or a damaged archive.
    """
    return _opening_whole(_decoded(file, name))


def lines_of(texts: Iterable[str], number: int = 1) -> Iterator[LogLine]:
    """Yield the lines of a text.

    Args:
        texts: the text in pieces, as `log_texts` yields them.
        number: number of its first line.
    """
    partial, long = "", False
    for text in texts:
        pieces, ends = _cut(partial + text)
        partial = pieces.pop()
        for piece, end in zip(pieces, ends, strict=True):
            if piece and not long:
                yield _line(number, piece)
            long = False
            number += end != "\r"
        if len(partial) > LONGEST_LINE and not _is_document(number, partial):  # keep only its beginning
            if not long:
                yield _line(number, partial)
            partial, long = "", True
    if partial and not long:
        yield replace(_line(number, partial), whole=False)


def _decoded(file: BinaryIO, name: str) -> Iterator[str]:
    decoder, number = None, 1
    for chunk in _unpacked(file, name):
        if decoder is None:
            wide = chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            decoder = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")("replace")
        if not wide and b"\0" in chunk:
            raise InputFileError(f"{name}:{number}: expected text, found a binary file", hint="pass the log as text")
        number += chunk.count(b"\n")
        yield decoder.decode(chunk)
    if decoder is not None:
        yield decoder.decode(b"", final=True)


def _is_document(number: int, text: str) -> bool:
    return number == 1 and text.startswith("{")


def _opening_whole(texts: Iterator[str]) -> Iterator[str]:
    """Yield the text in pieces; the first piece holds the whole first line if that is JSON."""
    first = next(texts, "")
    if first.startswith("{"):
        pieces, size = [first], len(first)
        while "\n" not in pieces[-1] and size <= LARGEST_DOCUMENT and (piece := next(texts, "")):
            pieces.append(piece)
            size += len(piece)
        first = "".join(pieces)
    yield first
    yield from texts


def _cut(text: str) -> tuple[list[str], list[str]]:
    """Split text into lines, the last one incomplete, and their ends; a CR at the very end stays until more is read."""
    carriage_return = "\r" if text.endswith("\r") else ""
    text = text[: len(text) - len(carriage_return)]
    ends = _LINE_END.findall(text)
    pieces = _LINE_END.split(text)
    pieces[-1] += carriage_return
    return pieces, ends


def _line(number: int, raw: str) -> LogLine:
    text = raw if _is_document(number, raw) else raw[:LONGEST_LINE]
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    rank = None
    for _ in range(MOST_PREFIXES):
        prefix = RANK.match(text)
        if prefix is None:
            break
        rank = (rank or 0) * RANKS + int(prefix[1] or prefix[2])
        text = text[prefix.end() :]
    return LogLine(number=number, text=text, rank=rank)


def _unpacked(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the content in pieces. An archive that ends early is a truncated log, and is read as far as it goes."""
    first = file.read(CHUNK_BYTES)
    if not first.startswith(_GZIP):
        while first:
            yield first
            first = file.read(CHUNK_BYTES)
        return
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    while first:
        try:
            piece = unpacker.decompress(first, CHUNK_BYTES)
        except zlib.error as error:
            raise InputFileError(
                f"{name}:1: expected a gzip archive: {error}", hint="pass the log as it was written"
            ) from None
        if piece:
            yield piece
        first = unpacker.unconsumed_tail or unpacker.unused_data
        if unpacker.eof:
            if not first.startswith(_GZIP):
                return
            unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        elif not first:
            first = file.read(CHUNK_BYTES)


def stamp_of(text: str) -> Moment | None:
    """Time stamp at the beginning of a line, whoever wrote it; None if there is none."""
    head = text[:STAMP_WITHIN]
    if "20" not in head:
        return None
    stamp = _STAMP.search(head)
    return None if stamp is None or stamp.start() > STAMP_AFTER else parse_moment(stamp[1].replace(",", "."))

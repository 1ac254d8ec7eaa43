"""A logo as a `data:` address, so that the page remains a single file."""

from __future__ import annotations

import base64
from pathlib import Path

from planner.errors import InputFileError, UsageError
from planner.files import read_bytes

MOST_BYTES = 60_000
"""Size limit in bytes; larger pictures would make the page heavier than its content."""

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def data_address(path: Path) -> str:
    """Read a picture and return its `data:` address.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: the file is not a PNG, JPEG, GIF, WebP or SVG, or is larger than `MOST_BYTES`.
    """
    try:
        content = read_bytes(path)
    except UsageError as error:
        raise UsageError(f"--logo: {error.message}", hint=error.hint) from None
    kind = _kind(content)
    if kind is None:
        raise InputFileError(f"{path}: not a PNG, JPEG, GIF, WebP or SVG image", hint="convert it to PNG or SVG")
    if len(content) > MOST_BYTES:
        raise InputFileError(
            f"{path}: {len(content):,} bytes, at most {MOST_BYTES:,} fit into the page", hint="make the image smaller"
        )
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _kind(content: bytes) -> str | None:
    for magic, kind in _MAGIC:
        if content.startswith(magic):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    head = content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return "image/svg+xml" if head.startswith((b"<svg", b"<?xml", b"<!doctype svg")) and b"<svg" in head else None

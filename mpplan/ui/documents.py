"""Saved answers as arguments of commands: a file, or `-` for stdin."""

from __future__ import annotations

import sys

from planner.answer.document import Document, parse_document, read_document
from planner.errors import UsageError
from planner.records.home import user_path


def read_answer(name: str) -> Document:
    """The document of `mpplan estimate --json` from a file or from stdin.

    Raises:
        UsageError: it cannot be read.
        InputFileError: it is not such a document.
    """
    if name != "-":
        return read_document(user_path(name))
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("stdin is not UTF-8 text", hint="pipe `mpplan estimate --json` into it") from error
    return parse_document(text, "stdin")

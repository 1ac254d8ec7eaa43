"""Read documents that commands take as arguments, and check them once: saved answers and training results."""

from __future__ import annotations

import sys
from pathlib import Path

from mpplan.ui.schema import check_schema
from planner.answer.document import (
    ESTIMATE_SCHEMA,
    LARGEST_BYTES,
    Document,
    decode_document,
    parse_document,
    read_document,
)
from planner.answer.invariants import violations
from planner.errors import InputFileError, Message
from planner.records.home import user_path

MOST_PLANS = 5_000
"""Maximum number of plans in one document: a page with more is of no use, and takes minutes to make."""


def read_answer(name: str) -> Document:
    """Read the document of `mpplan estimate --json` from a file or from stdin.

    Raises:
        UsageError: the source cannot be read.
        InputFileError: it is not such a document, violates its schema, or has impossible figures.
    """
    if name == "-":
        content = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        document = parse_document(decode_document(content, "stdin"), "stdin")
    else:
        document = read_document(user_path(name))
    _check(document, "stdin" if name == "-" else name)
    return document


def read_numerics(name: str) -> tuple[Path, Document]:
    """Read the document of `mpplan numerics --json` from a file; return its path, too.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not such a document.
    """
    from planner.safety.document import NUMERICS_SCHEMA

    path = user_path(name)
    try:
        document = read_document(path, NUMERICS_SCHEMA)
        check_schema(document, NUMERICS_SCHEMA, str(path))
    except InputFileError as error:
        error.hint = "`mpplan numerics --json` writes it; give a record with --records"
        raise
    return path, document


def _check(document: Document, name: str) -> None:
    """Check a document before anything is made from it.

    Raises:
        InputFileError: names the first key that is wrong.
    """
    for view in ("plans", "same_deadline"):
        rows = document.get(view)
        if isinstance(rows, list) and len(rows) > MOST_PLANS:
            raise InputFileError(
                f"{name}: {view}: {len(rows):,} plans, more than {MOST_PLANS:,}",
                hint=Message.of("hint.document_too_large"),
            )
    check_schema(document, ESTIMATE_SCHEMA, name)
    for violation in violations(document):
        raise InputFileError(
            f"{name}: {violation.place}: {violation.rule}", hint=Message.of("hint.write_document_again")
        )

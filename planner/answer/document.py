"""The JSON document of an answer, `mpplan.estimate/1`: written and read back. Its keys carry their units."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from planner.answer.plan import Answer
from planner.errors import InputFileError, Message, UsageError
from planner.evidence import Assumption, Gap

ESTIMATE_SCHEMA = "mpplan.estimate/1"

Document = dict[str, Any]
"""A parsed JSON document; the one bare mapping that crosses folders, because it is what a file holds."""


def plain(value: Any) -> Any:
    """A value as plain JSON: objects by their fields, a message as `{"key", "values"}`, tuples as lists."""
    if isinstance(value, Message):
        return {"key": value.key, "values": {name: plain(inner) for name, inner in value.values}}
    if isinstance(value, Gap):
        return {"key": value.key, "what": plain(value.what), "why": plain(value.why), "effect": plain(value.effect)}
    if isinstance(value, Assumption):
        return {"id": value.id, "text": plain(value.message), "input": value.input}
    if is_dataclass(value):
        return {_RENAMED.get(field.name, field.name): plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value


DIGITS = 10
"""Significant digits of a number in the document: far more than anything here is known by, and items still add up."""

_RENAMED = {"frm": "from"}
"""Fields whose name in the document is a keyword of Python."""


def to_document(answer: Answer) -> Document:
    """The document `mpplan.estimate/1` (docs/report-schema.md) as plain JSON values, its messages not yet worded."""
    model = plain(answer.model)
    model.pop("evidence")
    model["params_total"] = answer.model.params_total
    model["params_active"] = answer.model.params_active
    model["matrix_params_active"] = answer.model.matrix_params_active
    return {
        "schema": ESTIMATE_SCHEMA,
        "mpplan": answer.version,
        "created_at": answer.created_at,
        "command": list(answer.command),
        "question": plain(answer.question),
        "model": model,
        **{name: plain(getattr(answer, name)) for name in _PARTS},
    }


_PARTS = (
    "plans", "same_deadline", "deadline_days", "savings", "unsupported", "assumptions", "gaps", "warnings", "evidence",
    "money", "power_caps", "power_limit_search", "calibration", "run_totals", "confidence",
    "curve",
)  # fmt: skip
"""Parts of an answer that the document holds as they are, in its order."""


def parse_document(text: str, name: str, schema: str = ESTIMATE_SCHEMA) -> Document:
    """Parse a document and check its schema line.

    Raises:
        InputFileError: not JSON, not an object, or another schema or version.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputFileError(
            f"{name}:{error.lineno}: not JSON: {error.msg}", hint=Message.of("hint.write_document_again")
        ) from error
    given = document.get("schema") if isinstance(document, dict) else None
    if given != schema:
        raise InputFileError(
            f"{name}: schema: expected `{schema}`, found `{given}`",
            hint=Message.of("hint.pass_document"),
        )
    result: Document = document
    return result


def read_document(path: Path, schema: str = ESTIMATE_SCHEMA) -> Document:
    """Read a document from a file.

    Raises:
        UsageError: the file is missing or unreadable.
        InputFileError: see `parse_document`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read `{path}`: {error}", hint="check the path") from error
    return parse_document(text, str(path), schema)

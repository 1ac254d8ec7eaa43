"""The JSON document of an answer, `mpplan.estimate/2`: written and read back. Its keys carry their units."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from planner.answer.plan import Answer, Plan
from planner.errors import InputFileError, Message
from planner.evidence import Assumption, Estimate, Gap
from planner.files import read_text

ESTIMATE_SCHEMA = "mpplan.estimate/2"

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
        return round(value, DECIMALS) if LONG <= abs(value) < LONGEST else float(f"{value:.{DIGITS}g}")
    return value


DIGITS = 10
"""Significant digits of a number in the document: far more than anything here is known by, and items still add up."""
DECIMALS, LONG, LONGEST = 3, 1e7, 1e13
"""Decimals of a number from `LONG` to `LONGEST`, whose tenth digit is no cent: bills add up and multiply out to one."""

_RENAMED = {"frm": "from"}
"""Fields whose name in the document is a keyword of Python."""


def to_document(answer: Answer) -> Document:
    """The document `mpplan.estimate/2` (docs/report-schema.md) as plain JSON values, its messages not yet worded."""
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
        "plans": [_plan(plan) for plan in answer.plans],
        "same_deadline": [_plan(plan) for plan in answer.same_deadline],
    }


def _plan(plan: Plan) -> Document:
    """A plan whose total of the memory is its range."""
    document: Document = plain(plan)
    del document["memory_range_gib"]
    if plan.memory_gib is not None:
        total = plan.memory_range_gib or Estimate.exactly(plan.memory_gib["total"])
        document["memory_gib"]["total"] = plain(total)
    return document


_PARTS = (
    "plans", "same_deadline", "deadline_days", "savings", "unsupported", "assumptions", "gaps", "warnings", "evidence",
    "money", "power_caps", "power_limit_search", "calibration", "run_totals", "confidence", "curve",
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
            hint=Message.of(_other_version(given, schema)),
        )
    result: Document = document
    return result


def _other_version(given: object, schema: str) -> str:
    """Key of the hint: a document of another version, or another document altogether."""
    same = isinstance(given, str) and given.split("/")[0] == schema.split("/")[0]
    return "hint.document_again" if same else "hint.pass_document"


def read_document(path: Path, schema: str = ESTIMATE_SCHEMA) -> Document:
    """Read a document from a file.

    Raises:
        UsageError: the file is missing or unreadable.
        InputFileError: see `parse_document`.
    """
    return parse_document(read_text(path, str(path)), str(path), schema)

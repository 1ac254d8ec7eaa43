"""The JSON face of an answer: `mpplan.estimate/1`, written and read back. Its keys carry their units."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from planner.answer.plan import Answer, Plan
from planner.errors import InputFileError, UsageError

ESTIMATE_SCHEMA = "mpplan.estimate/1"

Document = dict[str, Any]
"""A parsed JSON document; the one place where a bare mapping crosses folders, because it is what a file holds."""


def _rename(value: Any) -> Any:
    if isinstance(value, dict):
        return {("from" if key == "frm" else key): _rename(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rename(inner) for inner in value]
    return value


def _plan(plan: Plan) -> Document:
    entry: Document = _rename(asdict(plan))
    return entry


def to_document(answer: Answer) -> Document:
    """The document of the design, section 4, as plain JSON values."""
    model = asdict(answer.model)
    model.pop("evidence")
    model["params_total"] = answer.model.params_total
    model["params_active"] = answer.model.params_active
    model["matrix_params_active"] = answer.model.matrix_params_active
    return {
        "schema": ESTIMATE_SCHEMA,
        "mpplan": answer.version,
        "created_at": answer.created_at,
        "command": list(answer.command),
        "question": {name: asdict(given) for name, given in answer.question.items()},
        "model": model,
        "plans": [_plan(plan) for plan in answer.plans],
        "same_deadline": [_plan(plan) for plan in answer.same_deadline],
        "deadline_days": answer.deadline_days,
        "savings": [_rename(asdict(saving)) for saving in answer.savings],
        "unsupported": [asdict(one) for one in answer.unsupported],
        "assumptions": [asdict(one) for one in answer.assumptions],
        "gaps": [asdict(one) for one in answer.gaps],
        "warnings": list(answer.warnings),
        "evidence": [_rename(asdict(one)) for one in answer.evidence],
        "money": None if answer.money is None else asdict(answer.money),
        "power_caps": [asdict(one) for one in answer.power_caps],
    }


def parse_document(text: str, name: str, schema: str = ESTIMATE_SCHEMA) -> Document:
    """Parse a document and check its schema line.

    Raises:
        InputFileError: not JSON, not an object, or another schema or version.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputFileError(
            f"{name}:{error.lineno}: not JSON: {error.msg}", hint="write it anew with `mpplan estimate --json`"
        ) from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise InputFileError(
            f"{name}: schema: expected `{schema}`, found `{found}`",
            hint="pass the document that `mpplan estimate --json` printed",
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

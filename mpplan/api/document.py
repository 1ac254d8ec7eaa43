"""The document of an answer: messages are worded in English, each beside its key and values."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from planner.answer.document import Document
from planner.answer.document import to_document as planner_document
from planner.answer.invariants import require_possible
from planner.answer.plan import Answer
from planner.decimals import own_decimals
from planner.errors import MpplanError
from planner.question.input import flag_of
from reports.text.clean import clean
from reports.text.messages import SIBLING, is_message, word


@contextmanager
def worded_errors() -> Iterator[None]:
    """Word errors in English inside the context, for callers of the Python API that print them; also a decorator."""
    try:
        yield
    except MpplanError as error:
        error.message = word(error.message)
        error.hint = None if error.hint is None else word(error.hint)
        error.args = (error.message,)
        raise


@worded_errors()
@own_decimals()
def to_document(answer: Answer) -> Document:
    """Return the document `mpplan.estimate/2` (docs/report-schema.md) as plain JSON values, worded in English.

    Raises:
        InternalError: the answer breaks an invariant (`planner.answer.invariants`).
    """
    plain = planner_document(answer)
    require_possible(plain)
    document: Document = worded(plain)
    for assumption in document["assumptions"]:
        replaced_by = assumption.pop("input")
        assumption["change_with"] = None if replaced_by is None else flag_of(replaced_by)
    return document


def worded(value: Any) -> Any:
    """Replace every message in a JSON value by its English text, and add the message itself beside it as `x_message`.

    A part without messages is returned as the same object, so a document of very many rows is not copied.
    """
    if isinstance(value, list):
        rows = [worded(inner) for inner in value]
        return value if all(map(operator.is_, rows, value)) else rows
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for name, inner in value.items():
        if not isinstance(inner, dict | list):  # most values are
            result[name] = inner
        elif is_message(inner):
            result |= {name: clean(word(cast("dict[str, Any]", inner))), f"{name}{SIBLING}": inner}
        elif isinstance(inner, list) and inner and all(is_message(row) for row in inner):
            result |= {name: [clean(word(row)) for row in inner], f"{name}{SIBLING}": inner}
        else:
            result[name] = worded(inner)
    return value if all(map(operator.is_, result.values(), value.values())) else result

"""What a document knows in words alone, read back here and nowhere else.

The planner had these facts as numbers and names, and the document has no field for them: an input is repeated as it was
typed, a message holds values, an id is made of names. Who needs such a fact asks for it here; once the document has a
field for one, its function reads that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.answer.document import Document
from planner.errors import UsageError
from planner.question.inputs import MEMORY_RISK
from reports.text.messages import SIBLING, is_message

SKIPPED_STEPS = "numerics:"
"""How the id of a source on skipped steps begins."""


def allowed_memory_risk(document: Document) -> float | None:
    """The highest probability of running out of memory that was allowed, from its text; None where there is none."""
    entry = document["question"].get(MEMORY_RISK.name)
    if not isinstance(entry, dict):
        return None
    try:
        return MEMORY_RISK.parse(str(entry.get("value")), MEMORY_RISK.flag)
    except UsageError:  # a document that was written by hand
        return None


def message_key(message: object) -> str:
    """The key of a message; empty where it is none."""
    return str(message["key"]) if isinstance(message, Mapping) and is_message(message) else ""


def assumptions_worded(document: Document, key: str) -> Iterator[tuple[Document, Mapping[str, Any]]]:
    """The assumptions that one message words, each with the values of that message."""
    for row in document["assumptions"]:
        message = row.get(f"text{SIBLING}")
        if message_key(message) == key:
            yield row, message["values"]


def stand_ins(document: Document) -> list[tuple[str, str]]:
    """The GPUs that are priced like another one, each with that other: ids."""
    rows = assumptions_worded(document, "assumption.price_like")
    return [(str(values["gpu"]), str(values["like"])) for _, values in rows]


def taken_for(document: Document) -> list[Document]:
    """The assumptions that say what a short name was taken for."""
    return [row for row, _ in assumptions_worded(document, "assumption.usual_name")]


def faster_but_less_simple(plan: Document) -> tuple[Document, float] | None:
    """The layout that is the fastest where a simpler one was chosen, and by which share it is faster."""
    for row in plan["lost_layouts"]:
        why = row.get(f"why{SIBLING}")
        if message_key(why) == "why.simpler":
            return row, float(why["values"]["faster_ratio"])
    return None


def scaled_from(evidence_id: str) -> str:
    """The GPU on which a transferred kernel was measured (`kernels:matmul:<GPU>:bf16:…`): its id."""
    return evidence_id.split(":")[2]


def is_of_skipped_steps(evidence_id: str) -> bool:
    """Whether a source is on the steps that the loss scale skips."""
    return evidence_id.startswith(SKIPPED_STEPS)

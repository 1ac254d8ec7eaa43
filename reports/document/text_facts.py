"""Recover facts that a document contains only as text; no other module does this.

The planner had these facts as numbers and names, but the document has no field for them: inputs are repeated as
typed, messages hold values, and ids are composed of names. Code that needs such a fact uses a function here; once the
document gets a field for the fact, the function reads that field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.answer.document import Document
from planner.errors import UsageError
from planner.question.inputs import MEMORY_RISK
from reports.text.messages import SIBLING, is_message

SKIPPED_STEPS = "numerics:"
"""Prefix of the ids of sources on skipped steps."""


def allowed_memory_risk(document: Document) -> float | None:
    """Return the highest allowed probability of running out of memory, parsed from its text; None if there is none."""
    entry = document["question"].get(MEMORY_RISK.name)
    if not isinstance(entry, dict):
        return None
    try:
        return MEMORY_RISK.parse(str(entry.get("value")), MEMORY_RISK.flag)
    except UsageError:  # the document was written by hand
        return None


def message_key(message: object) -> str:
    """Return the key of a message; empty if the object is not a message."""
    return str(message["key"]) if isinstance(message, Mapping) and is_message(message) else ""


def assumptions_worded(document: Document, key: str) -> Iterator[tuple[Document, Mapping[str, Any]]]:
    """Yield the assumptions worded by the message with this key, each with the values of its message."""
    for row in document["assumptions"]:
        message = row.get(f"text{SIBLING}")
        if message_key(message) == key:
            yield row, message["values"]


def stand_ins(document: Document) -> list[tuple[str, str]]:
    """Return the GPUs that are priced like another one, each with the id of that other GPU."""
    rows = assumptions_worded(document, "assumption.price_like")
    return [(str(values["gpu"]), str(values["like"])) for _, values in rows]


def short_name_assumptions(document: Document) -> list[Document]:
    """Return the assumptions about the resolution of short names."""
    return [row for row, _ in assumptions_worded(document, "assumption.usual_name")]


def faster_but_less_simple(plan: Document) -> tuple[Document, float] | None:
    """Return the fastest layout if a simpler one was chosen, and its relative gain in speed; else None."""
    return _faster(plan, "why.simpler")


def faster_with_other_batch(plan: Document) -> tuple[Document, float] | None:
    """Return the fastest layout if one that keeps the batch was chosen, and its relative gain in speed; else None."""
    return _faster(plan, "why.other_batch")


def _faster(plan: Document, key: str) -> tuple[Document, float] | None:
    for row in plan["lost_layouts"]:
        why = row.get(f"why{SIBLING}")
        if message_key(why) == key:
            return row, float(why["values"]["faster_ratio"])
    return None


def scaled_from(evidence_id: str) -> str:
    """Return the id of the GPU on which a transferred kernel was measured, from `kernels:matmul:<GPU>:bf16:…`."""
    return evidence_id.split(":")[2]


def is_of_skipped_steps(evidence_id: str) -> bool:
    """Return whether a source is about steps that loss scaling skips."""
    return evidence_id.startswith(SKIPPED_STEPS)

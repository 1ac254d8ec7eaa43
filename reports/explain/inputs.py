"""Leaves of a derivation that are inputs of the question, and the batch, which may differ by plan."""

from __future__ import annotations

from reports.document.facts import Doc, Facts
from reports.explain.derivation import Node


def input_node(facts: Facts, name: str, label: str, unit: str = "", value: float | None = None, power: int = 1) -> Node:
    """Return a leaf for an input of the question, with the origin of its value.

    Args:
        facts: the answer.
        name: name of the input.
        label: label of the line.
        unit: unit of the value.
        value: replaces the input's value; None: use the input's.
        power: -1 if the parent divides by it.
    """
    entry = facts.doc["question"].get(name) or {}
    given = entry.get("value")
    number = value if value is not None else float(given) if isinstance(given, int | float) else None
    notes = [text for text in (entry.get("source"), entry.get("note")) if text]
    return Node(label=label, value=number, unit=unit, power=power, note=": ".join(notes))


def batch_node(facts: Facts, plan: Doc, label: str, unit: str = "", power: int = 1) -> Node:
    """Return the sequences or images per step of a plan; plans may differ so that the batch divides over their GPUs."""
    layout = plan.get("layout") or {}
    own = float(layout.get("dp") or 0) * (layout.get("micro_batch") or 0) * (layout.get("grad_accum") or 0)
    asked = facts.given("global_batch")
    if not own or own == asked:
        return input_node(facts, "global_batch", label, unit, power=power)
    near = f", near the input of {asked:,.0f}" if isinstance(asked, int | float) else ""
    note = f"this plan's own batch{near}: it divides evenly over the GPUs"
    return Node(label=label, value=own, unit=unit, power=power, note=note)

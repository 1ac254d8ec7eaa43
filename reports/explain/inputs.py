"""Leaves of a derivation that are inputs of the question, and the batch, which is the plan's own."""

from __future__ import annotations

from reports.document.facts import Doc, Facts
from reports.explain.derivation import Node


def input_node(facts: Facts, name: str, label: str, unit: str = "", value: float | None = None, power: int = 1) -> Node:
    """A leaf that is an input of the question, with where it came from.

    Args:
        facts: the answer.
        name: of the input.
        label: what the line is called.
        unit: of the value.
        value: in place of the input's; None: the input's.
        power: -1 where it divides.
    """
    entry = facts.doc["question"].get(name) or {}
    given = entry.get("value")
    number = value if value is not None else float(given) if isinstance(given, int | float) else None
    notes = [text for text in (entry.get("source"), entry.get("note")) if text]
    return Node(label=label, value=number, unit=unit, power=power, note=": ".join(notes))


def batch_node(facts: Facts, plan: Doc, label: str, unit: str = "", power: int = 1) -> Node:
    """Sequences or images of a step of a plan: each GPU's plan may have its own, which divides over its GPUs."""
    layout = plan.get("layout") or {}
    own = float(layout.get("dp") or 0) * (layout.get("micro_batch") or 0) * (layout.get("grad_accum") or 0)
    asked = facts.given("global_batch")
    if not own or own == asked:
        return input_node(facts, "global_batch", label, unit, power=power)
    near = f": near the {asked:,.0f} of the question" if isinstance(asked, int | float) else ""
    return Node(label=label, value=own, unit=unit, power=power, note=f"the plan's own{near}, divides over its GPUs")

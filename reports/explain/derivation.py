"""The nodes of an explanation, and the arithmetic between them."""

from __future__ import annotations

from math import isclose, prod
from typing import Any

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One number and how it is computed from others."""

    label: str
    value: float | None
    unit: str = ""
    formula: str = ""
    """How the value is computed from the children, in words; empty for an input."""
    how: str = ""
    """How the children's values, each raised to its power, combine: `product`, `sum` or empty."""
    power: int = 1
    """-1 if the parent divides by this."""
    low: float | None = None
    high: float | None = None
    at_least: bool = False
    """The value is a lower bound: something is missing from it."""
    note: str = ""
    """Where an input came from, or what a remainder is."""
    evidence: tuple[str, ...] = ()
    """Ids of the sources, best first."""
    children: tuple[Node, ...] = ()


CORRECTION = "correction to the central estimate"
"""Label of the node that reconciles a stated figure with the sum or product of its parts."""


def ends_of(estimate: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an estimate's node: its middle, its ends and whether it is a lower bound."""
    ends = {"value": estimate["mid"], "low": estimate["low"], "high": estimate["high"]}
    return ends | {"at_least": bool(estimate.get("at_least"))}


def remainder(label: str, stated: float, children: list[Node], how: str) -> Node | None:
    """Return the node that reconciles the children with the stated value; None if they already agree."""
    values = [child.value for child in children]
    if any(value is None for value in values):
        return None
    computed = made_of(children, how)
    if isclose(computed, stated, rel_tol=1e-9):
        return None
    note = "the central estimate of a sum or product of draws differs from that of its parts"
    if how == "sum":
        return Node(label=label, value=stated - computed, note=note)
    return Node(label=label, value=stated / computed, note=note) if computed else None


def derived(label: str, stated: Any, unit: str, formula: str, how: str, children: list[Node], **more: Any) -> Node:
    """Return the node of a stated value, with a remainder where its children do not come out at it.

    Args:
        label: label of the line.
        stated: an estimate, or a number without a range.
        unit: unit of the value.
        formula: how the value is computed from the children, in words.
        how: how the children combine: `product`, `sum` or empty.
        children: the nodes that it is computed from.
        more: further fields of the node.
    """
    estimate = stated if isinstance(stated, dict) else {"low": None, "mid": stated, "high": None}
    left = remainder(CORRECTION, estimate["mid"], children, how) if children else None
    parts = [*children, left] if left else children
    if left:
        formula += " + remainder" if how == "sum" else " × remainder"
    return Node(label=label, **ends_of(estimate), unit=unit, formula=formula, how=how, children=tuple(parts), **more)


def made_of(children: list[Node] | tuple[Node, ...], how: str) -> float:
    """Return the sum or product of the children's values."""
    values = [(child.value or 0.0, child.power) for child in children]
    return sum(value for value, _ in values) if how == "sum" else prod(value**power for value, power in values)

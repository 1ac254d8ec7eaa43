"""A plan's carbon as nodes: of its energy by the grid or by contract, of making its GPUs, and the SCI score of both."""

from __future__ import annotations

from typing import Any

from planner.units import TONNE_KG, kg_from_tonnes
from reports.document.facts import Doc
from reports.explain.derivation import Node, derived

UNKNOWN_POWER = "no power figures are known for this GPU"
"""Why a plan has neither energy nor carbon."""


def carbon_node(plan: Doc, energy: Node, factor: object, note: str, evidence: tuple[str, ...]) -> Node:
    """Return the location-based carbon: energy times the factor of the grid.

    Args:
        plan: a plan with its figures.
        energy: its energy in MWh.
        factor: the grid factor that the answer states, in t per MWh; if it is no number, it is derived from the plan.
        note: origin of the factor.
        evidence: ids of its sources.
    """
    stated = plan["carbon_tco2e"]
    if stated is None or not energy.value:
        return Node(label="Carbon", value=None, unit="t CO₂e", note=UNKNOWN_POWER)
    grid = float(factor) if isinstance(factor, int | float) else stated["mid"] / energy.value
    children = [energy, Node(label="Grid factor", value=grid, unit="t per MWh", note=note, evidence=evidence)]
    return derived("Carbon", stated, "t CO₂e", "energy × grid factor", "product", children)


def market_node(plan: Doc, energy: Node, evidence: tuple[str, ...]) -> Node:
    """Return the market-based carbon: energy times the factor of the user's electricity contracts.

    Args:
        plan: a plan with its figures.
        energy: its energy in MWh.
        evidence: ids of the sources of the factor.
    """
    label, stated = "Carbon, market-based", plan.get("carbon_market_tco2e")
    if plan["carbon_tco2e"] is None or not energy.value:
        return Node(label=label, value=None, unit="t CO₂e", note=UNKNOWN_POWER)
    if stated is None:
        return Node(label=label, value=None, unit="t CO₂e", note="no factor of a contract was given: --market-grid")
    factor = Node(label="Factor of the contracts", value=stated / energy.value, unit="t per MWh", evidence=evidence)
    return derived(label, stated, "t CO₂e", "energy × factor of the contracts", "product", [energy, factor])


def embodied_node(plan: Doc, gpu_hours: Node, evidence: tuple[str, ...]) -> Node:
    """Return the run's share of the carbon of making its GPUs, in kg; without a value if no figure is known.

    Args:
        plan: a plan with its figures.
        gpu_hours: its GPU-hours.
        evidence: ids of the sources of the carbon of making a GPU.
    """
    label, stated, score = "Embodied carbon of the GPUs", plan.get("embodied_tco2e"), plan.get("sci_kg_per_run")
    made: Any = None
    if stated:
        made = {end: kg_from_tonnes(stated[end]) for end in ("low", "mid", "high")}
    elif score and not score["at_least"]:  # the score has it, whether or not --embodied asked for it
        made = score["mid"] - kg_from_tonnes(plan["carbon_tco2e"]["mid"])
    if made is None or not gpu_hours.value:
        why = "no figure is known for making this GPU" if score else "the answer has none; ask for it with --embodied"
        return Node(label=label, value=None, unit="kg CO₂e", note=why)
    each = Node(
        label="Carbon of making a GPU, per hour of its service life", unit="kg CO₂e", evidence=evidence,
        value=(made["mid"] if stated else made) / gpu_hours.value,
    )  # fmt: skip
    formula = "GPU-hours × carbon of making a GPU, per hour"
    return derived(label, made, "kg CO₂e", formula, "product", [gpu_hours, each])


def score_node(plan: Doc, carbon: Node, embodied: Node) -> Node:
    """Return the SCI score of a run in kg: location-based carbon plus the embodied share, as far as it is known.

    Args:
        plan: a plan with its figures.
        carbon: its location-based carbon in t.
        embodied: its embodied carbon in kg.
    """
    label, stated = "SCI score of the run", plan.get("sci_kg_per_run")
    if not stated or carbon.value is None:
        return Node(label=label, value=None, unit="kg CO₂e", note=UNKNOWN_POWER)
    scaled = [carbon, Node(label="kg per t", value=TONNE_KG)]
    parts = [derived("Carbon in kg", kg_from_tonnes(carbon.value), "kg CO₂e", "carbon × 1,000", "product", scaled)]
    known = embodied.value is not None
    return derived(
        label, stated, "kg CO₂e", "carbon + embodied carbon" if known else "carbon", "sum",
        [*parts, embodied] if known else parts, note="" if known else embodied.note,
    )  # fmt: skip

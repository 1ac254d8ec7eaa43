"""Items of a plan's energy as nodes: what stands beside the GPUs, what the building adds, and what it draws."""

from __future__ import annotations

from dataclasses import replace

from planner.units import DAY_S, HOUR_S
from reports.document.facts import Doc
from reports.explain.derivation import Node, ends_of, remainder

W_PER_MW = 1e6
BESIDE = {"host": "Power of the host, per GPU", "network": "Power of the switches, per GPU"}
"""Items that draw the same for as long as a GPU is held, and what their power is called."""
AT_THE_PEAK = tuple(f"energy_items_mwh.{name}" for name in (*BESIDE, "pue_overhead"))
"""Figures whose sources a peak rests on, besides the GPU's limit."""
BESIDE_NOTE = "at all times; stretched with the GPUs' item to the middle of the draws of their sum"


def power_node(plan: Doc, evidence: tuple[str, ...]) -> Node:
    """Mean board power of a GPU while it trains; without a value where nobody knows it."""
    stated = plan["gpu_power_w"] or {"low": None, "mid": None, "high": None}
    note = "mean while training: by what the GPU is doing, each item of the step at its own power"
    return Node(label="Power of a GPU", **ends_of(stated), unit="W", note=note, evidence=evidence)


def gpu_node(size: float, hours: Node, power: Node) -> Node:
    """The energy of the GPUs: GPU-hours times the power while they train, times the share of it over the whole run.

    Args:
        size: of the item in MWh.
        hours: GPU-hours of the run.
        power: of a GPU while it trains.
    """
    if not (hours.value and power.value):
        return Node(label="GPUs", value=size, unit="MWh")
    stops = Node(
        label="Power over the whole run ÷ power in its steps", value=size * W_PER_MW / (hours.value * power.value),
        note="GPUs that are held but do not train draw a power midway between waiting and idling",
    )  # fmt: skip
    formula = "GPU-hours × power × share of it over the run ÷ 1,000,000"
    children = (hours, power, stops, Node(label="W per MW", value=W_PER_MW, power=-1))
    return Node(label="GPUs", value=size, unit="MWh", formula=formula, how="product", children=children)


def beside_node(name: str, label: str, size: float, gpu_hours: float, evidence: tuple[str, ...]) -> Node:
    """The energy of hosts or of switches: GPU-hours times the power beside each GPU.

    Args:
        name: of the item, one of `BESIDE`.
        label: of the item, in words.
        size: of the item in MWh.
        gpu_hours: of the run; above 0.
        evidence: ids of the sources of the item.
    """
    children = (
        Node(label="GPU-hours", value=gpu_hours, unit="GPU-hours"),
        Node(label=BESIDE[name], value=size * W_PER_MW / gpu_hours, unit="W", note=BESIDE_NOTE, evidence=evidence),
        Node(label="W per MW", value=W_PER_MW, power=-1),
    )
    formula = "GPU-hours × power ÷ 1,000,000"
    return Node(label=label, value=size, unit="MWh", formula=formula, how="product", children=children)


def building_node(label: str, items: Doc, pue: object, note: str, evidence: tuple[str, ...]) -> Node:
    """What the building adds: energy of the machines times what the PUE has above 1.

    Args:
        label: of the item, in words.
        items: of the energy at the meter, in MWh.
        pue: that the plan states; anything but a number: the one that the items have.
        note: where it is from.
        evidence: ids of its sources.
    """
    size, machines = items["pue_overhead"], sum(items[name] for name in ("gpu", *BESIDE))
    above = pue - 1.0 if isinstance(pue, int | float) else size / machines
    children = [
        Node(label="GPUs, hosts and network", value=machines, unit="MWh"),
        Node(label="PUE less 1", value=above, note=note, evidence=evidence),
    ]
    formula, rest = "machines × (PUE − 1)", remainder("middle of the draws over this", size, children, "product")
    if rest is not None:  # answers of earlier versions, at the middle of the drawn PUE
        formula, children = f"{formula} × remainder", [*children, rest]
    return Node(label=label, value=size, unit="MWh", formula=formula, how="product", children=tuple(children))


def mean_power_node(plan: Doc, energy: Node, days: Node) -> Node:
    """What the building draws on average while the run lasts: its energy over its hours.

    Args:
        plan: with its figures.
        energy: its energy in MWh.
        days: its duration.
    """
    if not plan["mean_power_mw"] or not days.value:
        return Node(label="Mean power of the building", value=None, note="no power is known of this GPU")
    children = [energy, replace(days, power=-1), Node(label="Hours per day", value=DAY_S / HOUR_S, power=-1)]
    rest = remainder("middle of the draws over this", plan["mean_power_mw"]["mid"], children, "product")
    return Node(
        label="Mean power of the building", **ends_of(plan["mean_power_mw"]), unit="MW", formula="energy ÷ days ÷ 24",
        how="product", children=(*children, *([rest] if rest else ())),
    )  # fmt: skip


def peak_power_node(plan: Doc, evidence: tuple[str, ...]) -> Node:
    """What the building must be able to supply.

    Args:
        plan: with its figures.
        evidence: ids of the sources of what stands beside the GPUs.
    """
    peak_mw, gpus = plan["peak_power_mw"], float(plan["gpus"])
    if not peak_mw:
        return Node(label="Peak power of the building", value=None, note="no power is known of this GPU")
    each = Node(
        label="Power of a GPU at its limit, with its host, its switches and the building",
        value=peak_mw * W_PER_MW / gpus, unit="W", evidence=evidence,
        note="times the PUE, at the high end (95th percentile) of host, switches and PUE together",
    )  # fmt: skip
    children = (Node(label="GPUs", value=gpus), each, Node(label="W per MW", value=W_PER_MW, power=-1))
    return Node(label="Peak power of the building", value=peak_mw, unit="MW",
                formula="GPUs × power of each at the peak ÷ 1,000,000", how="product", children=children)  # fmt: skip

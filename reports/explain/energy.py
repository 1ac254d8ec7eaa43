"""A plan's energy and power as nodes: GPUs, hosts and network, the building's overhead, mean and peak power."""

from __future__ import annotations

from dataclasses import replace

from planner.units import DAY_S, HOUR_S
from reports.document.facts import Doc
from reports.explain.carbon import UNKNOWN_POWER
from reports.explain.derivation import CORRECTION, Node, ends_of, remainder

W_PER_MW = 1e6
CONSTANT_POWER = {"host": "Power of the host, per GPU", "network": "Power of the switches, per GPU"}
"""Items with constant power while a GPU is held, and the labels of their power."""
AT_THE_PEAK = tuple(f"energy_items_mwh.{name}" for name in (*CONSTANT_POWER, "pue_overhead"))
"""Figures whose sources a peak rests on, besides the GPU's limit."""
CONSTANT_POWER_NOTE = "constant; scaled, like the GPUs' item, so that the items add up to the central estimate"


def power_node(plan: Doc, evidence: tuple[str, ...]) -> Node:
    """Return the mean board power of a GPU while it trains; without a value if it is unknown."""
    stated = plan["gpu_power_w"] or {"low": None, "mid": None, "high": None}
    note = "mean while training, with each item of the step at its own power"
    return Node(label="Power of a GPU", **ends_of(stated), unit="W", note=note, evidence=evidence)


def gpu_node(size: float, hours: Node, power: Node) -> Node:
    """Return the GPUs' energy: GPU-hours times the power while training, times the run's power relative to that.

    Args:
        size: size of the item in MWh.
        hours: GPU-hours of the run.
        power: power of a GPU while it trains.
    """
    if not (hours.value and power.value):
        return Node(label="GPUs", value=size, unit="MWh")
    stops = Node(
        label="Power over the whole run ÷ power in steps", value=size * W_PER_MW / (hours.value * power.value),
        note="GPUs that are held but do not train draw a power midway between waiting and idling",
    )  # fmt: skip
    formula = "GPU-hours × power in steps × ratio of the run ÷ 1,000,000"
    children = (hours, power, stops, Node(label="W per MW", value=W_PER_MW, power=-1))
    return Node(label="GPUs", value=size, unit="MWh", formula=formula, how="product", children=children)


def constant_power_node(name: str, label: str, size: float, gpu_hours: float, evidence: tuple[str, ...]) -> Node:
    """Return the energy of hosts or of switches: GPU-hours times their power per GPU.

    Args:
        name: name of the item, one of `CONSTANT_POWER`.
        label: readable name of the item.
        size: size of the item in MWh.
        gpu_hours: GPU-hours of the run; above 0.
        evidence: ids of the sources of the item.
    """
    children = (
        Node(label="GPU-hours", value=gpu_hours, unit="GPU-hours"),
        Node(
            label=CONSTANT_POWER[name],
            value=size * W_PER_MW / gpu_hours,
            unit="W",
            note=CONSTANT_POWER_NOTE,
            evidence=evidence,
        ),
        Node(label="W per MW", value=W_PER_MW, power=-1),
    )
    formula = "GPU-hours × power ÷ 1,000,000"
    return Node(label=label, value=size, unit="MWh", formula=formula, how="product", children=children)


def building_node(label: str, items: Doc, pue: object, note: str, evidence: tuple[str, ...]) -> Node:
    """Return the building's overhead: the energy of the machines times (PUE - 1).

    Args:
        label: readable name of the item.
        items: items of the energy at the meter, in MWh.
        pue: the PUE that the plan states; if it is not a number, the PUE is derived from the items.
        note: origin of the PUE.
        evidence: ids of its sources.
    """
    size, machines = items["pue_overhead"], sum(items[name] for name in ("gpu", *CONSTANT_POWER))
    above = pue - 1.0 if isinstance(pue, int | float) else size / machines
    children = [
        Node(label="GPUs, hosts and network", value=machines, unit="MWh"),
        Node(label="PUE − 1", value=above, note=note, evidence=evidence),
    ]
    formula = "machines × (PUE − 1)"
    remainder_node = remainder(CORRECTION, size, children, "product")
    if remainder_node is not None:  # answers of earlier versions used the middle of the drawn PUE
        formula, children = f"{formula} × remainder", [*children, remainder_node]
    return Node(label=label, value=size, unit="MWh", formula=formula, how="product", children=tuple(children))


def mean_power_node(plan: Doc, energy: Node, days: Node) -> Node:
    """Return the building's mean power during the run: its energy divided by its hours.

    Args:
        plan: a plan with its figures.
        energy: its energy in MWh.
        days: its duration in days.
    """
    if not plan["mean_power_mw"] or not days.value:
        return Node(label="Mean power of the building", value=None, note=UNKNOWN_POWER)
    children = [energy, replace(days, power=-1), Node(label="Hours per day", value=DAY_S / HOUR_S, power=-1)]
    remainder_node = remainder(CORRECTION, plan["mean_power_mw"]["mid"], children, "product")
    return Node(
        label="Mean power of the building", **ends_of(plan["mean_power_mw"]), unit="MW", formula="energy ÷ days ÷ 24",
        how="product", children=(*children, *([remainder_node] if remainder_node else ())),
    )  # fmt: skip


def peak_power_node(plan: Doc, evidence: tuple[str, ...]) -> Node:
    """Return the power that the building must be able to supply.

    Args:
        plan: a plan with its figures.
        evidence: ids of the sources of the power of hosts and network.
    """
    peak_mw, gpus = plan["peak_power_mw"], float(plan["gpus"])
    if not peak_mw:
        return Node(label="Peak power of the building", value=None, note=UNKNOWN_POWER)
    each = Node(
        label="Power of a GPU at its limit, with its host, its switches and the building",
        value=peak_mw * W_PER_MW / gpus, unit="W", evidence=evidence,
        note="times the PUE, at the high end (95th percentile) of host, switches and PUE together",
    )  # fmt: skip
    children = (Node(label="GPUs", value=gpus), each, Node(label="W per MW", value=W_PER_MW, power=-1))
    return Node(label="Peak power of the building", value=peak_mw, unit="MW",
                formula="GPUs × power of each at the peak ÷ 1,000,000", how="product", children=children)  # fmt: skip

"""Items of a plan's energy as nodes: what stands beside the GPUs, and what the building adds."""

from __future__ import annotations

from reports.document.facts import Doc
from reports.explain.derivation import Node, remainder

W_PER_MW = 1e6
BESIDE = {"host": "Power of the host, per GPU", "network": "Power of the switches, per GPU"}
"""Items that draw the same for as long as a GPU is held, and what their power is called."""
BESIDE_NOTE = "at all times; stretched with the GPUs' item to the middle of the draws of their sum"


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

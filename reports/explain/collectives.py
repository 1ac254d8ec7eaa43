"""The collectives behind a step: contents, group size, time, rate, overlap and source of each."""

from __future__ import annotations

from planner.hardware.catalogue import load_gpus
from planner.units import MIB, MICRO
from reports.document.facts import Doc
from reports.explain.derivation import Node

OPERATIONS = {
    "all_reduce": "All-reduce", "all_gather": "All-gather", "reduce_scatter": "Reduce-scatter",
    "all_to_all": "All-to-all", "send": "Send",
}  # fmt: skip
"""Readable names of the operations."""

CONTENTS = {
    "activations": "activations", "inputs_again": "inputs, gathered again for the weight gradients",
    "input_gradients": "gradients of the inputs",
    "keys_and_values": "keys and values", "key_and_value_gradients": "the gradients of keys and values",
    "scan_inputs": "inputs and outputs of the scan of linear attention",
    "tokens": "routed tokens", "stage_outputs": "activations and their gradients between stages",
    "parameters": "parameters", "expert_parameters": "parameters of experts", "gradients": "gradients",
    "expert_gradients": "gradients of experts", "gradient_shards": "gradient shards among copies of the states",
}  # fmt: skip
"""Readable names of the contents of messages."""

OTHER_TIME = {
    "dp_comm": "Slowdown of overlapped compute, buffer copies, and encoding where gradients are compressed",
    "pp_comm": "Sends that block and stall",
}
"""Readable names of the time in an item that is not a collective's."""
ROUNDING_RATIO = 1e-9
"""Share of an item below which a remainder is rounding."""


def collective_nodes(plan: Doc, item: str) -> tuple[Node, ...]:
    """Split the seconds of an item of a step by kind of message; the parts add up to it. Empty without collectives.

    Args:
        plan: a plan of the document.
        item: an item of `step_s`, for example `tp_comm`.
    """
    rows = [row for row in plan.get("collectives", ()) if row["item"] == item]
    item_s, other_ratio = plan["step_s"][item], 1.0 - sum(row["share_ratio"] for row in rows)
    nodes = tuple(_collective_node(plan, row, item_s) for row in rows)
    if not rows or item_s == 0 or other_ratio < ROUNDING_RATIO:
        return nodes
    return (*nodes, Node(label=OTHER_TIME[item], value=item_s * other_ratio, unit="s"))


def _collective_node(plan: Doc, row: Doc, item_s: float) -> Node:
    what = f"{OPERATIONS[row['operation']]} of {CONTENTS[row['carries']]}, {row['message_bytes'] / MIB:,.4g} MiB"
    return Node(
        label=f"{what} {_among(plan, row)}",
        value=item_s * row["share_ratio"],
        unit="s",
        note=f"{row['per_step']:,.0f} per step, {row['message_s'] / MICRO:,.0f} µs each, "
        f"bus bandwidth {row['bus_gb_per_s']:,.3g} GB/s; {_exposed(row['exposed_ratio'])}",
        evidence=(row["evidence"],),
    )


def _among(plan: Doc, row: Doc) -> str:
    if not _has_nvlink(plan):
        to = "to the next stage" if row["operation"] == "send" else f"among {row['gpus']:,} GPUs"
        return f"{to} over PCIe" if _in_a_node(plan, row) else f"{to} without NVLink"
    if row["operation"] == "send":
        return "to the next stage" + (
            ", inside an NVLink domain" if row["domains"] == 1 else " in another NVLink domain"
        )
    if row["domains"] == 1:
        return f"among {row['gpus']:,} GPUs of an NVLink domain"
    return f"among {row['gpus']:,} GPUs of {row['domains']:,} NVLink domains"


def _has_nvlink(plan: Doc) -> bool:
    """Return whether the GPUs of a plan are linked by NVLink; a GPU outside the catalogue counts as linked."""
    gpu = load_gpus().get(plan.get("gpu", ""))
    return gpu is None or gpu.nvlink_domain_gpus > 1


def _in_a_node(plan: Doc, row: Doc) -> bool:
    """Return whether a group certainly lies within one node: tensor parallelism is the innermost dimension."""
    return bool(plan["nodes"] == 1 or (row["item"] == "tp_comm" and row["gpus"] * plan["nodes"] <= plan["gpus"]))


def _exposed(exposed_ratio: float) -> str:
    if exposed_ratio == 0:
        return "all hidden behind compute"
    return "none of it hidden" if exposed_ratio >= 1 else f"{exposed_ratio:.0%} not hidden behind compute"

"""The kernels behind a step: shape, rate and source of each, and why narrow types gain here or do not."""

from __future__ import annotations

from collections.abc import Callable

from planner.units import MICRO
from reports.document.facts import Doc
from reports.document.told import scaled_from
from reports.explain.derivation import Node
from reports.text.names import pretty_gpu

PLACES = {"layer": "Product of a layer", "moe_layer": "Product of a layer with experts", "head": "Output layer"}
"""Where a product stands, for readers."""

EvidenceOf = Callable[[str], Doc | None]
"""A source by its id."""


def product_nodes(plan: Doc, evidence_of: EvidenceOf) -> tuple[Node, ...]:
    """Seconds of a step by product, each with its shape, rate and source; they add up to all products.

    Args:
        plan: of the document.
        evidence_of: its sources.
    """
    matmul_s = plan["step_s"]["matmul"]
    return tuple(_product_node(product, matmul_s, evidence_of) for product in plan.get("products", ()))


def _measured(evidence_id: str, evidence_of: EvidenceOf) -> str:
    """Where a kernel of this shape was measured."""
    source = evidence_of(evidence_id)
    if source is None or source["kind"] != "transferred":
        return "measured by shape"
    return f"measured by shape on {pretty_gpu(scaled_from(evidence_id))} and scaled to this GPU"


def _product_node(product: Doc, matmul_s: float, evidence_of: EvidenceOf) -> Node:
    times = f"{product['count']:,.4g} times " if product["count"] != 1 else ""
    shape = f"{times}{product['m']:,.0f} × {product['n']:,.0f} × {product['k']:,.0f}"
    source = "not measured here: arithmetic and traffic at typical rates"
    if product["evidence"]:
        source = _measured(product["evidence"], evidence_of)
    return Node(
        label=f"{PLACES[product['where']]}, {shape} in {product['compute'].upper()}",
        value=matmul_s * product["share_ratio"],
        unit="s",
        note=f"{product['tflops']:,.0f} TFLOP/s, {product['step_s'] / MICRO:,.0f} µs each; {source}",
        evidence=(product["evidence"],) if product["evidence"] else (),
    )


def attention_node(plan: Doc, label: str, evidence: tuple[str, ...], evidence_of: EvidenceOf) -> Node:
    """Seconds of a step in attention, with its kernel's shape, rate and source.

    Args:
        plan: of the document.
        label: name of the item.
        evidence: ids of its sources.
        evidence_of: a source by its id.
    """
    kernel, size = plan.get("attention_kernel"), plan["step_s"]["attention"]
    if kernel is None:
        return Node(label=label, value=size, unit="s", evidence=evidence)
    chunks = f" in {kernel['chunks']:,.0f} chunks" if kernel["chunks"] > 1 else ""
    shape = f"{kernel['heads']:,.0f} heads of {kernel['head_dim']:g} over {kernel['length']:,.0f} tokens{chunks}"
    source = "not measured here: a share of the peak"
    if kernel["evidence"]:
        source = _measured(kernel["evidence"], evidence_of)
    first = (kernel["evidence"],) if kernel["evidence"] else ()
    return Node(
        label=f"{label}, {shape} in {kernel['compute'].upper()}",
        value=size,
        unit="s",
        note=f"{kernel['tflops']:,.0f} TFLOP/s, {kernel['step_s'] / MICRO:,.0f} µs each; {source}",
        evidence=(*first, *(name for name in evidence if name not in first)),
    )


def narrow_words(plan: Doc) -> str:
    """How much the narrow type gains at this plan's products and from which sizes on; empty without such a type."""
    gain = plan.get("narrow_gain")
    if gain is None:
        return ""
    name = plan["precision"].upper()
    here = f"your longest product is {gain['n']:,.0f} × {gain['k']:,.0f} at {gain['m']:,.0f} tokens"
    verb = "gains" if gain["gain_ratio"] >= 1 else "loses:"
    parts = [f"{here}: {name} {verb} {gain['gain_ratio']:.2f}x over BF16, casts included"]
    parts.append(_from("hidden", gain["pays_from_hidden"], "pays"))
    parts.append(_from("hidden", gain["strong_from_hidden"], "gains 1.4x"))
    parts.append(_from("tokens", gain["pays_from_tokens"], "pays with these weights"))
    return "; ".join(parts)


def _from(what: str, size: float | None, does: str) -> str:
    if size is None:
        return f"at no {'hidden size' if what == 'hidden' else 'number of tokens'} that was measured it {does}"
    return f"from hidden {size:,.0f} on it {does}" if what == "hidden" else f"from {size:,.0f} tokens on it {does}"

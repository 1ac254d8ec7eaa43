"""The kernels behind a step: shape, rate and source of each, and why narrow types gain here or do not."""

from __future__ import annotations

from planner.units import MICRO
from reports.document.facts import Doc
from reports.explain.derivation import Node

PLACES = {"layer": "Product of a layer", "moe_layer": "Product of a layer with experts", "head": "Output layer"}
"""Where a product stands, for readers."""

MEASURED = "measured by shape"


def product_nodes(plan: Doc) -> tuple[Node, ...]:
    """Seconds of a step by product, each with its shape, rate and source; they add up to all products."""
    return tuple(_product_node(product, plan["step_s"]["matmul"]) for product in plan.get("products", ()))


def _product_node(product: Doc, matmul_s: float) -> Node:
    times = f"{product['count']:,.4g} times " if product["count"] != 1 else ""
    shape = f"{times}{product['m']:,.0f} × {product['n']:,.0f} × {product['k']:,.0f}"
    source = MEASURED if product["evidence"] else "not measured here: arithmetic and traffic at typical rates"
    return Node(
        label=f"{PLACES[product['where']]}, {shape} in {product['compute'].upper()}",
        value=matmul_s * product["share_ratio"],
        unit="s",
        note=f"{product['tflops']:,.0f} TFLOP/s, {product['step_s'] / MICRO:,.0f} us each; {source}",
        evidence=(product["evidence"],) if product["evidence"] else (),
    )


def attention_node(plan: Doc, label: str, evidence: tuple[str, ...]) -> Node:
    """Seconds of a step in attention, with its kernel's shape, rate and source.

    Args:
        plan: of the document.
        label: name of the item.
        evidence: ids of its sources.
    """
    kernel, size = plan.get("attention_kernel"), plan["step_s"]["attention"]
    if kernel is None:
        return Node(label=label, value=size, unit="s", evidence=evidence)
    chunks = f" in {kernel['chunks']:,.0f} chunks" if kernel["chunks"] > 1 else ""
    shape = f"{kernel['heads']:,.0f} heads of {kernel['head_dim']:g} over {kernel['length']:,.0f} tokens{chunks}"
    source = MEASURED if kernel["evidence"] else "not measured here: a share of the peak"
    first = (kernel["evidence"],) if kernel["evidence"] else ()
    return Node(
        label=f"{label}, {shape} in {kernel['compute'].upper()}",
        value=size,
        unit="s",
        note=f"{kernel['tflops']:,.0f} TFLOP/s, {kernel['step_s'] / MICRO:,.0f} us each; {source}",
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

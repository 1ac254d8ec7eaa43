"""The kernels behind a step: shape, rate and source of each, and the reason why a narrow type does or does not help."""

from __future__ import annotations

from collections.abc import Callable
from math import isclose

from planner.units import MICRO, TERA
from reports.document.facts import Doc
from reports.document.text_facts import scaled_from
from reports.explain.derivation import Node
from reports.text.names import pretty_gpu

PLACES = {"layer": "Product of a layer", "moe_layer": "Product of a layer with experts", "head": "Output layer"}
"""Readable names of the location of a matrix product."""

BOTH_WAYS = 3.0
"""Number of products per forward and backward pass: the result, the gradient of the inputs and that of the weights."""

EvidenceOf = Callable[[str], Doc | None]
"""Returns the source with a given id."""


def product_nodes(plan: Doc, evidence_of: EvidenceOf) -> tuple[Node, ...]:
    """Split the seconds of a step by matrix product, with shape, rate and source; the parts add up to all products.

    Args:
        plan: a plan of the document.
        evidence_of: returns a source by its id.
    """
    matmul_s = plan["step_s"]["matmul"]
    return tuple(_product_node(product, matmul_s, evidence_of) for product in plan.get("products", ()))


def _measured(evidence_id: str, evidence_of: EvidenceOf) -> str:
    """Describe where a kernel of this shape was measured."""
    source = evidence_of(evidence_id)
    if source is None or source["kind"] != "transferred":
        return "measured by shape"
    return f"measured by shape on {pretty_gpu(scaled_from(evidence_id))} and scaled to this GPU"


def _rate(kernel: Doc, layers_ratio: float = 1.0) -> str:
    """Describe a kernel's rate, FLOP and time per micro-batch with the backward pass; FLOP = rate × time.

    Args:
        kernel: a kernel of the plan, in its mean layer.
        layers_ratio: share of the layers of its kind that have the kernel.
    """
    each_s = kernel["step_s"] / layers_ratio
    return f"{kernel['tflops']:,.0f} TFLOP/s: {kernel['tflops'] * each_s:,.4g} TFLOP in {each_s / MICRO:,.0f} µs each"


def _passes(product: Doc) -> str:
    """Describe how many products a product's FLOP with its backward pass correspond to."""
    forward = 2.0 * product["m"] * product["n"] * product["k"] * product["count"]
    passes = product["tflops"] * TERA * product["step_s"] / forward
    if isclose(passes, BOTH_WAYS, rel_tol=0.005):
        return "forward and both backward products"
    return f"{passes:.3g} times those of the forward product"


def _product_node(product: Doc, matmul_s: float, evidence_of: EvidenceOf) -> Node:
    layers_ratio = min(product["count"], 1.0)  # below 1 for a hybrid, where only some layers have the product
    place = PLACES[product["where"]] + (f" ({layers_ratio:.0%} of the layers)" if layers_ratio < 1.0 else "")
    times = f"{product['count']:,.4g} times " if product["count"] > 1 else ""
    shape = f"{times}{product['m']:,.0f} × {product['n']:,.0f} × {product['k']:,.0f}"
    source = "not measured here: arithmetic and traffic at typical rates"
    if product["evidence"]:
        source = _measured(product["evidence"], evidence_of)
    return Node(
        label=f"{place}, {shape} in {product['compute'].upper()}",
        value=matmul_s * product["share_ratio"],
        unit="s",
        note=f"{_rate(product, layers_ratio)}, {_passes(product)}; {source}",
        evidence=(product["evidence"],) if product["evidence"] else (),
    )


def attention_node(plan: Doc, label: str, evidence: tuple[str, ...], evidence_of: EvidenceOf) -> Node:
    """Return the seconds of a step in attention, with the shape, rate and source of the kernel.

    Args:
        plan: a plan of the document.
        label: name of the item.
        evidence: ids of its sources.
        evidence_of: returns a source by its id.
    """
    kernel, size = plan.get("attention_kernel"), plan["step_s"]["attention"]
    if kernel is None:
        return Node(label=label, value=size, unit="s", evidence=evidence)
    chunks = f" in {kernel['chunks']:,.0f} chunks" if kernel["chunks"] > 1 else ""
    heads = f"{kernel['heads']:,.0f} heads of size {kernel['head_dim']:g} per micro-batch"
    shape = f"{heads}, over {kernel['length']:,.0f} tokens{chunks}"
    source = "not measured here: a share of the peak"
    if kernel["evidence"]:
        source = _measured(kernel["evidence"], evidence_of)
    first = (kernel["evidence"],) if kernel["evidence"] else ()
    return Node(
        label=f"{label}, {shape} in {kernel['compute'].upper()}",
        value=size,
        unit="s",
        note=f"{_rate(kernel)}, forward and backward; the backward pass recomputes the scores; {source}",
        evidence=(*first, *(name for name in evidence if name not in first)),
    )


def narrow_words(plan: Doc) -> str:
    """Describe the narrow type's gain for this plan's products and its size threshold; empty without one."""
    gain = plan.get("narrow_gain")
    if gain is None:
        return ""
    name = plan["precision"].upper()
    shape = f"your largest product is {gain['n']:,.0f} × {gain['k']:,.0f} at {gain['m']:,.0f} tokens"
    ratio = f"{gain['gain_ratio']:.2f}×"
    gain_text = f"{name} runs {ratio} as fast as BF16"
    if gain.get("hidden") is None:  # an answer whose thresholds are of square products, not of this one
        return f"{shape}: {gain_text}, casts included"
    pays, strong = gain["pays_from_hidden"], gain["strong_from_hidden"]
    sizes = f"a product of these proportions {_from_hidden('pays off', pays)}"
    if pays is not None:
        sizes += f" and {_from_hidden('runs 1.4× as fast', strong)}"
    tokens = gain["pays_from_tokens"]
    many = "at no larger number of tokens that was measured" if tokens is None else f"from {tokens:,.0f} tokens upwards"
    return f"{shape}: {gain_text}, casts included; {sizes}; for weights of this size, {name} pays off {many}"


def _from_hidden(does: str, size: float | None) -> str:
    if size is None:
        return f"{does} at no larger hidden size that was measured"
    return f"{does} from hidden size {size:,.0f} upwards"

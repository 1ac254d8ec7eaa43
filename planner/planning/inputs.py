"""The inputs of a question as an answer shows them: completed by what the planner and the pricing room found."""

from __future__ import annotations

from collections.abc import Mapping

from planner.answer.plan import Plan
from planner.costs.prices import GpuPrice, SiteFacts
from planner.evidence import EvidenceKind
from planner.question.asked import InputValue
from planner.question.question import Question

_FACTS = (("pue", ""), ("grid", "kgCO2e per kWh"), ("electricity", "USD per kWh"))


def shown_inputs(
    question: Question, plans: tuple[Plan, ...], prices: Mapping[str, GpuPrice], site: SiteFacts, *, billed: bool
) -> dict[str, InputValue]:
    """Every input with its value and where it came from.

    Args:
        question: what was asked.
        plans: on the same GPUs, for their number.
        prices: by GPU id.
        site: PUE, electricity and grid of the place.
        billed: whether electricity is in a bill; its price is shown only then.
    """
    inputs = dict(question.inputs)
    if "gpus" not in inputs:
        counts = {p.gpu: p.gpus for p in plans}
        value: object = next(iter(counts.values())) if len(counts) == 1 else counts
        targets = "deadline" in inputs or "budget" in inputs
        note = "fewest whole nodes that meet the target" if targets else "the fastest that the power cap allows"
        inputs["gpus"] = InputValue(value=value, source="derived", note=note)
    for gpu, price in prices.items():
        name = "price" if len(prices) == 1 else f"price {gpu}"
        if name not in inputs:
            mid = None if price.usd_per_gpu_h is None else price.usd_per_gpu_h.mid
            inputs[name] = InputValue(value=mid, source=_price_source(price), note=f"USD per GPU-hour: {price.basis}")
    said = {price.commitment for price in prices.values()}
    if len(said) == 1 and inputs["commitment"].source == "default":
        (commitment,) = said
        if commitment != inputs["commitment"].value:
            inputs["commitment"] = InputValue(value=commitment, source="file")
    for name, unit in _FACTS:
        fact = _fact(site, name, unit)
        if name not in inputs and fact is not None and (billed or name != "electricity"):
            inputs[name] = fact
    return inputs


def _price_source(price: GpuPrice) -> str:
    """An offer is as its file says; own machines are worked out; the rest is the book's."""
    if price.commitment == "owned":
        return "derived"
    return "file" if any(one.kind is EvidenceKind.GIVEN for one in price.evidence) else "default"


def _fact(site: SiteFacts, name: str, unit: str) -> InputValue | None:
    figures = {
        "pue": site.pue,
        "grid": site.grid_kg_co2e_per_kwh,
        "electricity": site.electricity_usd_per_kwh,
    }
    figure = figures[name]
    if figure is None:
        return None
    row = next((one for one in site.evidence if one.id.startswith(f"{name}:") and one.id != "grid:market"), None)
    notes = [text for text in (unit, row.what if row is not None else "") if text]
    known = row is not None and row.kind is not EvidenceKind.ASSUMED
    return InputValue(value=figure.mid, source="catalogue" if known else "default", note=": ".join(notes) or None)

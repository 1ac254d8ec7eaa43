"""The inputs of a question as an answer shows them: given values, defaults, prices and facts of the site."""

from __future__ import annotations

from collections.abc import Mapping

from planner.answer.plan import Plan
from planner.costs.prices import GpuPrice, SiteFacts
from planner.errors import Message
from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.question.asked import InputValue
from planner.question.question import Question


def shown_inputs(
    question: Question,
    plans: tuple[Plan, ...],
    prices: Mapping[str, GpuPrice],
    site: SiteFacts,
    *,
    billed: bool,
    why_so_many: str,
) -> dict[str, InputValue]:
    """Return every input with its value and its source.

    Args:
        question: the question.
        plans: the plans on the same GPUs, for the number of GPUs and the batch.
        prices: by GPU id.
        site: PUE, electricity and grid of the site.
        billed: whether electricity is in a bill; its price is shown only then.
        why_so_many: key of the note that says what decided the number of GPUs, where the user did not.
    """
    inputs = dict(question.inputs)
    if "gpus" not in inputs:
        counts = {p.gpu: p.gpus for p in plans}
        value: object = next(iter(counts.values())) if len(counts) == 1 else counts
        inputs["gpus"] = InputValue(value=value, source="derived", note=Message.of(why_so_many))
    _note_batch(inputs, question, plans)
    for gpu, price in prices.items():
        name = "price" if len(prices) == 1 else f"price {gpu}"
        if name not in inputs:
            mid = None if price.usd_per_gpu_h is None else price.usd_per_gpu_h.mid
            note = Message.of("note.price", basis=price.basis)
            inputs[name] = InputValue(value=mid, source=_price_source(price), note=note)
    commitments = {price.commitment for price in prices.values()}
    if len(commitments) == 1 and inputs["commitment"].source == "default":
        (commitment,) = commitments
        if commitment != inputs["commitment"].value:
            inputs["commitment"] = InputValue(value=commitment, source="file")
    power, power_row = (site.electricity_usd_per_kwh, site.electricity_evidence) if billed else (None, None)
    facts = (
        ("pue", site.pue, site.pue_evidence, "note.pue"),
        ("grid", site.grid_kg_co2e_per_kwh, site.grid_evidence, "note.grid"),
        ("electricity", power, power_row, "note.electricity"),
    )
    for name, figure, row, key in facts:
        if name not in inputs and figure is not None and row is not None:
            inputs[name] = _fact(figure, row, key)
    return inputs


def _note_batch(inputs: dict[str, InputValue], question: Question, plans: tuple[Plan, ...]) -> None:
    """Show the batch of the requested precision's plans where it is not the default and they all share it."""
    own = list(batches_of(question, plans).values())
    plan = next((plan for _, plan in own if plan.precision == question.policy.precision), None)
    batches = {batch for batch, _ in own}
    if plan is None or len(batches) > 1 or batches == {question.global_batch}:
        return
    (batch,) = batches
    inputs["global_batch"] = InputValue(value=batch, source="derived", note=_why_batch(question, batch, plan.gpus))


def _why_batch(question: Question, batch: int, gpus: int) -> Message:
    """Explain a batch: the default it replaces, the range that was allowed, and why this one was chosen."""
    least, most = question.batch_band or (batch, batch)
    around = {"default": question.global_batch, "least": least, "most": most, "gpus": gpus}
    if question.model.kind == "image":
        return Message.of("note.images_in_band", **around)
    key = "note.batch_in_band"
    if question.keeps_batch:
        key = "note.usual_batch_left" if question.fine_tunes else "note.published_batch_left"
    elif question.fine_tunes:
        key = "note.tuning_batch_in_band"
    return Message.of(key, tokens=batch * question.seq_len, **around)


def batches_of(question: Question, plans: tuple[Plan, ...]) -> dict[str, tuple[int, Plan]]:
    """Return the batch and the plan of the requested precision by GPU, or of another precision where that has none.

    The batch is in sequences or images per step.

    Args:
        question: the question.
        plans: the plans on the same GPUs.
    """
    own: dict[str, tuple[int, Plan]] = {}
    for plan in sorted(plans, key=lambda plan: plan.precision != question.policy.precision):
        if plan.layout is not None:
            own.setdefault(plan.gpu, (plan.layout.global_batch, plan))
    return {plan.gpu: own[plan.gpu] for plan in plans if plan.gpu in own}


def _price_source(price: GpuPrice) -> str:
    """Return the source of a price: a file for an offer, derived for own machines, else the price book's default."""
    if price.commitment == "owned":
        return "derived"
    return "file" if any(row.kind is EvidenceKind.GIVEN for row in price.evidence) else "default"


def _fact(figure: Estimate, row: Evidence, key: str) -> InputValue:
    source = "default" if row.kind is EvidenceKind.ASSUMED else "catalogue"
    return InputValue(value=figure.mid, source=source, note=Message.of(key, what=row.what))

"""Costs that a price leaves out of a run: interruptions, the unused rest of a reserved term or of a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from planner.answer.plan import Plan
from planner.costs.prices import NO_LEDGER, GpuPrice, Ledger
from planner.errors import Message
from planner.units import DAY_S, HOUR_S, YEAR_H

TERM_H = {"1y": YEAR_H, "3y": 3 * YEAR_H}
"""Hours of a reserved term."""


def bills_the_rest(price: GpuPrice, ledger: Ledger) -> bool:
    """Return whether an offer bills a minimum term, so that the unused rest of a commitment is already in the bill."""
    return price.commitment in TERM_H and ledger.quote is not None and ledger.quote.minimum_term_h > 0


def commitment_warnings(
    prices: Sequence[GpuPrice], ledgers: Mapping[str, Ledger], plans: Sequence[Plan]
) -> Iterator[Message]:
    """Warn of costs that prices by commitment leave out, naming the GPU where commitments differ.

    Args:
        prices: the price of every GPU of the question.
        ledgers: by GPU id; an offer in a ledger may bill the rest of a term.
        plans: plans of the requested precision; they say for how many GPUs a term would be paid.
    """
    bound = [price for price in prices if not bills_the_rest(price, ledgers.get(price.gpu, NO_LEDGER))]
    shared = len({price.commitment for price in prices}) == 1
    for price in bound:
        condition = _condition(bound if shared else [price], price.commitment, ledgers, plans)
        if condition is not None:
            yield condition if shared else Message.of("warning.of_gpu", gpu=price.gpu, what=condition)


def _condition(
    prices: Sequence[GpuPrice], commitment: str, ledgers: Mapping[str, Ledger], plans: Sequence[Plan]
) -> Message | None:
    if commitment == "spot":
        return Message.of("warning.spot")
    if commitment == "1y":
        return Message.of("warning.commitment_1y", whole=_whole(prices, ledgers, plans))
    if commitment == "3y":
        return Message.of("warning.commitment_3y", whole=_whole(prices, ledgers, plans))
    return None


def _whole(prices: Sequence[GpuPrice], ledgers: Mapping[str, Ledger], plans: Sequence[Plan]) -> Message | str:
    """State the cost of the whole term for the GPUs of each plan; empty where no plan fits or no price is known."""
    by_gpu = {price.gpu: price for price in prices if price.usd_per_gpu_h}
    costs = tuple(
        _cost(by_gpu[plan.gpu], ledgers.get(plan.gpu, NO_LEDGER), plan)
        for plan in plans
        if plan.fits and plan.gpu in by_gpu
    )
    return Message.of("warning.commitment_whole", costs=costs) if costs else ""


def _cost(price: GpuPrice, ledger: Ledger, plan: Plan) -> Message:
    """State the cost of as many whole terms as the run lasts, for its GPUs or, if they are more, an offer's minimum."""
    assert price.usd_per_gpu_h is not None and plan.duration_days is not None  # noqa: PT018
    term_h, run_h = TERM_H[price.commitment], plan.duration_days.mid * DAY_S / HOUR_S
    gpus = plan.gpus if ledger.quote is None else max(plan.gpus, ledger.quote.minimum_gpus)
    terms = max(ceil(run_h / term_h), 1)
    usd = gpus * price.usd_per_gpu_h.mid * terms * term_h
    if terms > 1:
        return Message.of("warning.commitment_cost_of_terms", usd=usd, gpus=gpus, gpu=plan.gpu, terms=terms)
    return Message.of("warning.commitment_cost", usd=usd, gpus=gpus, gpu=plan.gpu)


def machine_warnings(prices: Sequence[GpuPrice], plans: Sequence[Plan]) -> Iterator[Message]:
    """Warn of machines that a plan fills only in part, where the price is for whole ones, with the cost of the rest.

    Args:
        prices: the price of every GPU of the question.
        plans: plans of the requested precision.
    """
    by_gpu = {price.gpu: price for price in prices}
    for plan in plans:
        price = by_gpu.get(plan.gpu)
        if not plan.fits or price is None or price.usd_per_gpu_h is None:
            continue
        idle = -plan.gpus % price.machine_gpus
        if idle and plan.gpu_hours is not None:
            usd = plan.gpu_hours.mid / plan.gpus * idle * price.usd_per_gpu_h.mid
            machine = price.machine_gpus
            yield Message.of("warning.part_of_machine", gpu=plan.gpu, gpus=plan.gpus, machine=machine, usd=usd)

"""What stands beside the plans of an answer: prices used, own machines beside renting, other places and hours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING

from planner.answer.plan import Answer, Plan
from planner.costs.context import MoneyFacts, OwnedBeside, PlaceBeside, PriceUsed, QuoteUsed, StartHours
from planner.costs.facility_power import LimitBeside
from planner.costs.quantity import Energy
from planner.question.question import MoneyInputs, Question
from planner.units import DAY_S, HOUR_S, TONNE_KG
from pricing.answer.elsewhere import Elsewhere, elsewhere
from pricing.answer.priced import LIVE, Priced
from pricing.book.rows import load_book
from pricing.files.exchange_rates import load_rates
from pricing.gpu_price.ask import parse_commitment
from pricing.place.electricity import DEFAULT_ZONE
from pricing.place.places import zone_named

if TYPE_CHECKING:
    from planner.records.measurement import Measurement

NAMED = 5
"""Cheaper places that are named per GPU, and as many cleaner ones."""


def money_facts(
    answer: Answer, question: Question, priced: Priced, points: Iterable[Measurement] = ()
) -> MoneyFacts:
    """Everything that the price books and the user's files say beside the plans.

    Args:
        answer: the plans.
        question: what was asked.
        priced: what they were priced with.
        points: measured points of the records that the user named, for what power limits do.
    """
    asked = [plan for plan in answer.plans if plan.precision == question.asked.precision and plan.fits]
    plans = [plan for plan in asked if plan.energy_mwh is not None]  # unknown on a machine whose watts nobody reads
    money, here = question.money, place_here(question.money)
    return MoneyFacts(
        prices=tuple(_price_used(gpu, priced) for gpu in priced.prices),
        quotes=tuple(_quotes(priced)),
        owned=tuple(_owned(priced)),
        here=here,
        elsewhere=tuple(place for plan in plans for place in _elsewhere(plan, priced, money, here)),
        start_hours=tuple(hours for plan in plans for hours in _start_hours(plan, priced)),
        power_limits=_power_limits(plans, question, priced, tuple(points)),
    )


def place_here(money: MoneyInputs) -> str | None:
    """The zone whose grid factor the plans have; None where they have a number without a scope."""
    grid = money.grid
    if grid is not None:
        row = None if grid.lower().startswith(LIVE) or _is_number(grid) else zone_named(grid)
    elif money.region is not None:
        row = zone_named(money.region, money.provider.strip().lower() if money.provider else None)
    else:
        return DEFAULT_ZONE
    return None if row is None else row.zone


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _price_used(gpu: str, priced: Priced) -> PriceUsed:
    owned = priced.ledgers[gpu].owned
    price = priced.prices[gpu] if owned is None else owned.without_energy
    return PriceUsed(
        gpu=gpu,
        usd_per_gpu_h=price.usd_per_gpu_h,
        basis=price.basis,
        commitment=price.commitment,
        provider=price.provider,
        region=price.region,
        stale=price.stale,
        evidence_ids=tuple(one.id for one in price.evidence),
    )


def _quotes(priced: Priced) -> Iterator[QuoteUsed]:
    for gpu, ledger in priced.ledgers.items():
        if ledger.quote is not None:
            yield QuoteUsed(
                gpu=gpu,
                vendor=ledger.quote.vendor,
                minimum_term_days=ledger.quote.minimum_term_h * HOUR_S / DAY_S,
                minimum_gpus=ledger.quote.minimum_gpus,
                setup_fee_usd=ledger.quote.setup_fee_usd,
                expired=ledger.quote.price.stale,
            )


def _owned(priced: Priced) -> Iterator[OwnedBeside]:
    for gpu, ledger in priced.ledgers.items():
        one = ledger.owned
        if one is not None and one.price.usd_per_gpu_h is not None:
            yield OwnedBeside(
                gpu=gpu,
                usd_per_gpu_h=one.price.usd_per_gpu_h,
                items_usd_per_gpu_h=one.items_usd_per_gpu_h,
                utilisation_ratio=one.utilisation_ratio,
                rental_usd_per_gpu_h=one.rental_usd_per_gpu_h,
                rental_basis=one.rental_basis,
                rental_evidence_ids=tuple(row.id for row in one.rental_evidence),
                break_even_utilisation_ratio=one.break_even_utilisation_ratio,
            )


def _elsewhere(plan: Plan, priced: Priced, money: MoneyInputs, here: str | None) -> tuple[PlaceBeside, ...]:
    """The places where the plan costs less or emits less, by the rows at hand."""
    assert plan.gpu_hours is not None
    assert plan.energy_mwh is not None
    price = priced.prices[plan.gpu].usd_per_gpu_h
    book = money.quote is None and money.own is None and money.price_usd_per_gpu_h is None
    found = elsewhere(
        load_book(plan.gpu),
        load_rates(),
        gpu=plan.gpu,
        gpu_h=plan.gpu_hours.mid,
        energy=Energy.from_mwh(plan.energy_mwh.mid),
        here=here,
        usd_per_gpu_h_here=None if price is None else price.mid,
        as_of=money.as_of,
        commitment=parse_commitment(money.commitment) if book else "on-demand",
    )
    cheaper = [one for one in found if one.saved_usd is not None and one.saved_usd > 0][:NAMED]
    cleaner = [one for one in found if one.saved_kg is not None and one.saved_kg > 0]
    cleaner = sorted(cleaner, key=lambda one: (one.kg_co2e or 0.0, one.usd))[:NAMED]
    return tuple(_place(one, plan, money.as_of) for one in dict.fromkeys([*cheaper, *cleaner]))


def _place(one: Elsewhere, plan: Plan, as_of: date) -> PlaceBeside:
    return PlaceBeside(
        gpu=plan.gpu,
        precision=plan.precision,
        provider=one.provider,
        region=one.region,
        place=one.place,
        usd=one.usd,
        usd_here=None if one.saved_usd is None else one.usd + one.saved_usd,
        saved_usd=one.saved_usd,
        carbon_tco2e=None if one.kg_co2e is None else one.kg_co2e / TONNE_KG,
        saved_tco2e=None if one.saved_kg is None else one.saved_kg / TONNE_KG,
        scope=one.scope,
        evidence_id=f"price:{one.row.id}",
        source=one.row.source,
        date=one.row.date_text,
        stale=one.row.is_stale(as_of),
    )


def wall_h(plan: Plan) -> float:
    """Hours on the clock at mid."""
    assert plan.duration_days is not None
    return plan.duration_days.mid * DAY_S / HOUR_S


def _start_hours(plan: Plan, priced: Priced) -> Iterator[StartHours]:
    if priced.tariff is None:
        return
    from pricing.place.tariff import best_start, hour_named

    assert plan.energy_mwh is not None
    best, dearest = best_start(priced.tariff, wall_h(plan))
    kwh = float(Energy.from_mwh(plan.energy_mwh.mid).kwh)
    yield StartHours(
        gpu=plan.gpu,
        precision=plan.precision,
        tariff=priced.tariff.name,
        best_start=hour_named(best.hour_of_week),
        best_usd_per_kwh=best.usd_per_kwh,
        dearest_start=hour_named(dearest.hour_of_week),
        dearest_usd_per_kwh=dearest.usd_per_kwh,
        mean_usd_per_kwh=float(priced.tariff.usd_per_kwh.mean()),
        saved_usd=kwh * (dearest.usd_per_kwh - best.usd_per_kwh),
    )


def _power_limits(
    plans: list[Plan], question: Question, priced: Priced, points: tuple[Measurement, ...]
) -> tuple[LimitBeside, ...]:
    """What the power limits of the named records do to the asked plan's cost and to what a cap allows."""
    if not points:
        return ()
    from pricing.answer.power_limits import limits_beside

    clusters = {cluster.gpu.id: cluster for cluster in question.clusters}
    return tuple(
        one for plan in plans for one in limits_beside(plan, priced, clusters[plan.gpu], question.money, points)
    )

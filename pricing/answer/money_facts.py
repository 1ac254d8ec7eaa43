"""Facts about money shown next to the plans: prices used, owning versus renting, other places and starting hours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING

from planner.answer.plan import Answer, Plan
from planner.costs.bill import WORK, work_ratio
from planner.costs.context import MoneyFacts, OwnedBeside, PlaceBeside, PriceUsed, QuoteUsed, StartHours
from planner.costs.facility_power import LimitBeside
from planner.costs.quantity import Energy
from planner.question.question import MoneyInputs, Question
from planner.units import DAY_S, HOUR_S, TONNE_KG
from pricing.answer.elsewhere import Elsewhere, elsewhere
from pricing.answer.priced import LIVE, Priced
from pricing.book.reading import load_book
from pricing.files.exchange_rates import load_rates
from pricing.gpu_price.query import parse_commitment
from pricing.place.electricity import DEFAULT_ZONE
from pricing.place.places import zone_named
from pricing.place.site import grid_number

if TYPE_CHECKING:
    from planner.records.measurement import Measurement

NAMED = 5
"""Number of cheaper places named per plan, and of cleaner ones."""


def money_facts(answer: Answer, question: Question, priced: Priced, points: Iterable[Measurement] = ()) -> MoneyFacts:
    """Return facts from the price book and the user's files about the plans of the requested precision.

    Args:
        answer: the plans.
        question: the question that they answer.
        priced: the prices with which they were made.
        points: measurements from the records that the user named; they show the effect of power limits.
    """
    asked = [plan for plan in answer.plans if plan.precision == question.policy.precision and plan.fits]
    plans = [plan for plan in asked if plan.energy_mwh is not None]  # unknown on a machine without a power sensor
    money, planned_zone = question.money, place_here(question.money, priced.region)
    return MoneyFacts(
        prices=tuple(_price_used(gpu, priced) for gpu in priced.prices),
        quotes=tuple(_quotes(priced)),
        owned=tuple(_owned(priced)),
        here=planned_zone,
        elsewhere=tuple(place for plan in plans for place in _elsewhere(plan, money, priced, planned_zone)),
        start_hours=tuple(hours for plan in plans for hours in _start_hours(plan, priced)),
        power_limits=_power_limits(plans, question, priced, tuple(points)),
    )


def place_here(money: MoneyInputs, region: str | None) -> str | None:
    """Return the zone whose grid factor the plans use; None where the factor is a number without a scope.

    Args:
        money: the inputs about prices and place.
        region: the region to which the site facts apply (`Priced.region`).
    """
    grid = money.grid
    if grid is not None:
        row = None if grid.lower().startswith(LIVE) or grid_number(grid) is not None else zone_named(grid)
    elif region is not None:
        row = zone_named(region, money.provider.strip().lower() if money.provider else None)
    else:
        return DEFAULT_ZONE
    return None if row is None else row.zone


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
        evidence_ids=tuple(row.id for row in price.evidence),
        list_usd_per_gpu_h=price.list_usd_per_gpu_h,
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
                expired=(gap := ledger.quote.price.gap) is not None and gap.key == "quote.ended",
            )


def _owned(priced: Priced) -> Iterator[OwnedBeside]:
    for gpu, ledger in priced.ledgers.items():
        owned = ledger.owned
        if owned is not None and owned.price.usd_per_gpu_h is not None:
            yield OwnedBeside(
                gpu=gpu,
                usd_per_gpu_h=owned.price.usd_per_gpu_h,
                items_usd_per_gpu_h=owned.items_usd_per_gpu_h,
                utilisation_ratio=owned.utilisation_ratio,
                rental_usd_per_gpu_h=owned.rental_usd_per_gpu_h,
                rental_basis=owned.rental_basis,
                rental_evidence_ids=tuple(row.id for row in owned.rental_evidence),
                break_even_utilisation_ratio=owned.break_even_utilisation_ratio,
                break_even_low_ratio=owned.break_even_low_ratio,
                break_even_high_ratio=owned.break_even_high_ratio,
                rental_low_usd_per_gpu_h=owned.rental_low_usd_per_gpu_h,
                rental_high_usd_per_gpu_h=owned.rental_high_usd_per_gpu_h,
            )


def _elsewhere(plan: Plan, money: MoneyInputs, priced: Priced, planned_zone: str | None) -> tuple[PlaceBeside, ...]:
    """Return the places where the plan would cost less or emit less."""
    assert plan.gpu_hours is not None
    assert plan.energy_mwh is not None
    usd_here = _usd_here(plan)
    book = money.quote is None and money.own is None and money.price_usd_per_gpu_h is None
    places = elsewhere(
        load_book(plan.gpu),
        load_rates(),
        gpu=plan.gpu,
        gpu_h=plan.gpu_hours.mid * (1.0 + work_ratio(priced.ledgers[plan.gpu].other_costs)),
        energy=Energy.from_mwh(plan.energy_mwh.mid),
        planned_zone=planned_zone,
        usd_here=usd_here,
        as_of=money.as_of,
        commitment=parse_commitment(money.commitment) if book else "on-demand",
    )
    cheaper = [place for place in places if place.saved_usd is not None and place.saved_usd > 0][:NAMED]
    cleaner = [place for place in places if place.saved_kg is not None and place.saved_kg > 0]
    cleaner = sorted(cleaner, key=lambda place: (place.kg_co2e or 0.0, place.usd))[:NAMED]
    return tuple(_place(place, plan, usd_here, money.as_of) for place in dict.fromkeys([*cheaper, *cleaner]))


REPLACED = frozenset({"gpu_rental", "gpu_owned", "electricity", "minimum_term", "setup_fee", *WORK})
"""Lines of a bill replaced by rent elsewhere, which includes electricity: GPUs, electricity, an offer's terms. Failed
work and experiments are rented there too: under an offer, they use hours of its minimum."""


def _usd_here(plan: Plan) -> float | None:
    """Return the cost that renting elsewhere would replace; None without a price."""
    lines = [line.usd.mid for line in plan.cost_lines if line.id in REPLACED]
    return sum(lines) if lines else None


def _place(place: Elsewhere, plan: Plan, usd_here: float | None, as_of: date) -> PlaceBeside:
    return PlaceBeside(
        gpu=plan.gpu,
        precision=plan.precision,
        provider=place.provider,
        region=place.region,
        place=place.place,
        usd=place.usd,
        usd_here=usd_here,
        saved_usd=place.saved_usd,
        carbon_tco2e=None if place.kg_co2e is None else place.kg_co2e / TONNE_KG,
        saved_tco2e=None if place.saved_kg is None else place.saved_kg / TONNE_KG,
        scope=place.scope,
        evidence_id=f"price:{place.row.id}",
        source=place.row.source,
        date=place.row.date_text,
        stale=place.row.is_stale(as_of),
    )


def wall_h(plan: Plan) -> float:
    """Return the duration of a plan in hours, at mid."""
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
    """Return the effect of each power limit in the named records on cost and on what fits under a power cap."""
    if not points:
        return ()
    from pricing.answer.power_limits import limits_beside

    clusters = {cluster.gpu.id: cluster for cluster in question.clusters}
    return tuple(
        limit for plan in plans for limit in limits_beside(plan, priced, clusters[plan.gpu], question.money, points)
    )

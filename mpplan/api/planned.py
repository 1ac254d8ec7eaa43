"""Price and plan a resolved question; this module combines the planner with `pricing`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mpplan.version import __version__

if TYPE_CHECKING:
    from planner.answer.plan import Answer
    from planner.costs.facility_power import LimitSearch
    from planner.planning.case import Measured, RatesAndPrices
    from planner.question.question import Question
    from planner.rates.parameters import Parameters
    from planner.records.measurement import Measurement
    from pricing.answer.priced import Priced


def planned(
    question: Question,
    *,
    command: tuple[str, ...] = (),
    records: str | None = None,
    measured: Measured | None = None,
    parameters: Parameters | None = None,
    detailed: bool = True,
) -> Answer:
    """Price a question, plan it, and add the facts about money to the answer.

    Args:
        question: resolved.
        command: the command line, kept in the answer.
        records: the record file or folder that the user named, for the effect of power limits.
        measured: terms from records by GPU, policy and name, which take precedence over published rates.
        parameters: of a calibration; None: the shipped ones.
        detailed: whether to work out also what the short answer does not show (`planner.planning.estimate`).

    Raises:
        UsageError, InputFileError, NoPlanError: as `mpplan.api.answer.estimate`.
    """
    from pricing.answer.money_facts import money_facts
    from pricing.answer.priced import price_question

    own = measured or {}
    priced = price_question([cluster.gpu for cluster in question.clusters], question.money)
    is_final = priced.tariff is None  # under a tariff, this plan only tells for how many hours electricity is paid
    settled, answer = _plan(question, with_own_rates(priced, own, parameters), command, detailed=detailed and is_final)
    if not is_final:
        priced = _by_start(question, priced, answer)
        settled, answer = _plan(question, with_own_rates(priced, own, parameters), command, detailed=detailed)
    points = () if records is None else _points(records)
    return replace(answer, money=money_facts(answer, settled, priced, points))


def with_own_rates(priced: Priced, measured: Measured, parameters: Parameters | None) -> RatesAndPrices:
    """Return the prices of a question beside the user's own rates; arguments as of `planned`."""
    from planner.planning.case import RatesAndPrices

    return RatesAndPrices(
        prices=priced.prices, site=priced.site, ledgers=priced.ledgers, measured=measured, parameters=parameters
    )


def _plan(
    question: Question, rates_and_prices: RatesAndPrices, command: tuple[str, ...], *, detailed: bool
) -> tuple[Question, Answer]:
    """Return the question with its power limits settled, and its answer."""
    from planner.planning.estimate import estimate

    limits: tuple[LimitSearch, ...] = ()
    if question.searches_power_limit:
        from planner.planning.power.limit import settle_limits

        question, limits = settle_limits(question, rates_and_prices)
    return question, estimate(
        question, rates_and_prices, limits=limits, detailed=detailed, version=__version__, command=command
    )


def _by_start(question: Question, priced: Priced, answer: Answer) -> Priced:
    """Return the prices with electricity as the range of the tariff over all hours at which the run may start."""
    from pricing.answer.money_facts import wall_h
    from pricing.answer.priced import with_electricity
    from pricing.place.tariff import tariff_fact

    asked = next(plan for plan in answer.plans if plan.precision == question.policy.precision and plan.fits)
    assert priced.tariff is not None
    power = tariff_fact(priced.tariff, str(question.money.tariff), wall_h(asked))
    return with_electricity(priced, [cluster.gpu for cluster in question.clusters], question.money, power)


def _points(records: str) -> Iterator[Measurement]:
    """Yield every usable line of the named records; runs at different power limits are in different files."""
    from planner.records.home import record_path
    from planner.records.store import list_records, open_record

    path = record_path(records)
    if not path.is_dir():
        yield from open_record(path).file.measurements
        return
    for record in list_records(path):
        if not record.shipped and record.facts.problem is None:
            yield from open_record(record.path).file.measurements

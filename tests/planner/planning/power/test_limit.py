"""`--power-limit auto`: the cheapest and the greenest limit of a question, against the one as sold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.costs.facility_power import LimitSearch
from planner.errors import UsageError
from planner.evidence import Estimate
from planner.planning.case import RatesAndPrices
from planner.planning.estimate import estimate
from planner.planning.power.limit import limits_of, settle_limits
from planner.question.question import Question
from tests.planner.build import cluster, make_question, parts, price, site, unknown_price


def market(asked: Question, usd_per_gpu_h: float | None = 2.5) -> RatesAndPrices:
    prices = {cluster.gpu.id: unknown_price(cluster.gpu.id) for cluster in asked.clusters}
    if usd_per_gpu_h is not None:
        ends = (0.9 * usd_per_gpu_h, usd_per_gpu_h, 1.1 * usd_per_gpu_h)
        prices = {gpu: price(gpu, *ends) for gpu in prices}
    dear = Estimate(low=0.9, mid=1.0, high=1.1)
    return RatesAndPrices(prices=prices, site=site(electricity_usd_per_kwh=dear))


def settled(usd_per_gpu_h: float | None = 2.5, **asked: str) -> tuple[Question, LimitSearch]:
    given = make_question(**({"params": "8B", "gpus": "64", "power_limit": "auto"} | asked))
    answered, (search,) = settle_limits(given, market(given, usd_per_gpu_h))
    return answered, search


RENTED, RENTED_SEARCH = settled()


def test_limits_run_from_the_one_as_sold_to_the_least_that_the_driver_accepts():
    h100 = limits_of(cluster())

    assert (h100[0], h100[1], h100[-1], len(h100)) == (700, 675, 200, 21)
    assert limits_of(cluster("a100-sxm4-80gb"))[-1] == 100


def test_a_rented_gpu_is_the_cheapest_as_sold_and_the_greenest_below():
    # the hours cost the same whatever is drawn in them
    sold, greenest = RENTED_SEARCH.sold, RENTED_SEARCH.greenest

    assert RENTED_SEARCH.cheapest == sold
    assert 0.5 * 700 <= greenest.limit_w < 0.75 * 700
    assert greenest.energy_mwh < sold.energy_mwh
    assert greenest.duration_days > sold.duration_days
    assert greenest.cost_usd > sold.cost_usd
    assert [cluster.power_limit_w for cluster in RENTED.clusters] == [700]


def test_where_hours_are_cheap_and_electricity_is_dear_the_cheapest_limit_is_lower():
    answered, search = settled(usd_per_gpu_h=0.1, electricity="1.0")

    assert search.cheapest.limit_w < 700
    assert search.cheapest.cost_usd < search.sold.cost_usd
    assert [cluster.power_limit_w for cluster in answered.clusters] == [search.cheapest.limit_w]


def test_without_a_price_the_plans_stand_at_the_least_energy():
    answered, search = settled(usd_per_gpu_h=None)

    assert search.cheapest is None
    assert search.sold.cost_usd is None
    assert [cluster.power_limit_w for cluster in answered.clusters] == [search.greenest.limit_w]


def test_a_deadline_is_met_at_every_limit_that_is_shown():
    given = make_question(params="8B", deadline="20d", power_limit="auto")
    _, (search,) = settle_limits(given, market(given))

    assert search.cheapest is not None
    assert all(point.duration_days <= 20 for point in (search.sold, search.cheapest, search.greenest))
    assert search.greenest.energy_mwh <= search.sold.energy_mwh


def test_the_plan_of_the_answer_is_the_one_that_the_search_shows():
    answer = estimate(RENTED, market(RENTED), limits=(RENTED_SEARCH,), created_at="2026-11-20")
    (plan,) = (plan for plan in answer.plans if plan.precision == "bf16")

    assert plan.duration_days.mid == pytest.approx(RENTED_SEARCH.cheapest.duration_days)
    assert plan.cost_usd.mid == pytest.approx(RENTED_SEARCH.cheapest.cost_usd)
    assert answer.power_limit_search == (RENTED_SEARCH,)
    assert answer.question["power_limit"].value == "auto"


def test_a_question_without_the_search_stays_as_it_is():
    given = make_question(params="8B", gpus="64", power_limit="500W")

    assert settle_limits(given, market(given)) == (given, ())
    assert [cluster.power_limit_w for cluster in given.clusters] == [500]


def test_a_gpu_whose_least_limit_nobody_states_is_refused_by_name():
    with pytest.raises(UsageError) as caught:
        make_question(params="8B", gpu="b200-sxm-180gb", power_limit="auto")

    assert parts(caught.value.message) == {"key": "error.power_limits_unknown", "gpu": "b200-sxm-180gb"}
    assert "h100-sxm5-80gb" in str(parts(caught.value.hint)["known"])


def test_a_cap_and_a_search_cannot_both_decide():
    with pytest.raises(UsageError) as caught:
        make_question(params="8B", power_limit="auto", power_cap="1MW")

    assert parts(caught.value.message)["key"] == "error.auto_under_cap"


def test_a_gpu_without_a_price_is_left_as_sold_beside_one_that_a_budget_holds():
    given = make_question(params="8B", gpu="h100-sxm5-80gb,a100-sxm4-80gb", budget="1M", power_limit="auto")
    prices = market(given)
    prices = replace(prices, prices=dict(prices.prices) | {"a100-sxm4-80gb": unknown_price("a100-sxm4-80gb")})

    answered, searches = settle_limits(given, prices)

    assert [search.gpu for search in searches] == ["h100-sxm5-80gb"]
    assert answered.clusters[1].power_limit_w == given.clusters[1].power_limit_w

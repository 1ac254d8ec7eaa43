"""What is booked for a plan: lines that sum, megawatts, carbon by method, the SCI score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.answer.plan import Answer
from planner.costs.prices import EmbodiedRate, Ledger, OtherCosts, OwnedPrice, Quote
from planner.errors import UsageError
from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.planning.case import Case, make_case
from planner.planning.estimate import estimate
from planner.planning.footprint import gpus_allowed, node_power, peak_of
from planner.rates.terms import Draws
from planner.units import DAY_S, HOUR_S
from tests.planner.build import SAID, make_question, price, prices, rates_and_prices, site, unknown_price
from tests.planner.costs.amounts import gigabytes

H100 = "h100-sxm5-80gb"
MADE = EmbodiedRate(kg_co2e_per_gpu_h=Estimate(low=0.0037, mid=0.0084, high=0.0131), evidence=SAID)
OTHER_COSTS = OtherCosts(
    storage_usd_per_gb_month=0.023, checkpoints_kept=3, months_after=6, egress_usd_per_gb=0.09,
    egress=gigabytes(500), hosts=4, usd_per_host_h=1.5, experiments_ratio=0.5, failed_ratio=0.05,
    evidence=Evidence(id="beside:file", kind=EvidenceKind.GIVEN, what="", source="beside.toml", used_in=("cost_usd",)),
)  # fmt: skip
OWNED = OwnedPrice(
    price=replace(price(H100, 1.6, 2.0, 2.6), commitment="owned"),
    items_usd_per_gpu_h={"server": 1.4, "housing": 0.4, "electricity": 0.1, "staff": 0.1},
    break_even_utilisation_ratio=0.4,
    rental_usd_per_gpu_h=3.0,
    busy_usd_per_gpu_h=Estimate(low=0.06, mid=0.08, high=0.11),
)


ANSWERS: dict[str, Answer] = {}
"""Each question is answered once: answers are frozen."""


def answer_of(ledger=None, site_facts=None, price_of=price, alone=False, **asked):
    """The answer to a question; `alone`: without the precisions that nobody asked for, which take most of the time."""
    key = repr((ledger, site_facts, price_of, alone, sorted(asked.items())))
    if key not in ANSWERS:
        question = make_question(**({"params": "7B", "gpus": "8"} | asked))
        question = replace(question, policies=(question.policy,)) if alone else question
        ledgers = {} if ledger is None else dict.fromkeys(prices(question), ledger)
        price_by_gpu = {gpu: price_of(gpu) for gpu in prices(question)}
        known = rates_and_prices(question, prices=price_by_gpu, site=site_facts or site(), ledgers=ledgers)
        ANSWERS[key] = estimate(question, known)
    return ANSWERS[key]


def plan_of(*args, **kwargs):
    return next(plan for plan in answer_of(*args, alone=True, **kwargs).plans if plan.precision == "bf16")


def leaves(lines):
    for line in lines:
        yield from leaves(line.children) if line.children else (line,)


LEDGERS = {
    "nothing": Ledger(),
    "other costs": Ledger(other_costs=OTHER_COSTS),
    "an offer": Ledger(quote=Quote(vendor="A", price=price(), minimum_term_h=2000, minimum_gpus=16, setup_fee_usd=7e3)),
    "own": Ledger(owned=OWNED, other_costs=OTHER_COSTS),
}


@pytest.mark.parametrize("ledger", LEDGERS.values(), ids=LEDGERS)
def test_the_lines_of_every_plan_sum_to_its_cost_at_low_mid_and_high(ledger):
    estimated = answer_of(ledger)
    fitting = [plan for plan in (*estimated.plans, *estimated.same_deadline) if plan.fits]

    assert len(fitting) > 5
    for plan in fitting:
        for end in ("low", "mid", "high"):
            total = getattr(plan.cost_usd, end)
            assert abs(sum(getattr(line.usd, end) for line in leaves(plan.cost_lines)) - total) < 0.005


def test_mean_power_times_the_hours_is_the_energy():
    plan = plan_of()
    hours = plan.duration_days.mid * DAY_S / HOUR_S

    assert plan.mean_power_mw.mid * hours == pytest.approx(plan.energy_mwh.mid, rel=1e-12)
    assert plan.mean_power_mw.low < plan.mean_power_mw.mid < plan.peak_power_mw


def test_the_sci_score_is_location_based_carbon_plus_the_embodied_share():
    without, with_made = plan_of(), plan_of(Ledger(embodied=MADE))

    assert without.sci_kg_per_run.at_least  # the share is not known
    assert without.sci_kg_per_run.mid == pytest.approx(without.carbon_tco2e.mid * 1000)
    made_kg = with_made.gpu_hours.mid * 0.0084
    assert with_made.sci_kg_per_run.mid == pytest.approx(with_made.carbon_tco2e.mid * 1000 + made_kg, rel=1e-12)
    assert not with_made.sci_kg_per_run.at_least
    assert with_made.sci_kg_per_1e21_flop.mid == pytest.approx(
        with_made.sci_kg_per_run.mid / (with_made.model_flop / 1e21)
    )


def test_model_flop_of_a_run_are_six_per_parameter_and_token_and_the_attention():
    plan = plan_of(tokens="140B")

    assert 6 * 6.5e9 * 140e9 < plan.model_flop < 1.2 * 6 * 7.5e9 * 140e9


def test_embodied_carbon_is_shown_only_where_it_is_asked_for_and_never_in_the_location_based_figure():
    silent, asked = plan_of(Ledger(embodied=MADE)), plan_of(Ledger(embodied=MADE), embodied="yes")

    assert (silent.embodied_tco2e, silent.carbon_with_embodied_tco2e) == (None, None)
    assert asked.carbon_tco2e == silent.carbon_tco2e
    assert asked.embodied_tco2e.mid == pytest.approx(asked.gpu_hours.mid * 0.0084 / 1000, rel=1e-12)
    assert asked.embodied_tco2e.low < 0.6 * asked.embodied_tco2e.mid  # the range of the figure itself
    assert asked.carbon_with_embodied_tco2e.mid == pytest.approx(asked.sci_kg_per_run.mid / 1000)


def test_embodied_carbon_that_is_asked_for_and_not_known_is_a_gap_and_a_lower_bound():
    estimated = answer_of(embodied="yes")
    bf16 = next(plan for plan in estimated.plans if plan.precision == "bf16")

    assert [gap.key for gap in estimated.gaps] == ["embodied"]
    assert bf16.embodied_tco2e is None
    assert bf16.carbon_with_embodied_tco2e.at_least


def test_market_based_carbon_is_a_second_number_and_the_score_never_holds_it():
    plain, green = plan_of(), plan_of(site_facts=site(market_kg_co2e_per_kwh=0.0))

    assert (plain.carbon_market_tco2e, green.carbon_market_tco2e) == (None, 0.0)
    assert green.carbon_tco2e == plain.carbon_tco2e
    assert green.sci_kg_per_run == plain.sci_kg_per_run


def test_own_machines_are_billed_by_the_plans_own_energy():
    plan = plan_of(Ledger(owned=OWNED))
    own, power = plan.cost_lines

    assert (own.id, power.id) == ("gpu_owned", "electricity")
    assert sum(child.unit_price_usd.mid for child in own.children) == pytest.approx(2.0 - 0.08)
    assert power.quantity == pytest.approx(plan.energy_mwh.mid * 1000)


def test_a_saving_in_energy_is_a_saving_in_money_only_where_power_is_paid_apart():
    def saving(estimated):
        return next(
            s
            for s in estimated.savings
            if (s.view, s.metric, s.from_, s.to) == ("same_gpus", "cost_usd", "bf16", "fp8")
        )

    rented, paid = saving(answer_of()), saving(answer_of(electricity="0.3"))

    assert rented.mid != paid.mid
    hours = next(
        s for s in answer_of().savings if (s.view, s.metric, s.from_, s.to) == ("same_gpus", "gpu_hours", "bf16", "fp8")
    )
    assert rented.mid == pytest.approx(hours.mid, abs=1e-5)  # of whole cents


def test_without_any_price_there_is_no_cost_rather_than_0():
    dark = site(electricity_usd_per_kwh=None)
    estimated = answer_of(price_of=unknown_price, site_facts=dark)
    bf16 = next(plan for plan in estimated.plans if plan.precision == "bf16")

    assert (bf16.cost_usd, bf16.cost_lines) == (None, ())


def test_without_a_gpu_price_the_electricity_alone_is_no_cost():
    plan = plan_of(price_of=unknown_price, electricity="0.08")

    assert (plan.cost_usd, plan.cost_lines) == (None, ())
    assert plan.energy_mwh.mid > 0


def test_a_budget_holds_the_whole_bill():
    lean = answer_of(gpus=None, budget="2M", params="70B", tokens="100B", precision="bf16")
    ledger = Ledger(other_costs=replace(OTHER_COSTS, experiments_ratio=3.0))
    dear = answer_of(ledger, gpus=None, budget="2M", params="70B", tokens="100B", precision="bf16")

    for estimated in (lean, dear):
        bf16 = next(plan for plan in estimated.plans if plan.precision == "bf16")
        assert bf16.cost_usd.mid <= 2e6
    assert (
        next(plan for plan in dear.plans if plan.precision == "bf16").cost_usd.mid
        > 1.5 * next(plan for plan in lean.plans if plan.precision == "bf16").cost_usd.mid
    )


def test_precisions_are_compared_with_the_same_draws_whatever_is_booked():
    estimated = answer_of(Ledger(other_costs=OTHER_COSTS, embodied=MADE))
    saved = next(
        s for s in estimated.savings if (s.view, s.metric, s.from_, s.to) == ("same_gpus", "cost_usd", "tf32", "bf16")
    )
    by_ranges = {plan.precision: plan.cost_usd for plan in estimated.plans}

    wide = 1 - by_ranges["bf16"].low / by_ranges["tf32"].high - (1 - by_ranges["bf16"].high / by_ranges["tf32"].low)
    assert saved.high - saved.low < 0.5 * wide


def metered(host_w: float, network_w: float, **asked: str) -> Case:
    """A case whose hosts and switches take so much per GPU."""
    asked_for = make_question(**({"params": "7B", "gpus": "8"} | asked))
    case = make_case(asked_for, asked_for.policy, asked_for.clusters[0], price(), site())
    return replace(case, mid=case.mid.replaced(host_power_w=host_w, host_least_w=0.0, network_power_w=network_w))


# An H100 SXM may take 700 W (its row in gpus.csv). A node that draws 8.4 kW with 5.6 kW of GPUs (arXiv 2412.08602) has
# 350 W of host per GPU, and 0.03 of 700 W are the switches (network_power_ratio in parameters.csv): 21 W.
@pytest.mark.parametrize(
    ("host_w", "network_w", "beside_w"), [(350.0, 0.0, 350.0), (0.0, 21.0, 21.0), (350.0, 21.0, 371.0)]
)
def test_a_node_s_power_holds_its_gpus_at_their_limit_its_hosts_and_its_switches(host_w, network_w, beside_w):
    power = node_power(metered(host_w, network_w))

    assert power.gpu_limit.w == 700
    assert power.host.w == pytest.approx(beside_w, rel=1e-12)


def test_a_lower_board_limit_leaves_what_stands_beside_the_gpu_and_a_higher_one_is_refused():
    low, sold = (case_at(exact_site(), **limit) for limit in ({"power_limit": "500"}, {}))

    assert (node_power(low).gpu_limit.w, node_power(sold).gpu_limit.w) == (500, 700)
    assert node_power(low).host.w == node_power(sold).host.w
    with pytest.raises(UsageError, match="takes at most 700 W"):
        metered(350.0, 21.0, power_limit="900")


def exact_site(**pue):
    """A facility whose PUE has the given range, or is 1.25 to the digit."""
    return site(pue=Estimate(**pue) if pue else Estimate.exactly(1.25))


def case_at(site_facts, **more: str) -> Case:
    asked = make_question(params="7B", gpus="8", **more)
    return make_case(asked, asked.policy, asked.clusters[0], price(), site_facts)


def test_a_peak_counts_hosts_and_switches_at_their_high_end():
    case, draws = case_at(exact_site()), Draws(count=401, seed=0)
    rates = case.rates.sample(draws)
    high_w = np.percentile(700.0 + rates.host_power_w + rates.network_power_w, 95)

    assert peak_of(case, 8, draws).w == pytest.approx(8 * high_w * 1.25)
    assert high_w > 700.0 + case.mid.host_power_w + case.mid.network_power_w + 50


def test_a_facility_of_unknown_pue_has_a_higher_peak_than_one_whose_pue_is_known():
    draws = Draws(count=401, seed=0)
    exact, unsure = (case_at(exact_site(**pue)) for pue in ({}, {"low": 1.1, "mid": 1.25, "high": 1.5}))

    assert peak_of(unsure, 8, draws).w > 1.05 * peak_of(exact, 8, draws).w
    assert gpus_allowed(unsure, 100_000, draws) < gpus_allowed(exact, 100_000, draws)


@pytest.mark.parametrize("more", [{}, {"params": "70B", "gpus": "512"}, {"gpu": "gb200-nvl72-186gb", "gpus": "72"}])
def test_no_mean_power_lies_above_its_peak_at_its_high_end(more):
    for plan in answer_of(**more).plans:
        assert plan.mean_power_mw is None or plan.mean_power_mw.high <= plan.peak_power_mw


def test_an_exact_rate_of_embodied_carbon_is_multiplied_with_every_draw_of_the_hours():
    exact = replace(MADE, kg_co2e_per_gpu_h=Estimate.exactly(0.0084))
    plan = plan_of(Ledger(embodied=exact), embodied="yes")

    for end in ("low", "mid", "high"):
        assert getattr(plan.embodied_tco2e, end) == pytest.approx(getattr(plan.gpu_hours, end) * 0.0084 / 1000)
    # Both follow the hours, not wholly: the ends of the sum lie inside the sums of the ends, but for the draws' noise.
    assert plan.carbon_with_embodied_tco2e.low >= 0.99 * (plan.carbon_tco2e.low + plan.embodied_tco2e.low)
    assert plan.carbon_with_embodied_tco2e.high <= 1.01 * (plan.carbon_tco2e.high + plan.embodied_tco2e.high)


def test_market_based_carbon_is_the_energy_at_the_factor_of_the_contracts():
    # 1 MWh at 0.1 kg per kWh is 0.1 t
    plan = plan_of(site_facts=site(market_kg_co2e_per_kwh=0.1))

    assert plan.carbon_market_tco2e == pytest.approx(0.1 * plan.energy_mwh.mid)


def test_the_sci_score_per_1e21_flop_divides_each_draw_by_the_same_flop():
    plan = plan_of(Ledger(embodied=MADE))

    for end in ("low", "mid", "high"):
        assert getattr(plan.sci_kg_per_1e21_flop, end) == pytest.approx(
            getattr(plan.sci_kg_per_run, end) / plan.model_flop * 1e21
        )


def test_the_gpus_that_an_offer_bills_anyway_are_on_the_curve():
    offer = Quote(vendor="A", price=price(), minimum_term_h=2000, minimum_gpus=48, setup_fee_usd=0.0)
    points = {point.gpus: point for point in answer_of(Ledger(quote=offer)).curve}

    assert points[48].cost_usd.mid == pytest.approx(points[8].cost_usd.mid, rel=1e-6)
    assert points[48].duration_days.mid < points[32].duration_days.mid

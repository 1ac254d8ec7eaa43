"""Ranges: items that sum, and what makes them wide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.answer.plan import MEMORY_ITEMS, METRICS, STEP_ITEMS
from planner.evidence import Estimate
from planner.parallelism.search import FixedLayout
from planner.planning.case import Case, make_case
from planner.planning.choice import best_on, expected_s_per_sequence
from planner.planning.ranges import DRAWS, infeasible, ranged_plan, why_not
from planner.rates.terms import Draws
from tests.planner.build import SAID, make_question, parts, price, site, unknown_price

DRAWN = Draws(count=DRAWS, seed=0)


def case_of(given_price=None, **asked: str) -> Case:
    question = make_question(**asked)
    machine = question.clusters[0]
    return make_case(question, question.policy, machine, given_price or price(machine.gpu.id), site())


def ranged(case: Case, gpus: int = 64, drawn: Draws = DRAWN, **fixed: object):
    return ranged_plan(case, best_on(case, FixedLayout(**fixed), gpus), drawn)  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16", "fp8"])
def test_a_plan_s_figures_are_ordered_and_its_items_sum(precision):
    plan = ranged(case_of(params="8B", precision=precision)).plan

    assert plan.layout is not None
    assert plan.layout.gpus == plan.gpus == 64
    assert 205 <= plan.layout.dp * plan.layout.micro_batch * plan.layout.grad_accum <= 320  # a quarter around 256
    for name in METRICS:
        figure = getattr(plan, name)
        assert 0 < figure.low < figure.mid < figure.high
    assert plan.memory_gib is not None
    assert plan.step_s is not None
    for items, names in ((plan.memory_gib, MEMORY_ITEMS), (plan.step_s, STEP_ITEMS)):
        assert tuple(items) == (*names, "total")
        assert sum(items[name] for name in names) == pytest.approx(items["total"], rel=1e-12)
    assert plan.memory_gib["total"] <= plan.memory_capacity_gib
    assert plan.step_range_s is not None
    assert plan.step_s["total"] == pytest.approx(plan.step_range_s.mid, rel=1e-9)
    assert plan.energy_items_mwh is not None
    items = [plan.energy_items_mwh[name] for name in ("gpu", "host", "network", "pue_overhead")]
    assert sum(items) == pytest.approx(plan.energy_items_mwh["total"])
    assert plan.energy_items_mwh["total"] == pytest.approx(plan.energy_mwh.mid, rel=1e-9)


def test_what_the_machines_take_does_not_depend_on_the_building():
    case = case_of(params="8B")
    wide, given, exactly_one = (
        ranged(replace(case, site=replace(case.site, pue=pue))).plan.energy_items_mwh
        for pue in (Estimate(low=1.1, mid=1.25, high=1.5), Estimate.exactly(1.25), Estimate.exactly(1.0))
    )
    assert wide
    assert given
    assert exactly_one

    for name in ("gpu", "host", "network"):
        assert wide[name] == pytest.approx(exactly_one[name], rel=1e-9)
        assert given[name] == pytest.approx(exactly_one[name], rel=1e-9)
    assert exactly_one["pue_overhead"] == pytest.approx(0.0, abs=1e-9)
    assert given["pue_overhead"] == pytest.approx(0.25 * exactly_one["total"], rel=1e-9)
    assert wide["pue_overhead"] == pytest.approx(given["pue_overhead"], rel=1e-9)  # of the PUE that the plan states


def test_a_lopsided_pue_counts_with_its_mid_in_energy_carbon_power_and_the_bill():
    case = case_of(params="8B")
    hyper = replace(case, site=replace(case.site, pue=Estimate(low=1.07, mid=1.1, high=1.5)))  # pue.csv u002
    plan, bare = ranged(hyper).plan, ranged(replace(case, site=replace(case.site, pue=Estimate.exactly(1.0)))).plan
    assert plan.energy_mwh
    assert bare.energy_mwh

    assert plan.energy_mwh.mid == pytest.approx(1.1 * bare.energy_mwh.mid, rel=1e-9)
    assert plan.carbon_tco2e.mid == pytest.approx(1.1 * bare.carbon_tco2e.mid, rel=1e-9)
    assert plan.mean_power_mw.mid == pytest.approx(1.1 * bare.mean_power_mw.mid, rel=1e-9)
    assert plan.energy_mwh.high > 1.2 * bare.energy_mwh.high  # the draws reach to 1.5 all the same


@pytest.mark.parametrize("limit", ["200", "400", ""])
def test_a_gpu_that_is_held_takes_no_more_over_the_run_than_while_it_trains(limit):
    plan = ranged(case_of(params="8B", **({"power_limit": limit} if limit else {}))).plan
    items = plan.energy_items_mwh
    assert items

    assert items["gpu"] * 1e6 / plan.gpu_hours.mid < plan.gpu_power_w.mid
    # hosts and switches in proportion to the watts that stand beside each GPU: 257.46 W and 21 W
    assert items["host"] / items["network"] == pytest.approx(257.46 / 21.0, rel=0.02)


def test_the_figures_of_a_plan_follow_from_each_other():
    case = case_of(params="8B")
    plan = ranged(case).plan

    assert plan.tflops_per_gpu.mid == pytest.approx(plan.mfu.mid * 989)
    assert plan.gpu_hours.mid == pytest.approx(plan.duration_days.mid * 24 * 64, rel=1e-9)
    # steady state: goodput lengthens the run, not the step; the last step is rounded up
    wall_s = case.tokens / plan.tokens_per_s_per_gpu.mid / 64 / plan.goodput_ratio.mid
    assert plan.duration_days.mid == pytest.approx(wall_s / 86400, rel=1e-4)
    assert plan.mfu_full_attention > plan.mfu.mid
    assert plan.hfu >= plan.mfu.mid
    node_w = 700 + float(case.mid.host_power_w) + float(case.mid.network_power_w)
    assert plan.peak_power_mw > 64e-6 * node_w * 1.25  # at the high end of hosts, switches and PUE
    assert plan.peak_power_mw >= plan.mean_power_mw.high


def test_no_gpu_draws_more_than_its_board_s_limit_on_average():
    assert ranged(case_of(params="8B")).plan.gpu_power_w.high <= 700


def test_hfu_counts_what_is_recomputed_and_mfu_does_not():
    plan, bare = (ranged(case_of(params="8B"), act_ckpt=kind).plan for kind in ("full", "none"))

    assert bare.hfu == pytest.approx(bare.mfu.mid)
    # four thirds on layers and attention, nothing on the output layer
    assert 1.25 < plan.hfu / plan.mfu.mid < 4 / 3


def test_the_mid_of_a_cost_is_gpu_hours_times_the_price_however_far_its_ends_are():
    narrow = ranged(case_of(given_price=price(low=2.5, mid=2.5, high=2.5))).plan
    wide = ranged(case_of(given_price=price(low=1.5, mid=2.5, high=5.0))).plan

    assert wide.cost_usd.high / wide.cost_usd.low > narrow.cost_usd.high / narrow.cost_usd.low
    for plan in (narrow, wide):
        assert plan.cost_usd.mid == pytest.approx(2.5 * plan.gpu_hours.mid, abs=0.01)  # whole cents
        assert plan.gpu_hours.mid == pytest.approx(plan.gpus * 24 * plan.duration_days.mid, rel=1e-12)


def test_a_price_that_is_given_leaves_the_cost_only_the_range_of_the_gpu_hours():
    plan = ranged(case_of(given_price=price(low=2.5, mid=2.5, high=2.5))).plan

    for end in ("low", "mid", "high"):
        assert getattr(plan.cost_usd, end) == pytest.approx(2.5 * getattr(plan.gpu_hours, end), abs=0.01)


def test_carbon_and_mean_power_follow_from_the_energy_at_mid():
    plan = ranged(case_of()).plan

    assert plan.carbon_tco2e.mid == pytest.approx(plan.energy_mwh.mid * 0.37, rel=1e-12)  # the test site's kg per kWh
    assert plan.mean_power_mw.mid == pytest.approx(plan.energy_mwh.mid / plan.duration_days.mid / 24, rel=1e-12)


def test_without_a_price_the_cost_is_unknown():
    result = ranged(case_of(given_price=unknown_price()))

    assert (result.plan.cost_usd, result.plan.cost_lines) == (None, ())
    assert "cost_usd" not in result.draws
    assert result.plan.gpu_hours.mid > 0


def test_lines_of_the_bill_sum_to_the_cost():
    plan = ranged(case_of(electricity="0.1")).plan

    assert [line.id for line in plan.cost_lines] == ["gpu_rental", "electricity"]
    assert sum(line.usd.mid for line in plan.cost_lines) == pytest.approx(plan.cost_usd.mid, rel=0.01)
    assert plan.cost_lines[0].quantity == pytest.approx(plan.gpu_hours.mid)
    assert plan.cost_lines[0].evidence_ids == (SAID.id,)


def test_market_based_carbon_is_a_second_number():
    case = case_of()
    market = ranged(replace(case, site=site(market_kg_co2e_per_kwh=0.05))).plan

    assert ranged(case).plan.carbon_market_tco2e is None
    assert market.carbon_market_tco2e == pytest.approx(market.energy_mwh.mid * 0.05)
    assert market.carbon_tco2e.mid == pytest.approx(ranged(case).plan.carbon_tco2e.mid)


def test_the_inputs_that_make_the_range_are_named_largest_first():
    plan = ranged(case_of(params="8B")).plan
    shares = [contribution.share_ratio for contribution in plan.uncertainty]

    assert shares == sorted(shares, reverse=True)
    assert all(0 < share <= 1 for share in shares)
    assert sum(shares) <= 1.1  # independent inputs share one variance, within the noise of the draws
    assert plan.uncertainty[0].label


def test_the_runners_up_are_slower_and_one_that_is_too_big_says_by_how_much():
    plan = ranged(case_of(params="70B"), gpus=64).plan
    slower = [lost for lost in plan.lost_layouts if lost.why.key == "why.slower"]

    assert len(slower) >= 2
    assert len({lost.layout for lost in plan.lost_layouts}) == len(plan.lost_layouts)
    assert plan.layout not in {lost.layout for lost in plan.lost_layouts}
    slower_ratios = [dict(lost.why.values)["slower_ratio"] for lost in slower]
    assert slower_ratios == sorted(slower_ratios)
    big = [lost for lost in plan.lost_layouts if lost.why.key == "why.too_big"]
    assert all(lost.memory_gib > plan.memory_capacity_gib for lost in big)


def test_a_layout_hardly_slower_that_is_too_risky_says_so_and_leaves_room_for_safe_ones():
    plan = ranged(case_of(model="llama-3-8b", tokens="1T"), gpus=8).plan
    keys = [lost.why.key for lost in plan.lost_layouts]
    sharded = next(lost for lost in plan.lost_layouts if (lost.layout.dp, lost.layout.zero) == (8, 3))

    # the first is faster; of the slower ones, plain FSDP is the simplest of those that are too risky
    assert keys == ["why.too_risky", "why.too_risky", "why.slower", "why.slower", "why.too_big"]
    assert (sharded.why.key, sharded.layout.tp) == ("why.too_risky", 1)
    assert len({replace(lost.layout, vp=1, micro_batch=1, grad_accum=1) for lost in plan.lost_layouts[1:4]}) == 3


def test_a_layout_that_was_too_big_to_be_timed_is_not_shown_as_a_runner_up():
    plan = ranged(case_of(params="1B", precision="fp32", gpu="h200-sxm-141gb"), gpus=32).plan

    assert plan.lost_layouts
    assert all(np.isfinite(lost.step_s) for lost in plan.lost_layouts)


def test_what_does_not_fit_has_no_figures_and_says_why():
    case = case_of(params="70B", precision="fp32")
    choice = best_on(case, FixedLayout(), 8)
    plan = infeasible(case, 8, why_not(case, choice), choice).plan

    assert choice.best is None
    assert not plan.fits
    why = parts(plan.why_not)
    assert (why["key"], why["gpu"], why["layouts"]) == ("why.does_not_fit", "h100-sxm5-80gb", len(choice.layouts))
    assert why["capacity_gib"] == pytest.approx(79.6 - 0.55, abs=0.1)
    assert all(getattr(plan, name) is None for name in (*METRICS, "memory_gib", "step_s", "layout"))
    assert plan.layouts_evaluated == len(choice.layouts) > 0


def test_gpus_that_divide_into_no_layout_are_said_so():
    case = case_of(params="8B", global_batch="2")
    choice = best_on(case, FixedLayout(tp=1, pp=1, cp=1), 1)
    nothing = best_on(case, FixedLayout(pp=1), 1024)

    assert len(choice.layouts)
    assert parts(why_not(case, nothing)) == {"key": "why.no_even_split", "global_batch": 2}


def test_what_sets_a_precision_apart_is_named_among_the_inputs():
    # its spread is that of published pairs: of FP16 against the others too large to be missed (`precision_error_ratio`)
    plan = ranged(case_of(params="8B", precision="fp16")).plan

    assert "precision_error_ratio" in {contribution.term for contribution in plan.uncertainty}


def test_an_input_that_rests_on_what_another_does_is_named_by_how_far_it_moves_the_duration():
    case = case_of(params="8B")
    plan = ranged(case).plan
    shares = {entry.term: entry.share_ratio for entry in plan.uncertainty}
    log_sd = {name: term.log_sd for name, term in case.rates.terms.items()}

    # the length of a whole run against its steps is a plain factor of the duration: its share is that of its variance
    drawn = np.log(np.ravel(case.evaluate(best_on(case, FixedLayout(), 64).winner, Draws(count=20_001, seed=0)).wall_s))
    assert shares["run_error_ratio"] == pytest.approx(log_sd["run_error_ratio"] ** 2 / np.var(drawn), rel=0.05)
    assert 0.5 < sum(shares.values()) <= 1.1
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_the_middle_of_a_figure_hardly_depends_on_the_seed():
    case = case_of(params="8B")
    mids = [ranged(case, drawn=Draws(count=DRAWS, seed=seed)).plan.gpu_hours.mid for seed in range(10)]

    assert max(mids) / min(mids) < 1.01


def test_what_a_device_of_unknown_watts_uses_and_emits_is_unknown_in_every_figure():
    case = case_of(params="8B")
    dark = replace(case, cluster=replace(case.cluster, gpu=replace(case.cluster.gpu, tdp_w=0.0)))
    known, unknown = (ranged(machine_case).plan for machine_case in (case, dark))
    figures = [
        "energy_mwh", "energy_items_mwh", "gpu_power_w", "peak_power_mw", "mean_power_mw", "carbon_tco2e",
        "sci_kg_per_run", "sci_kg_per_1e21_flop",
    ]  # fmt: skip

    assert all(getattr(known, name) is not None for name in figures)
    assert all(getattr(unknown, name) is None for name in figures)


def test_a_faster_layout_that_would_change_a_published_batch_is_named_with_that_as_the_reason():
    case = case_of(model="deepseek-v3", tokens="14.8e12", gpu="h200", gpus="2048", precision="fp8")
    choice = best_on(case, FixedLayout(), 2048)
    keeps = (choice.layouts.global_batch == case.recipe.global_batch) & case.fits(choice.scores)
    kept = int(np.argmin(np.where(keeps, choice.scores.wall_s, np.inf)))
    other = int(np.argmin(np.where(~keeps & case.fits(choice.scores), choice.scores.wall_s, np.inf)))
    assert choice.layouts.at(other).global_batch == 12288 != case.recipe.global_batch

    lost = ranged_plan(case, replace(choice, best=kept, fastest=other, slower_ratio=0.01), DRAWN).plan.lost_layouts

    (named,) = [row for row in lost if row.why.key == "why.other_batch"]
    assert named.layout == choice.layouts.at(other)
    kept_s, other_s = expected_s_per_sequence(case, choice.layouts.take(np.array([kept, other])))
    assert dict(named.why.values)["faster_ratio"] == pytest.approx(kept_s / other_s - 1.0, abs=1e-4)

"""A case: unit prices drawn between their ends, electricity only where it is paid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.evidence import Estimate
from planner.parallelism.layout import Layouts
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.performance.memory import usable_bytes
from planner.planning.case import drawn, make_case
from planner.rates.terms import Draws
from planner.training.policies import find_policy
from planner.units import GIB
from tests.planner.build import case_of, layout, make_question, price, site, unknown_price

DRAWS = Draws(count=20_001, seed=5)


def test_the_draws_of_an_estimate_have_its_percentiles():
    values = np.asarray(drawn(Estimate(low=2.0, mid=2.5, high=4.0), "price", DRAWS))

    assert np.quantile(values, (0.05, 0.5, 0.95)) == pytest.approx([2.0, 2.5, 4.0], rel=0.02)


def test_without_draws_or_without_a_range_the_mid_is_taken():
    assert drawn(Estimate(low=2.0, mid=2.5, high=4.0), "price", None) == 2.5
    assert drawn(Estimate.exactly(3.0), "price", DRAWS) == 3.0
    assert drawn(Estimate(low=0.0, mid=0.0, high=0.1), "grid", DRAWS) == 0.0  # a grid without carbon


def test_an_estimate_that_may_be_nothing_still_has_its_upper_half():
    values = np.asarray(drawn(Estimate(low=0.0, mid=0.1, high=0.3), "grid", DRAWS))

    assert np.quantile(values, 0.95) == pytest.approx(0.3, rel=0.03)
    assert np.all(values > 0)


def test_no_facility_draws_less_than_its_machines():
    case = case_of()
    tight = replace(case, site=site(pue=Estimate(low=1.02, mid=1.1, high=1.3)))

    assert np.min(tight.unit_prices(DRAWS).pue) >= 1


def test_electricity_is_a_line_only_where_the_user_pays_it():
    assert case_of().unit_prices().usd_per_kwh is None
    assert case_of(electricity="0.08").unit_prices().usd_per_kwh == 0.08
    question = make_question()
    unknown = make_case(question, question.policy, question.clusters[0], unknown_price(), site())
    assert unknown.unit_prices().usd_per_gpu_h is None
    assert unknown.unit_prices().usd_per_kwh is None


def test_one_input_of_the_same_name_is_drawn_alike_everywhere():
    first, second = case_of(precision="bf16"), case_of(precision="fp8")

    assert np.array_equal(first.unit_prices(DRAWS).usd_per_gpu_h, second.unit_prices(DRAWS).usd_per_gpu_h)


def test_what_is_evaluated_ahead_is_what_each_layout_gives_alone():
    case, other = case_of(params="1B"), case_of(params="1B")
    layouts = enumerate_layouts(case.recipe, case.cluster, FixedLayout(), gpus=8).take(slice(0, 40, 13))
    case.memory_ahead(layouts.take(slice(0, 3)), DRAWS)
    case.evaluate_ahead(layouts, DRAWS)

    assert len(case.evaluation_cache) == len(case.memory_cache) == len(layouts)
    for i in range(len(layouts)):
        ahead, alone = case.evaluate(layouts.only(i), DRAWS), other.evaluate(layouts.only(i), DRAWS)
        assert ahead is case.evaluation_cache[layouts.at(i), DRAWS]
        assert ahead.wall_s == pytest.approx(alone.wall_s, rel=1e-12)
        assert ahead.cost_usd == pytest.approx(alone.cost_usd, rel=1e-12)
        assert case.memory(layouts.only(i), DRAWS).total == pytest.approx(
            other.memory(layouts.only(i), DRAWS).total, rel=1e-12
        )


def test_scores_are_the_figures_of_the_evaluation():
    case = case_of(params="1B")
    layouts = enumerate_layouts(case.recipe, case.cluster, FixedLayout(), gpus=8)
    scores, evaluation = case.score(layouts, energy=True), case.evaluate(layouts)

    timed = np.isfinite(scores.step_s)
    assert np.array_equal(scores.memory_bytes, evaluation.memory_bytes)
    assert np.array_equal(timed, scores.memory_bytes <= 1.25 * usable_bytes(case.cluster.gpu))
    assert 0 < timed.sum() < len(layouts)
    assert np.array_equal(scores.step_s[timed], evaluation.step_s[timed])
    assert np.array_equal(scores.energy_j[timed], evaluation.energy.total[timed])
    assert np.array_equal(scores.cost_usd[timed], evaluation.cost_usd[timed])
    assert case.score(layouts).energy_j is None
    brief = replace(case, detailed=False).score(layouts)
    assert np.array_equal(np.isfinite(brief.wall_s), case.fits(scores))
    assert np.array_equal(brief.wall_s[case.fits(scores)], scores.wall_s[case.fits(scores)])


def test_one_layout_under_draws_gives_as_many_figures():
    case = case_of(params="1B")
    at = Layouts.of(layout(dp=8, zero=1, grad_accum=case.recipe.global_batch // 8))
    drawn_evaluation = case.evaluate(at, Draws(count=11, seed=0))

    assert (
        np.shape(drawn_evaluation.step_s)
        == np.shape(drawn_evaluation.cost_usd)
        == np.shape(drawn_evaluation.wall_s)
        == (11,)
    )
    assert case.policy.id == "bf16"


def test_what_was_measured_of_a_gpu_still_holds_where_the_recipe_changes_and_not_in_another_precision():
    question = make_question(params="8B")
    (cluster,) = question.clusters
    plain = case_of(params="8B")
    term = replace(plain.rates.terms["context_bytes"], value=10 * GIB, rests_on=())
    known = make_case(question, question.policy, cluster, price(cluster.gpu.id), site(), {"context_bytes": term})
    offloaded = known.trained_as(replace(known.recipe, offload="optimizer"))
    other = known.trained_as(replace(known.recipe, policy=find_policy("fp16")))

    assert float(plain.mid.context_bytes) < 2 * GIB
    assert float(offloaded.mid.context_bytes) == float(known.mid.context_bytes) == 10 * GIB
    assert float(other.mid.context_bytes) < 2 * GIB


def test_layouts_that_were_scored_before_have_the_figures_of_a_search_that_scores_all():
    case, counts = case_of(deadline="30d"), [64, 96, 128, 160]
    case.score_on(FixedLayout(), [96, 128])
    fixed = FixedLayout(tp=8)
    case.score_on(fixed, [64])  # of other layouts on the same number
    layouts, scores = case.score_on(FixedLayout(), counts)
    all_layouts = enumerate_layouts(case.recipe, case.cluster, FixedLayout(), gpus=np.array(counts))
    all_scores = case.score(all_layouts)

    def by_layout(some_layouts, figures):
        return {
            some_layouts.at(i): (figures.wall_s[i], figures.memory_bytes[i], figures.cost_usd[i])
            for i in range(len(some_layouts))
        }

    assert len(layouts) == len(all_layouts) > 0
    assert by_layout(layouts, scores) == by_layout(all_layouts, all_scores)
    rescored, _ = case.score_on(FixedLayout(), counts)
    assert len(rescored) == len(all_layouts)
    assert set(case.score_on(fixed, [64])[0].tp.tolist()) == {8}
    assert case.score_on(FixedLayout(), [])[1].wall_s.shape == (0,)

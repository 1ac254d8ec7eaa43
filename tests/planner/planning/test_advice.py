"""Better plans close by: on somewhat fewer GPUs than were given, and at a higher risk than is allowed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.errors import Message
from planner.parallelism.search import FixedLayout
from planner.planning.advice import RISKY_SOONER, faster_at_a_risk, rounder_below, warnings_of
from planner.planning.case import Case, make_case
from planner.planning.choice import best_on, risk_of
from planner.planning.ranges import ranged_plan
from planner.planning.targets import NO_TARGETS, digits_apart
from planner.rates.terms import Draws
from reports.text.messages import word
from tests.planner.build import price, question, site

DRAWS = Draws(count=101, seed=0)


def case(**asked: str) -> Case:
    one = question(**asked)
    return make_case(one, one.asked, one.clusters[0], price(one.clusters[0].gpu.id), site())


@pytest.mark.parametrize(("gpus", "expected"), [(752, [640, 704, 736]), (96, []), (8, []), (4, [])])
def test_rounder_numbers_of_nodes_below_the_one_given_are_looked_at(gpus, expected):
    one, fixed = case(params="8B", gpus=str(gpus)), FixedLayout()
    plan = ranged_plan(one, best_on(one, fixed, gpus), DRAWS).plan

    points = rounder_below(one, fixed, plan, NO_TARGETS, DRAWS)

    # 94 nodes: 92, 88 and 80, each with more factors of two; 12 nodes: 8 are too few
    assert [point.gpus for point in points] == expected


def test_a_much_faster_layout_at_a_somewhat_higher_risk_is_named_with_the_flag_that_plans_it():
    one = case(model="bloom-176b", gpus="64", tokens="100B")
    choice = best_on(one, FixedLayout(), 64)
    found = faster_at_a_risk(one, choice)
    assert found is not None
    values = dict(found.values)

    assert one.memory_risk < values["risk"] <= 0.15
    just_above = Message.of(found.key, **(values | {"risk": 0.0504, "digits": digits_apart(0.0504, 0.05)}))
    assert "probability of 5.04%, above the 5.00% allowed" in word(just_above)
    assert values["digits"] == digits_apart(values["risk"], one.memory_risk)
    allowed = float(values["flag"].rstrip("%")) / 100
    bolder = best_on(replace(one, memory_risk=allowed), FixedLayout(), 64)
    pace_s = [float(np.min(c.scores.wall_s[c.best])) for c in (choice, bolder)]
    assert pace_s[1] * RISKY_SOONER <= pace_s[0]
    assert pace_s[1] == pytest.approx(pace_s[0] * (1 - values["sooner"]), rel=0.1)


@pytest.mark.parametrize(
    ("risk", "said"),
    [(0.12, "above 5%; the one planned does with 12%"), (0.0546, "above 5.0%; the one planned does with 5.5%")],
)
def test_a_risk_just_above_the_one_allowed_does_not_read_like_it(risk, said):
    asked, one = question(params="8B", gpus="8"), case(params="8B", gpus="8")
    plan = replace(ranged_plan(one, best_on(one, FixedLayout(), 8), DRAWS).plan, memory_risk=risk)

    told = [word(row) for row in warnings_of(asked, {plan.gpu: price()}, (plan,), (), (one,))]

    assert [said in text for text in told if "out of memory" in text] == [True]


def test_where_memory_is_no_limit_nothing_is_said_of_risk():
    one = case(params="1B", gpus="8")
    choice = best_on(one, FixedLayout(), 8)

    assert risk_of(one, choice.winner) <= one.memory_risk
    assert faster_at_a_risk(one, choice) is None

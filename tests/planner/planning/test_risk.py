"""The risk of running out of memory: what a few draws settle is not drawn again, and agrees with what many say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.planning.case import Case
from planner.planning.risk import CHOICE_DRAWS, RISK_DRAWS, Risks, drawn_bytes, risk_of
from tests.planner.build import case_of


@pytest.fixture(scope="module")
def case() -> Case:
    return case_of(params="8B", gpus="8")


@pytest.fixture(scope="module")
def risks(case: Case) -> Risks:
    """Layouts of 8B on 8 GPUs, from those that need little memory to those that need too much."""
    layouts = enumerate_layouts(case.recipe, case.cluster, FixedLayout(), gpus=8)
    scores = case.score(layouts)
    by_need = np.argsort(scores.memory_bytes)
    risks = Risks(case, layouts.take(by_need[:: len(by_need) // 24]))
    risks.draw(range(len(risks.layouts)))
    return risks


def test_what_is_safe_by_few_draws_is_safe_by_many(risks: Risks) -> None:
    by_many = [risk_of(risks.case, risks.layouts.only(i)) <= risks.allowed for i in range(len(risks.layouts))]

    assert [risks.is_safe(i) for i in range(len(risks.layouts))] == by_many
    assert {True, False} == set(by_many)


def test_what_may_not_be_safe_is_not_and_is_listed(risks: Risks) -> None:
    unlikely = {i for i in range(len(risks.layouts)) if not risks.is_likely_safe(i)}

    assert unlikely
    assert unlikely <= set(risks.unsafe)
    assert not any(risks.is_safe(i) for i in risks.unsafe)


def test_each_layout_is_drawn_once(risks: Risks) -> None:
    before = dict(risks.peak_bytes)
    risks.draw([0, 1, 1])

    assert all(risks.peak_bytes[i] is before[i] for i in before)
    assert len(risks.peak_bytes) == len(before)


def test_one_pass_over_draws_gives_each_layout_its_own(risks: Risks, case: Case) -> None:
    first_three = risks.layouts.take(slice(0, 3))
    together = drawn_bytes(case, first_three)

    assert together.shape == (3, CHOICE_DRAWS.count)
    for i in range(3):
        alone = np.broadcast_to(case.memory(first_three.only(i), CHOICE_DRAWS).total, CHOICE_DRAWS.count)
        assert together[i] == pytest.approx(alone, rel=1e-12)
    assert drawn_bytes(case, risks.layouts.take(slice(0, 0))).shape == (0, CHOICE_DRAWS.count)


def test_a_question_that_allows_more_has_a_bound(risks: Risks, case: Case) -> None:
    bold = Risks(replace(case, memory_risk=0.9), risks.layouts)

    assert bold.allowed == 0.5
    assert RISK_DRAWS.count > CHOICE_DRAWS.count

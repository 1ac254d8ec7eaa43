from __future__ import annotations

import pytest

from planner.errors import InputFileError
from reports.page.build import build, checked
from tests.reports import sample


@pytest.mark.parametrize(
    "value", [None, [], "text", {}, {"schema": "mpplan.estimate/1"}, {"schema": "mpplan.verify/1"}]
)
def test_what_is_no_estimate_is_refused(value):
    with pytest.raises(InputFileError, match=r"schema: expected `mpplan\.estimate/2`"):
        checked(value)


@pytest.mark.parametrize("key", ["question", "model", "plans", "savings", "assumptions", "gaps", "evidence"])
def test_a_missing_part_is_named(key):
    document = sample.document()
    del document[key]

    with pytest.raises(InputFileError, match=f"plan.json: {key}: missing"):
        checked(document, "plan.json")


def test_a_missing_key_of_a_plan_is_named_with_its_place():
    document = sample.document()
    del document["plans"][2]["cost_usd"]

    with pytest.raises(InputFileError, match=r"plans\[2\]: cost_usd: missing"):
        checked(document)


def test_a_plan_that_fits_must_have_figures():
    document = sample.document()
    document["plans"][0]["gpu_hours"] = None

    with pytest.raises(InputFileError, match=r"plans\[0\]: fits, but has no figures"):
        checked(document)


def test_an_answer_without_plans_is_refused():
    with pytest.raises(InputFileError, match="plans: expected at least one plan"):
        checked(sample.document() | {"plans": []})


def test_keys_that_came_later_are_filled_in():
    document = sample.document()
    for plan in document["plans"] + document["same_deadline"]:
        for key in ("hfu", "uncertainty", "lost_layouts", "carbon_market_tco2e"):
            del plan[key]

    assert build(document).hero.tiles


def test_the_title_is_the_model_unless_one_is_given():
    assert build(sample.document()).title == "Training plan: 70B"
    assert build(sample.document(), title="Aurora\u202e\n").title == "Aurora"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_real_question_becomes_a_view(ask, lang):
    from tests.reports.conftest import QUESTIONS

    for name in QUESTIONS:
        assert build(ask(name), lang=lang).sections

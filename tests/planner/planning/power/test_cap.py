"""A cap on the facility's power: the plan under it, what it does, and when it is refused."""

from __future__ import annotations

import re
from functools import cache

import pytest

from planner.errors import NoPlanError
from planner.planning.estimate import estimate
from reports.text.messages import word
from tests.planner.build import make_question, parts, rates_and_prices


@cache
def answer_of(*, detailed=False, **asked):
    """Each question is answered once, without the view by one deadline unless it is asked for: answers are frozen."""
    question = make_question(**asked)
    return estimate(question, rates_and_prices(question), created_at="2026-11-20T00:00:00+00:00", detailed=detailed)


def plan_of(answer, precision="bf16", view="plans"):
    return next(plan for plan in getattr(answer, view) if plan.precision == precision)


def test_without_a_target_of_ones_own_the_fastest_plan_under_the_cap_is_taken():
    free, capped = answer_of(params="70B"), answer_of(params="70B", power_cap="300kW")
    (effect,) = capped.power_caps

    assert effect.binding
    assert plan_of(capped).gpus <= effect.gpus_allowed < plan_of(free).gpus == effect.gpus_wanted
    assert plan_of(capped).peak_power_mw <= 0.3
    assert plan_of(capped).duration_days.mid > plan_of(free).duration_days.mid == pytest.approx(effect.days_wanted)


def test_what_a_binding_cap_does_is_said_and_the_default_deadline_is_not():
    answer = answer_of(params="70B", power_cap="300kW")

    (warning,) = [parts(row) for row in answer.warnings if row.key == "warning.cap"]
    assert warning["cap_mw"] == pytest.approx(0.3)
    assert warning["gpus"] <= warning["gpus_allowed"] < warning["gpus_wanted"]
    assert "deadline" not in answer.question
    assert answer.question["gpus"].note.key == "note.fastest_under_cap"
    assert all(assumption.id != "deadline" for assumption in answer.assumptions)


def test_the_mean_power_of_a_plan_stays_under_its_cap_at_its_high_end():
    for plan in answer_of(params="70B", power_cap="1MW").plans:
        assert plan.mean_power_mw.high <= plan.peak_power_mw <= 1.0


def test_a_cap_that_nothing_reaches_changes_nothing():
    free, wide = answer_of(params="7B"), answer_of(params="7B", power_cap="50MW")

    assert wide.plans == free.plans
    assert [effect.binding for effect in wide.power_caps] == [False]
    assert free.power_caps == ()


def test_a_precision_that_needs_more_gpus_by_the_deadline_than_the_cap_allows_says_so():
    answer = answer_of(params="70B", power_cap="300kW", precision="fp8", detailed=True)
    slow = plan_of(answer, "fp32", "same_deadline")

    assert not slow.fits
    assert parts(slow.why_not)["key"] == "why.over_cap"
    assert parts(slow.why_not)["cap_mw"] == pytest.approx(0.3)


def test_a_deadline_of_ones_own_is_not_given_up():
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="70B", deadline="30d", power_cap="300kW")

    more, hint = parts(caught.value.message), parts(caught.value.hint)
    assert (more["key"], parts(more["over"])["cap_mw"]) == ("error.more_power", pytest.approx(0.3))
    assert hint["deadline_days"] > 30
    assert hint["wider"].key == "hint.wider_cap"


def test_the_cap_of_the_hint_is_enough():
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="70B", gpus="512", power_cap="300kW")
    enough = f"{parts(parts(caught.value.hint)['wider'])['cap_kw']}kW"

    assert plan_of(answer_of(params="70B", gpus="512", power_cap=enough)).gpus == 512


def test_gpus_beyond_the_cap_are_refused_with_how_many_there_may_be():
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="70B", gpus="512", power_cap="300kW")

    assert parts(caught.value.message)["gpus"] == 512
    assert parts(caught.value.hint)["key"] == "hint.fewer_gpus"
    assert parts(caught.value.hint)["gpus"] == 192  # 1.56 kW each at the high end of hosts, switches and PUE


def test_a_cap_below_one_server_is_refused():
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="7B", power_cap="5kW")

    assert caught.value.message.key == "error.cap_below_server"


def test_a_model_that_fits_on_nothing_under_the_cap_is_refused():
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="405B", tokens="100B", power_cap="13kW")

    assert parts(caught.value.message)["key"] == "error.fits_not_under_cap"
    assert parts(caught.value.message)["gpus"] == 8


def test_a_lower_limit_per_gpu_lets_more_of_them_under_the_cap():
    at_tdp, lower = (answer_of(params="70B", power_cap="300kW", **more) for more in ({}, {"power_limit": "400"}))

    assert lower.power_caps[0].gpus_allowed > at_tdp.power_caps[0].gpus_allowed


def test_each_of_several_gpus_has_its_own_number_under_the_cap():
    answer = answer_of(params="70B", gpu="h100-sxm5-80gb,b200-sxm-180gb", power_cap="300kW")
    allowed = {effect.gpu: effect.gpus_allowed for effect in answer.power_caps}

    assert allowed["b200-sxm-180gb"] < allowed["h100-sxm5-80gb"]
    assert all(plan.gpus <= allowed[plan.gpu] for plan in answer.plans)


def test_the_deadline_of_the_hint_is_met_under_the_cap_and_not_much_later_than_need_be():
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="70B", deadline="30d", power_cap="300kW")
    offered = re.search(r"--deadline ([0-9.]+)d", word(caught.value.hint or ""))
    assert offered is not None

    later = {"deadline": f"{offered[1]}d"}
    fastest, plan = (plan_of(answer_of(params="70B", power_cap="300kW", **more)) for more in ({}, later))
    assert plan.peak_power_mw <= 0.3
    assert plan.probability.deadline >= 0.8
    assert fastest.duration_days.mid < float(offered[1]) < fastest.duration_days.high  # met at 80 %, not at mid


def test_a_power_limit_is_a_way_only_where_one_that_can_be_set_is_low_enough():
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="8B", gpus="128", power_cap="110kW")
    hint = parts(caught.value.hint)

    assert hint["key"] == "hint.fewer_gpus_or_limit"
    limit_w = int(hint["limit_w"])
    assert plan_of(answer_of(params="8B", gpus="128", power_cap="110kW", power_limit=str(limit_w))).gpus == 128
    with pytest.raises(NoPlanError):
        answer_of(params="8B", gpus="128", power_cap="110kW", power_limit=str(limit_w + 10))
    with pytest.raises(NoPlanError) as caught:  # the lowest that an H100 takes is 200 W
        answer_of(params="8B", gpus="128", power_cap="100kW")
    assert parts(caught.value.hint)["key"] == "hint.fewer_gpus"


def test_where_not_even_a_server_fits_the_limit_that_would_do_is_named():
    hints = []
    for cap in ("8kW", "5kW"):
        with pytest.raises(NoPlanError) as caught:
            answer_of(params="8B", power_cap=cap)
        hints.append(parts(caught.value.hint))

    assert [hint["key"] for hint in hints] == ["hint.raise_cap_or_limit", "hint.raise_cap"]
    assert plan_of(answer_of(params="8B", power_cap="8kW", power_limit=str(hints[0]["limit_w"]))).gpus == 8


def test_gpus_given_are_held_against_the_cap_themselves_and_not_by_whole_servers():
    assert plan_of(answer_of(params="7B", tokens="20B", gpus="4", power_cap="7kW")).gpus == 4
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="7B", tokens="20B", gpus="16", power_cap="12kW")  # 200 W each are still too much
    assert parts(caught.value.message)["gpus"] == 16
    assert parts(caught.value.hint)["key"] == "hint.allow"
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="7B", tokens="20B", gpus="8", power_cap="9kW")
    hint = parts(caught.value.hint)
    assert hint["key"] == "hint.allow_or_limit"
    limited = answer_of(params="7B", tokens="20B", gpus="8", power_cap="9kW", power_limit=str(hint["limit_w"]))
    assert plan_of(limited).gpus == 8


@pytest.mark.parametrize("targets", [{"deadline": "1h"}, {"deadline": "6h", "gpus": "64"}])
def test_a_deadline_missed_under_the_cap_is_put_off_to_one_that_is_met_under_it(targets):
    asked = targets | {"params": "7B", "tokens": "20B", "power_cap": "100kW"}
    with pytest.raises(NoPlanError) as caught:
        answer_of(**asked)
    offered = re.search(r"--deadline ([0-9.]+h)", word(caught.value.hint or ""))
    assert offered is not None

    assert plan_of(answer_of(**asked | {"deadline": offered[1]})).peak_power_mw <= 0.1
    assert "--gpus" not in word(caught.value.hint)


@pytest.mark.parametrize("target", [{"gpus": "8"}, {"budget": "3000"}])
def test_a_run_that_needs_more_gpus_than_the_cap_leaves_names_a_cap_that_holds_them(target):
    with pytest.raises(NoPlanError) as caught:
        answer_of(params="405B", tokens="1B", power_cap="100kW", **target)
    offered = re.search(r"--gpus ([0-9]+) --power-cap ([0-9]+kW)", word(caught.value.hint or ""))
    assert offered is not None

    assert plan_of(answer_of(params="405B", tokens="1B", gpus=offered[1], power_cap=offered[2])).fits

"""A cap on the facility's power: the plan under it, what it does, and when it is refused."""

from __future__ import annotations

import re

import pytest

from planner.errors import NoPlanError
from planner.planning.estimate import estimate
from tests.planner.build import prices, question, site


def answer(**asked):
    one = question(**asked)
    return estimate(one, prices(one), site(), created_at="2026-11-20T00:00:00+00:00")


def of(found, precision="bf16", view="plans"):
    return next(plan for plan in getattr(found, view) if plan.precision == precision)


def test_without_a_target_of_ones_own_the_fastest_plan_under_the_cap_is_taken():
    free, capped = answer(params="70B"), answer(params="70B", power_cap="300kW")
    (effect,) = capped.power_caps

    assert effect.binding
    assert of(capped).gpus <= effect.gpus_allowed < of(free).gpus == effect.gpus_wanted
    assert of(capped).peak_power_mw <= 0.3
    assert of(capped).duration_days.mid > of(free).duration_days.mid == pytest.approx(effect.days_wanted)


def test_what_a_binding_cap_does_is_said_and_the_default_deadline_is_not():
    found = answer(params="70B", power_cap="300kW")

    assert any("a cap of 0.3 MW at the peak allows" in text and "in place of" in text for text in found.warnings)
    assert "deadline" not in found.question
    assert "power cap" in found.question["gpus"].note
    assert all(one.id != "deadline" for one in found.assumptions)


def test_a_cap_that_nothing_reaches_changes_nothing():
    free, wide = answer(params="7B"), answer(params="7B", power_cap="50MW")

    assert wide.plans == free.plans
    assert [effect.binding for effect in wide.power_caps] == [False]
    assert free.power_caps == ()


def test_a_precision_that_needs_more_gpus_by_the_deadline_than_the_cap_allows_says_so():
    found = answer(params="70B", power_cap="300kW", precision="fp8")
    slow = of(found, "fp32", "same_deadline")

    assert not slow.fits
    assert "more than the cap of 0.3 MW" in slow.why_not


def test_a_deadline_of_ones_own_is_not_given_up():
    with pytest.raises(NoPlanError, match=r"needs more power than there is: .* more than the cap of 0\.3 MW") as caught:
        answer(params="70B", deadline="30d", power_cap="300kW")

    assert "--deadline" in caught.value.hint
    assert "--power-cap" in caught.value.hint


def test_the_cap_of_the_hint_is_enough():
    with pytest.raises(NoPlanError) as caught:
        answer(params="70B", gpus="512", power_cap="300kW")
    enough = caught.value.hint.split("--power-cap ")[1].split("`")[0]

    assert of(answer(params="70B", gpus="512", power_cap=enough)).gpus == 512


def test_gpus_beyond_the_cap_are_refused_with_how_many_there_may_be():
    with pytest.raises(NoPlanError) as caught:
        answer(params="70B", gpus="512", power_cap="300kW")

    assert caught.value.message.startswith("512 x h100-sxm5-80gb take ")
    assert "at most --gpus 2" in caught.value.hint


def test_a_cap_below_one_server_is_refused():
    with pytest.raises(NoPlanError, match="one server takes"):
        answer(params="7B", power_cap="5kW")


def test_a_model_that_fits_on_nothing_under_the_cap_is_refused():
    with pytest.raises(NoPlanError, match="fits on none of the up to 8 x"):
        answer(params="405B", tokens="100B", power_cap="11kW")


def test_a_lower_limit_per_gpu_lets_more_of_them_under_the_cap():
    at_tdp, lower = (answer(params="70B", power_cap="300kW", **more) for more in ({}, {"power_limit": "400"}))

    assert lower.power_caps[0].gpus_allowed > at_tdp.power_caps[0].gpus_allowed


def test_each_of_several_gpus_has_its_own_number_under_the_cap():
    found = answer(params="70B", gpu="h100-sxm5-80gb,b200-sxm-180gb", power_cap="300kW")
    allowed = {effect.gpu: effect.gpus_allowed for effect in found.power_caps}

    assert allowed["b200-sxm-180gb"] < allowed["h100-sxm5-80gb"]
    assert all(plan.gpus <= allowed[plan.gpu] for plan in found.plans)


def test_the_deadline_of_the_hint_is_met_under_the_cap_and_not_much_later_than_need_be():
    with pytest.raises(NoPlanError) as caught:
        answer(params="70B", deadline="30d", power_cap="300kW")
    offered = re.search(r"--deadline ([0-9.]+)d", caught.value.hint or "")
    assert offered is not None

    later = {"deadline": f"{offered[1]}d"}
    fastest, plan = (of(answer(params="70B", power_cap="300kW", **more)) for more in ({}, later))
    assert plan.peak_power_mw <= 0.3
    assert plan.duration_days.mid <= float(offered[1]) <= 1.03 * fastest.duration_days.mid

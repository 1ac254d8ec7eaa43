"""Limits: the high figure of the asked precision decides, and the message says which one and by which figure."""

from __future__ import annotations

import pytest

from mpplan.api.answer import estimate
from mpplan.ui.limits import Limits, check_limits, read_limits
from planner.errors import LimitError, UsageError


@pytest.fixture(scope="module")
def answer():
    return estimate(params="7B", gpus=8, precision="fp8", price=2)


def plan_of(answer, precision):
    return next(plan for plan in answer.plans if plan.precision == precision)


def limits(**given: float) -> Limits:
    return Limits(**({"cost_usd": None, "duration_days": None, "energy_mwh": None} | given))


def test_flags_are_read_as_people_write_numbers():
    assert read_limits(cost="$2M", days="30", energy=None) == limits(cost_usd=2e6, duration_days=30.0)


@pytest.mark.parametrize("flag", ["cost", "days", "energy"])
def test_a_limit_that_is_no_number_names_its_flag(flag):
    given = {"cost": None, "days": None, "energy": None} | {flag: "much"}

    with pytest.raises(UsageError, match=f"--max-{flag}"):
        read_limits(**given)


def test_the_high_figure_decides(answer):
    cost = plan_of(answer, "fp8").cost_usd

    check_limits(limits(cost_usd=cost.high), answer)
    with pytest.raises(LimitError, match="high cost of fp8 on 8 h100-sxm5-80gb"):
        check_limits(limits(cost_usd=(cost.mid + cost.high) / 2), answer)


def test_other_precisions_may_cross_it(answer):
    assert plan_of(answer, "fp32").duration_days.high > plan_of(answer, "fp8").duration_days.high

    check_limits(limits(duration_days=plan_of(answer, "fp8").duration_days.high), answer)


def test_every_crossed_limit_is_named(answer):
    with pytest.raises(LimitError) as caught:
        check_limits(limits(cost_usd=1.0, duration_days=0.1, energy_mwh=0.1), answer)

    assert [flag for flag in ("--max-cost", "--max-days", "--max-energy") if flag not in caught.value.message] == []
    assert caught.value.exit_code == 7

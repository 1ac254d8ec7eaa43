"""Limits: the high figure of the asked precision decides, and the message says which one and by which figure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpplan.api.answer import estimate_briefly
from mpplan.ui.limits import Limits, check_limits, read_limits, unchecked
from planner.errors import LimitError, UsageError
from planner.evidence import Estimate


@pytest.fixture(scope="module")
def answer():
    return estimate_briefly(params="7B", gpus=8, precision="fp8", price=2)


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


@pytest.mark.parametrize(("flag", "unit"), [("days", "in days"), ("energy", "in MWh")])
def test_the_hint_names_the_unit_of_the_limit(flag, unit):
    with pytest.raises(UsageError) as caught:
        read_limits(**{"cost": None, "days": None, "energy": None} | {flag: "500kWh"})

    assert str(caught.value.hint).endswith(unit)


def test_the_high_figure_decides(answer):
    cost = plan_of(answer, "fp8").cost_usd

    check_limits(limits(cost_usd=cost.high), answer)
    with pytest.raises(LimitError, match="the high figure of the cost of FP8 on 8 × h100-sxm5-80gb"):
        check_limits(limits(cost_usd=(cost.mid + cost.high) / 2), answer)


def test_every_limit_that_is_crossed_is_told_alike(answer):
    with pytest.raises(LimitError) as told:
        check_limits(limits(duration_days=1.0, energy_mwh=1.0), answer)

    parts = str(told.value.message).split("; ")
    assert [part.partition(" of FP8 on 8 × h100-sxm5-80gb, ")[0] for part in parts] == [
        "the high figure of the duration", "the high figure of the energy",
    ]  # fmt: skip


def test_other_precisions_may_cross_it(answer):
    assert plan_of(answer, "fp32").duration_days.high > plan_of(answer, "fp8").duration_days.high

    check_limits(limits(duration_days=plan_of(answer, "fp8").duration_days.high), answer)


def test_every_crossed_limit_is_named(answer):
    with pytest.raises(LimitError) as caught:
        check_limits(limits(cost_usd=1.0, duration_days=0.1, energy_mwh=0.1), answer)

    assert [flag for flag in ("--max-cost", "--max-days", "--max-energy") if flag not in caught.value.message] == []
    assert caught.value.exit_code == 7


@pytest.mark.parametrize(
    ("cost", "doubt"),
    [
        (Estimate(low=1.0, mid=2.0, high=3.0), None),
        (Estimate(low=1.0, mid=2.0, high=3.0, at_least=True), "checked against only part of the cost"),
        (None, "was not checked"),
    ],
    ids=["known", "a lower bound", "unknown"],
)
def test_a_limit_on_a_cost_that_is_not_known_in_full_is_said_to_be_unchecked(answer, cost, doubt):
    plans = tuple(replace(plan, cost_usd=cost) for plan in answer.plans)
    warnings = unchecked(limits(cost_usd=10.0), replace(answer, plans=plans))

    assert warnings == [] if doubt is None else doubt in warnings[0]


def test_a_limit_on_the_energy_of_a_device_of_unknown_power_is_said_to_be_unchecked(answer):
    dark = replace(answer, plans=tuple(replace(plan, energy_mwh=None) for plan in answer.plans))

    assert unchecked(limits(energy_mwh=10.0), answer) == []
    assert unchecked(limits(duration_days=10.0), dark) == []
    assert unchecked(limits(energy_mwh=10.0), dark) == [
        "--max-energy was not checked: no power figures are known for h100-sxm5-80gb"
    ]


def test_a_limit_in_millions_is_written_in_figures(answer):
    plan = plan_of(answer, "fp8")
    dear = replace(plan, cost_usd=Estimate(low=1e6, mid=2e6, high=3e6))

    assert limits(cost_usd=1e6).crossed([dear]) == [
        "the high figure of the cost of FP8 on 8 × h100-sxm5-80gb, 3,000,000 USD, is above --max-cost 1,000,000"
    ]

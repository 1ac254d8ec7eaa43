"""A resolved question, priced and planned."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mpplan.api.answer import estimate, estimate_briefly
from mpplan.api.planned import planned
from planner.answer.plan import Answer, Plan
from planner.errors import NoPlanError, UsageError
from planner.question.asked import Ask
from planner.question.resolve import resolve
from tests.examples import examples
from tests.mpplan.questions import Question, questions

SHORT = {"params": "1B", "gpus": "8", "tokens": "2B", "as_of": "2026-11-20"}
"""A run of a few hours, which may lie in the night or not."""
TARIFF = (
    'name = "nights"\n[[period]]\nfrom = 20\nto = 8\nusd_per_kwh = 0.05\n'
    "[[period]]\nfrom = 8\nto = 20\nusd_per_kwh = 0.5\n"
)


def test_the_same_question_is_planned_the_same_by_command_and_api():
    answer = planned(resolve(Ask(texts=SHORT)), command=("mpplan", "estimate"))

    assert answer.plans == estimate(**SHORT).plans
    assert answer.command == ("mpplan", "estimate")


def test_under_a_tariff_a_short_run_pays_by_the_hour_of_its_start(tmp_path):
    file = tmp_path / "tariff.toml"
    file.write_text(TARIFF, encoding="utf-8")
    flat = planned(resolve(Ask(texts=SHORT | {"electricity": "0.275", "price": "2"})))
    by_hour = planned(resolve(Ask(texts=SHORT | {"tariff": str(file), "price": "2"})))

    def power(answer):
        plan = next(plan for plan in answer.plans if plan.precision == "bf16")
        return next(line for line in plan.cost_lines if line.id == "electricity")

    assert power(flat).unit_price_usd.high == power(flat).unit_price_usd.low == 0.275
    assert power(by_hour).unit_price_usd.low < 0.275 < power(by_hour).unit_price_usd.high
    assert any("by its starting hour" in row.what for row in by_hour.evidence)


def test_python_switches_embodied_carbon_on_with_true():
    fitting = [plan for plan in estimate(**SHORT, embodied=True).plans if plan.fits]

    assert fitting
    assert all(plan.embodied_tco2e is not None for plan in fitting)
    assert all(plan.embodied_tco2e is None for plan in estimate(**SHORT, embodied=False).plans)


NO_TARGETS = ("deadline", "budget", "max_gpus")
CLOSE_RATIO = 0.05
"""How far two searches may be apart: each takes a simpler layout for 2 % of the time, and one that also chooses the
batch tries fewer micro-batches."""


def answered(question: Question) -> tuple[Answer, Plan]:
    """The answer and its plan in the precision asked for; a question without them is not counted as an example."""
    try:
        answer = estimate_briefly(**question)
    except (UsageError, NoPlanError):
        assume(False)
    precision = answer.question["precision"].value
    plan = next((plan for plan in answer.plans if plan.precision == precision and plan.fits), None)
    assume(plan is not None)
    return answer, plan


def assert_same(plan: Plan, other: Plan):
    """Both have the same layout and figures, but for the order of sums."""
    assert (other.gpus, other.layout) == (plan.gpus, plan.layout)
    assert other.memory_risk == pytest.approx(plan.memory_risk)
    assert other.memory_gib == pytest.approx(plan.memory_gib)
    for name in ("duration_days", "cost_usd", "energy_mwh", "memory_range_gib"):
        figure, again = getattr(plan, name), getattr(other, name)
        assert (again.low, again.mid, again.high) == pytest.approx((figure.low, figure.mid, figure.high)), name


@examples(9)
@given(questions())
def test_a_plan_meets_its_targets_and_is_the_same_where_its_layout_is_asked_for(question):
    answer, plan = answered(question)
    layout = plan.layout
    asked = {name: value for name, value in question.items() if name not in NO_TARGETS}
    asked |= {"gpus": plan.gpus, "gpus_per_node": answer.question["gpus_per_node"].value}
    asked |= {"global_batch": layout.global_batch, "micro_batch": layout.micro_batch}
    if answer.model.kind != "image":
        names = ("tp", "pp", "cp", "zero", "act_ckpt", *(["vp"] if layout.pp > 1 else []))
        asked |= {name: getattr(layout, name) for name in (*names, *(["ep"] if answer.model.experts else []))}

    for target in {"deadline", "budget"} & set(question):
        assert getattr(plan.probability, target) >= answer.confidence
    assert_same(plan, answered(asked)[1])


SPELLED_OUT = (
    "method", "seq_len", "precision", "optimizer", "confidence", "memory_risk", "commitment", "seed", "offload",
    "grad_compression", "gpus_per_node", "embodied",
)  # fmt: skip


@examples(9)
@given(questions())
def test_defaults_change_nothing_where_they_are_spelled_out(question):
    answer, plan = answered(question)
    inputs = {name: answer.question[name] for name in SPELLED_OUT if name in answer.question}
    spelled = {name: str(given.value) for name, given in inputs.items() if given.source in ("default", "catalogue")}

    assert_same(plan, answered(question | spelled)[1])


@examples(9)
@given(questions(), st.randoms(use_true_random=False))
def test_a_point_of_the_curve_is_what_its_gpus_and_batch_are_planned_with(question, random):
    answer, _ = answered(question)
    others = [point for point in answer.curve if not point.chosen]
    assume(others)
    point = random.choice(others)
    asked = {name: value for name, value in question.items() if name not in NO_TARGETS}
    _, plan = answered(asked | {"gpus": point.gpus, "global_batch": point.global_batch})

    assert plan.duration_days.mid == pytest.approx(point.duration_days.mid, rel=CLOSE_RATIO)


OPTION = re.compile(r"--([a-z-]+) (\d[\w.%]*)")


def options(hint: str) -> list[Question]:
    """The flags that a hint names with a number, those of one option together."""
    quoted = re.findall(r"`([^`]+)`", hint) + re.findall(r"or --deadline \d[\w.]*", hint)
    flags = [{name.replace("-", "_"): value for name, value in OPTION.findall(option)} for option in quoted]
    able = [option for option in flags if option]
    return [option | able[-1] for option in able[:-1]] if "that also needs" in hint else able


SHORT_OF_MEMORY = {
    "error.no_plan_on", "error.fits_nowhere", "error.fits_not_within", "error.likely_fits_nowhere",
    "error.likely_fits_not_within", "error.fits_not_under_cap",
}  # fmt: skip


SHORT_OF_POWER = {"why.over_cap", "error.cap_below_server"}


def refusal_of(question: Question) -> NoPlanError | None:
    """Why a question has no plan; None if it has one."""
    try:
        estimate_briefly(**question)
    except NoPlanError as refusal:
        return refusal
    return None


@examples(12)
@given(questions(hard=True))
def test_what_a_refusal_proposes_is_accepted(question):
    assert_proposals_accepted(question)


@examples(12)
@given(questions(hard=True), st.sampled_from(("7kW", "25kW", "100kW", "400kW")))
def test_what_a_refusal_under_a_power_cap_proposes_is_accepted(question, cap):
    assert_proposals_accepted(question | {"power_cap": cap})


def assert_proposals_accepted(question: Question):
    """What fits, or stays under the cap, may still miss a target."""
    try:
        refusal = refusal_of(question)
    except UsageError:  # of no use here, and rare
        return
    for option in [] if refusal is None else options(str(refusal.hint)):
        further = refusal_of(question | option)
        short = next((keys for keys in (SHORT_OF_MEMORY, SHORT_OF_POWER) if refusal.key in keys), None)
        accepted = further is None or (short is not None and further.key not in short)
        assert accepted, (refusal.key, option, None if further is None else further.key)

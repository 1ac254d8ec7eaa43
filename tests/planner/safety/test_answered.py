"""An answer with parity, what is drawn and what is assumed."""

from __future__ import annotations

from dataclasses import replace

from planner.safety.answered import with_safety
from planner.safety.document import findings_of, shown_of
from tests.planner.safety.recorded import document
from tests.reports import sample

FINDINGS, SHOWN = findings_of(document(), "numerics.json"), shown_of(document(), "numerics.json")


def test_every_plan_has_its_parity_in_the_order_of_the_plans():
    answer = with_safety(sample.answer(), FINDINGS, SHOWN)

    assert [(row.gpu, row.precision) for row in answer.parity] == [(plan.gpu, plan.precision) for plan in answer.plans]
    assert answer.numerics is not None
    assert answer.numerics.task == "char-lm"


def test_skipped_steps_are_an_assumption_only_where_a_plan_takes_them():
    plain = sample.answer()
    plans = tuple(replace(p, skipped_step_ratio=0.0005 if p.precision == "fp16" else None) for p in plain.plans)

    (stated,) = [
        row for row in with_safety(replace(plain, plans=plans), FINDINGS).assumptions if row.id == "skipped_steps"
    ]
    assert dict(stated.message.values) | {} == {
        "precision": "FP16", "ratio": FINDINGS_RATIO, "task": "char-lm", "device": "AMD EPYC"
    }  # fmt: skip
    assert with_safety(plain, FINDINGS).assumptions == plain.assumptions


def test_an_emulated_run_is_named_as_such():
    emulated = [replace(row, figures=replace(row.figures, emulated=True)) for row in FINDINGS]
    plain = sample.answer()
    plans = tuple(replace(p, skipped_step_ratio=0.0005 if p.precision == "fp16" else None) for p in plain.plans)
    told = with_safety(replace(plain, plans=plans), emulated).assumptions[-1]

    assert told.message.key == "assumption.skipped_steps_emulated"


FINDINGS_RATIO = next(
    row.figures.steady_skipped_step_ratio for row in FINDINGS if row.figures.instrument == "loss-scaling"
)

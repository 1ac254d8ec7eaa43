"""An answer with parity, what is drawn and what is assumed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.measured.training import PrecisionFinding
from planner.safety.answered import with_safety
from planner.safety.document import findings_of, tasks_shown
from tests.planner.safety.recorded import document
from tests.reports import sample

FINDINGS, SHOWN = findings_of(document(), "numerics.json"), tasks_shown(document(), "numerics.json")


def test_every_plan_has_its_parity_in_the_order_of_the_plans():
    answer = with_safety(sample.answer(), FINDINGS, "typical", SHOWN)

    assert [(row.gpu, row.precision) for row in answer.parity] == [(plan.gpu, plan.precision) for plan in answer.plans]
    named = next(row.measured for row in answer.parity if row.precision == "fp8")
    assert named is not None
    assert answer.numerics is not None
    assert answer.numerics.task == named.task == "masked-lm"  # what is drawn is what the table names


def test_without_parity_the_first_task_like_the_plans_model_is_drawn():
    pictures = replace(SHOWN[0], task="digits-cnn")

    def drawn(*shown):
        return with_safety(sample.answer(), (), "typical", shown).numerics

    assert drawn(pictures, SHOWN[1]).task == "masked-lm"
    assert drawn(pictures).task == "digits-cnn"
    assert drawn() is None


def test_where_the_asked_precision_was_not_trained_what_is_drawn_is_still_like_the_plans_model():
    text = [
        row for row in FINDINGS if row.precision == "nvfp4" or (row.precision, row.figures.task) == ("fp8", "char-lm")
    ]
    pictures = [
        replace(row, figures=replace(row.figures, task="digits-cnn")) for row in FINDINGS if row.precision == "bf16"
    ]
    plain = sample.answer()
    asked = replace(plain, question=plain.question | {"precision": replace(plain.question["precision"], value="tf32")})
    shown = [replace(SHOWN[0], task="digits-cnn"), SHOWN[0]]

    answer = with_safety(asked, [*pictures, *text], "typical", shown)
    assert {row.measured.task for row in answer.parity if row.measured is not None} == {"digits-cnn", "char-lm"}
    assert answer.numerics is not None
    assert answer.numerics.task == "char-lm"


def test_a_plan_that_sees_images_goes_by_digits():
    plain = sample.answer()
    sees = replace(plain, model=replace(plain.model, kind="image"))
    digits = [replace(row, figures=replace(row.figures, task="digits-vit", difference_high=0.0001)) for row in FINDINGS]

    def tasks(answer):
        rows = with_safety(answer, [*FINDINGS, *digits], "typical").parity
        return {row.measured.task for row in rows if row.measured is not None}

    assert tasks(sees) == {"digits-vit"}
    assert "digits-vit" not in tasks(plain)


PLAIN = sample.answer()
TAKEN = replace(
    PLAIN,
    plans=tuple(replace(p, skipped_step_ratio=0.0005 if p.precision == "fp16" else None) for p in PLAIN.plans),
)


def with_figures(**changes: object) -> list[PrecisionFinding]:
    """The findings with other figures of loss scaling."""
    return [
        replace(row, settled_steps=None, figures=replace(row.figures, **changes))  # type: ignore[arg-type]
        if row.figures.instrument == "loss-scaling" else row
        for row in FINDINGS
    ]  # fmt: skip


def test_skipped_steps_are_an_assumption_of_the_stacks_scaler_only_where_a_plan_takes_them():
    (stated,) = [row for row in with_safety(TAKEN, FINDINGS, "typical").assumptions if row.id == "skipped_steps"]

    assert stated.message.key == "assumption.skipped_steps"
    assert dict(stated.message.values) | {} == {
        "precision": "FP16", "ratio": pytest.approx(2 / 1002), "most": pytest.approx(4 / 1002), "task": "char-lm",
        "device": "AMD EPYC", "scaler": "Megatron-Core DynamicGradScaler", "count": 2, "interval": 1000,
    }  # fmt: skip
    assert with_safety(PLAIN, FINDINGS, "typical").assumptions == PLAIN.assumptions


def test_a_measured_share_says_so_and_an_emulated_run_is_named_as_such():
    def message_key(**changes: object) -> str:
        return (
            with_safety(TAKEN, with_figures(steady_skipped_step_ratio=0.1, **changes), "eager")
            .assumptions[-1]
            .message.key
        )

    assert message_key() == "assumption.skipped_steps_measured"
    assert message_key(emulated=True) == "assumption.skipped_steps_emulated"


def test_a_precision_that_took_no_step_is_warned_of_and_its_parity_says_that_it_does_not_train():
    broken = with_figures(skipped_step_ratio=1.0, steps=400)
    answer = with_safety(PLAIN, broken, "eager")

    assert [row.key for row in answer.warnings] == [*(row.key for row in PLAIN.warnings), "warning.untrained"]
    assert not [row for row in answer.assumptions if row.id == "skipped_steps"]
    (fp16,) = [row for row in answer.parity if row.precision == "fp16"]
    assert fp16.untrained is not None
    assert (fp16.untrained.skipped, fp16.untrained.steps, fp16.per_nat) == (400, 400, None)
    assert [row.precision for row in answer.parity if row.untrained is not None] == ["fp16"]


def test_what_does_not_train_is_not_recommended_in_a_schedule():
    (plain,) = SHOWN[:1]
    point = replace(plain.mixtures[0], precision="fp16", recommended=True)
    shown = [replace(plain, mixtures=(point, replace(point, precision="fp8")))]

    def recommended(findings):
        drawn = with_safety(PLAIN, findings, "eager", shown).numerics
        return [row.recommended for row in drawn.mixtures]

    assert recommended(FINDINGS) == [True, True]
    assert recommended(with_figures(skipped_step_ratio=1.0, steps=400)) == [False, True]

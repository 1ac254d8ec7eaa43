"""A comparison as text: every sentence of both languages, from documents that lack most and all."""

from __future__ import annotations

import pytest

from mpplan.api.document import worded
from planner.comparison.basis import Given
from planner.comparison.compare import compare
from planner.comparison.document import to_compare_document
from planner.comparison.planned import planned_of
from reports.compared.text import to_text
from tests.planner.comparison.runs import log_of
from tests.planner.comparison.test_gap import answer, run, timers_ms
from tests.planner.runlog.test_read import sample
from tests.planner.runlog.writers import megatron_log


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["hf-trainer.log", "trainer_state.json", "lightning.log", "deepspeed.log"])
def test_logs_without_a_plan_are_told_in_both_languages(name, lang):
    document = to_compare_document(compare(sample(name), None, Given()), "0")

    assert to_text(document, lang) == to_text(worded(document), lang)
    assert "{" not in to_text(document, lang)


def test_what_is_unknown_says_why():
    document = to_compare_document(compare(sample("trainer_state.json"), None, Given()), "0")

    assert "unknown: the log has no time of a step" in to_text(document)
    no_price = to_compare_document(compare(log_of(megatron_log([2.0] * 9, of=20)[0]), None, Given(gpus=8)), "0")
    assert "cost          unknown: no price (`--price`, or a plan that has one)" in to_text(no_price)


def test_tables_are_aligned_with_wide_letters():
    text = to_text(to_compare_document(run(2.5, timers_ms(data=0.2)), "0"), "zh")
    rows = text.split("与计划对照，每个有效步的秒数\n")[1].split("\n\n")[0].splitlines()

    assert len({sum(2 if ord(letter) > 0x2E80 else 1 for letter in row) for row in rows}) == 1


def test_the_gap_and_the_bill_stand_in_the_text():
    comparison = run(2.5, timers_ms(data=0.2))
    text = to_text(to_compare_document(comparison, "0"))

    assert "Beside the plan, seconds per step that counts" in text
    assert "data loading" in text
    assert planned_of(answer(), None, None).steps == round(100e9 / (128 * 8192))

"""A comparison as text: every sentence of both languages, from documents that lack most and all."""

from __future__ import annotations

import pytest

from mpplan.api.document import worded
from planner.comparison.basis import Given
from planner.comparison.compare import compare
from planner.comparison.document import to_compare_document
from planner.comparison.planned import planned_of
from reports.compared.text import WIDEST, WIDTH, to_text
from reports.text.width import columns_of
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
    half = "{'loss': 2.3, 'grad_norm': 0.4, 'epoch': 0.5}"
    document = to_compare_document(compare(log_of([half] * 3), None, Given()), "0")

    assert "unknown: the log has no step times" in to_text(document)
    no_price = to_compare_document(compare(log_of(megatron_log([2.0] * 9, of=20)[0]), None, Given(gpus=8)), "0")
    assert "cost          unknown: no price (`--price`, or a plan that has one)" in to_text(no_price)


def test_a_table_of_steps_has_no_framework_to_name():
    table = log_of(["step,step_time_s", *(f"{step},0.5" for step in range(1, 31))])

    assert to_text(to_compare_document(compare(table, None, Given()), "0")).startswith("Log: 30 of 31 lines")


def test_times_are_told_in_the_unit_that_they_fill_and_cents_as_less_than_one():
    priced = Given(gpus=8, price_usd_per_gpu_h=3.0)
    texts = [
        to_text(to_compare_document(compare(log_of(megatron_log([step_s] * 40, of=of)[0]), None, priced), "0"))
        for step_s, of in ((0.01, 60), (2.0, 1000), (30.0, 100_000))
    ]

    assert "  seconds       0.2\n" in texts[0]
    assert "cost          <$0.01" in texts[0]
    assert "  minutes       32\n" in texts[1]
    assert "  days          34.7\n" in texts[2]


def test_a_run_at_its_end_says_so_and_what_it_took():
    losses = ["{'loss': 2.3, 'grad_norm': 0.4, 'epoch': 0.5}"] * 3
    closing = "{'train_runtime': 100.0, 'train_steps_per_second': 0.5, 'epoch': 1}"
    ended = to_text(to_compare_document(compare(log_of([*losses, closing]), None, Given()), "0"))
    state = to_text(to_compare_document(compare(sample("trainer_state.json"), None, Given()), "0"))
    half = to_text(to_compare_document(compare(log_of(losses), None, Given()), "0"))

    assert "step 50 of 50" in ended
    assert "Step: 2 s\n" in ended
    assert "  The run has ended.\n  spent so far  1.67 minutes; unknown" in ended
    assert "  The run has ended.\n  spent so far  unknown: the log has neither step times nor timestamps" in state
    assert "step ?, started once" in half
    assert "no line shows its step number" in half


def test_tables_are_aligned_with_wide_letters():
    text = to_text(to_compare_document(run(2.5, timers_ms(data=0.2)), "0"), "zh")
    rows = text.split("与计划对照，每个有效步的秒数\n")[1].split("\n\n")[0].splitlines()

    assert len({sum(2 if ord(letter) > 0x2E80 else 1 for letter in row) for row in rows}) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, WIDTH])
def test_every_line_fits_the_terminal_and_no_word_is_lost(lang, width):
    document = to_compare_document(run(2.5, timers_ms(data=0.2)), "0")
    text, wide = to_text(document, lang, width), to_text(document, lang, WIDEST)

    assert max(map(columns_of, text.splitlines())) <= width
    assert sorted("".join(text.split())) == sorted("".join(wide.split()))


def test_chinese_text_fits_the_width_and_tells_money_and_notes_in_chinese():
    log = log_of(megatron_log([2.0] * 40, of=1000)[0] + ["iteration 9/ 1000 | cut"])
    document = to_compare_document(compare(log, None, Given(gpus=8, price_usd_per_gpu_h=3.0)), "0")
    document["notes"] = [{"key": "compare.note.timers", "values": {}}]
    text = to_text(document, "zh")

    assert max(map(columns_of, text.splitlines())) <= WIDTH
    assert " 美元" in text
    assert "$" not in text
    assert text.endswith("（单步时间是各计时器之和：不含数据加载和日志）\n")


def test_the_gap_and_the_bill_stand_in_the_text():
    comparison = run(2.5, timers_ms(data=0.2))
    text = to_text(to_compare_document(comparison, "0"))

    assert "Compared with the plan, seconds per useful step" in text
    assert "data loading" in text
    assert planned_of(answer(), None, None).steps == 95_368  # rounded up

"""Parity in words and as a table."""

from __future__ import annotations

import pytest

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.safety.known import closing, difference, parity_rows, parity_table, per_nat_text, signed
from reports.text.language import words_for
from reports.view import Items, Prose
from tests.reports import sample
from tests.reports.sections.safety.shown import facts_shown

EN, ZH = words_for("en"), words_for("zh")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.05, "+0.050"), (-0.0023, "−0.0023"), (0.0, "0.00"), (1.234, "+1.23"), (6.2e-5, "+0.000062"), (12.0, "+12.00")],
)
def test_a_difference_has_its_sign_and_two_digits(value, text):
    assert signed(value) == text


def test_an_interval_is_written_with_the_digits_of_its_larger_end():
    measured = {"difference": {"low": -0.0023, "mid": 0.00017, "high": 0.0027}, "metric": "loss"}

    assert difference(measured, EN) == "+0.0002 (−0.0023 to +0.0027) nats"
    assert difference(measured | {"difference": None}, EN) == "a run diverged"
    assert difference(measured | {"metric": "accuracy"}, EN).endswith("of accuracy")


def test_where_nothing_was_run_the_end_of_the_answer_says_what_is_published_and_what_was_not_tested():
    block = closing(facts_shown(run=False), EN)

    assert isinstance(block, Items)
    assert block.title == "Lower precision can change the result"
    assert block.items[0].text.startswith(
        "NVFP4: +0.050 nats against BF16 published of DeepSeek-V3 16B at 1,500 steps. Saved against BF16: "
    )
    assert block.items[1].text == "BF16 and FP16: not tested; `mpplan numerics` trains small models in them."
    assert block.items[-1].text.endswith("these figures are not of your run.")


def test_where_nothing_is_known_one_sentence_says_so():
    block = closing(facts_shown(run=False, lower="fp8"), EN)

    assert isinstance(block, Prose)
    assert block.plain.startswith("Lower precision can change the result")
    assert "FP8, BF16 and FP16: not tested here" in block.plain


def test_an_answer_of_an_earlier_version_says_what_it_always_said():
    block = closing(Facts(checked(sample.document())), EN)

    assert isinstance(block, Prose)
    assert "numerics" not in block.plain
    assert parity_table(Facts(checked(sample.document())), EN) is None


def test_what_was_measured_says_on_what_for_how_long_and_whether_it_was_emulated():
    table = parity_table(facts_shown(), EN)

    assert table is not None
    texts = [[cell.text for cell in row.cells] for row in table.rows]
    nvfp4, published = texts[0], texts[1]
    assert nvfp4[2] == "equal within ±0.02"
    assert nvfp4[3] == "masked-lm, 36 steps, 3 pairs of runs, AMD EPYC, emulated"
    assert published[1] == "+0.050 nats"
    assert ["TF32", "not tested"] in texts
    assert texts[-1] == ["FP32 (strict)", "what the others are held against"]


def test_what_a_nat_costs_follows_from_the_two_plans():
    row = next(row for row in parity_rows(facts_shown()) if row["precision"] == "nvfp4")
    facts = facts_shown()
    plans = {plan["precision"]: plan for plan in facts.plans()}
    saved = plans["bf16"]["cost_usd"]["mid"] - plans["nvfp4"]["cost_usd"]["mid"]

    assert row["per_nat"]["usd_per_nat"] == pytest.approx(saved / 0.050)
    assert per_nat_text(row["per_nat"] | {"usd_per_nat": None}, EN).startswith(" Saved against BF16: ")
    assert "$" not in per_nat_text(row["per_nat"] | {"usd_per_nat": None}, EN)
    assert per_nat_text(None, EN) == ""


def test_a_published_speed_is_told_with_its_machines_and_that_no_loss_was_compared():
    table = parity_table(facts_shown(), EN)

    assert table is not None
    # pytorch/ao#4798, experiment 3: 37.6 % more throughput at 16.6 % less power
    assert table.notes == (
        "Published of NVFP4 (DeepSeek-V3 671B, 64 × GB300 288\u00a0GB, no loss compared): +37.6% speed, −16.6% power "
        "against BF16.",
    )


def test_chinese_has_the_same_lines():
    assert len(closing(facts_shown(), ZH).items) == len(closing(facts_shown(), EN).items)  # type: ignore[union-attr]

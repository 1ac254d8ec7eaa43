"""Parity in words and as a table."""

from __future__ import annotations

import pytest

from mpplan.api.document import to_document
from planner.safety.answered import with_safety
from planner.safety.document import findings_of
from planner.training.grad_compression import load_grad_compressions
from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.safety import known
from reports.sections.safety.known import (
    closing,
    difference,
    parity_rows,
    parity_table,
    per_nat_text,
    rates,
    signed,
)
from reports.text.language import words_for
from reports.view import Items, Prose
from tests.planner.safety.recorded import overflowing
from tests.reports import sample
from tests.reports.sections.safety.shown import document_shown, facts_shown

EN, ZH = words_for("en"), words_for("zh")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.05, "+0.050"), (-0.0023, "−0.0023"), (0.0, "0.00"), (1.234, "+1.23"), (6.2e-5, "+0.000062"), (12.0, "+12.00")],
)
def test_a_difference_has_its_sign_and_two_digits(value, text):
    assert signed(value) == text


def test_an_interval_is_written_with_the_digits_of_its_larger_end():
    measured = {"difference": {"low": -0.0023, "mid": 0.00017, "high": 0.0027}, "metric": "loss", "seeds": 8}

    assert difference(measured, EN) == "+0.0002 (−0.0023 to +0.0027) nats"
    assert difference(measured | {"difference": None}, EN) == "a run diverged"  # a record that does not count them
    assert difference(measured | {"difference": None, "diverged": 0}, EN) == "too few runs for an interval"
    assert difference(measured | {"difference": None, "diverged": 3}, EN) == "3 of 8 runs ended in NaN"
    assert difference(measured | {"diverged": 1}, EN).endswith("nats; 1 of 8 runs ended in NaN")
    assert difference(measured | {"metric": "accuracy"}, EN).endswith("of accuracy")
    assert difference(measured | {"task": "own"}, EN) == "+0.0002 (−0.0023 to +0.0027) in the task's own loss"


def test_where_nothing_was_run_the_end_of_the_answer_says_what_is_published_and_what_was_not_tested():
    block = closing(facts_shown(run=False), EN)

    assert isinstance(block, Items)
    assert block.title == "Lower precision can change the result"
    assert block.items[0].text == (
        "NVFP4: +0.050 nats against BF16, published for DeepSeek-V3 16B at 1,500 steps."
    )  # what a nat of it costs is of another model's loss: in the full answer
    assert block.items[1].text == "BF16 and FP16: not tested; `mpplan numerics` can test on small models."
    assert block.items[-1].text.endswith("these figures are not from your run.")


def test_where_nothing_is_known_one_sentence_says_so():
    block = closing(facts_shown(run=False, lower="fp8"), EN)

    assert isinstance(block, Prose)
    assert block.plain.startswith("Lower precision can change the model's quality")
    assert "FP8, BF16 and FP16: not tested; `mpplan numerics` can test" in block.plain


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
    assert texts[-1] == ["FP32 (strict)", "the reference"]


def test_columns_that_no_precision_fills_are_left_out():
    document = document_shown()
    document["parity"] = [row | {"basis": "not_tested", "measured": None, "published": None, "per_nat": None,
                                 "published_per_nat": None} for row in document["parity"]]  # fmt: skip

    table = parity_table(Facts(checked(document)), EN)

    assert table is not None
    assert [column.head for column in table.columns] == ["Precision", "Loss against a higher precision"]
    full = parity_table(facts_shown(), EN)
    assert full is not None
    assert len(full.columns) == 4


def test_what_a_nat_costs_follows_from_the_two_plans():
    row = next(row for row in parity_rows(facts_shown()) if row["precision"] == "nvfp4")
    facts = facts_shown()
    plans = {plan["precision"]: plan for plan in facts.plans()}
    saved = plans["bf16"]["cost_usd"]["mid"] - plans["nvfp4"]["cost_usd"]["mid"]

    assert row["per_nat"]["usd_per_nat"] == pytest.approx(saved / 0.050)
    hours = per_nat_text(row["per_nat"] | {"usd_per_nat": None}, EN)
    assert hours == " Saves 155,000 GPU-hours against BF16 for +0.050 nats: 3.1 million GPU-hours per nat."
    assert "代价 +0.050 nat：每 nat 775 万美元。" in per_nat_text(row["per_nat"], ZH)
    assert per_nat_text(None, EN) == ""


def test_a_published_speed_is_told_with_its_machines_and_that_no_loss_was_compared():
    table = parity_table(facts_shown(), EN)

    assert table is not None
    # pytorch/ao#4798, experiment 3: 37.6 % more throughput at 16.6 % less power
    assert table.notes == (
        "NVFP4, by its published loss. Saves $388,000 against BF16 for +0.050 nats: $7.75 million per nat.",
        "Published for NVFP4 (DeepSeek-V3 671B, 64 × GB300 288\u00a0GB, no loss compared): +37.6% speed, −16.6% power "
        "against BF16.",
    )
    chinese = parity_table(facts_shown(), ZH)
    assert chinese is not None
    assert "DeepSeek-V3 671B、64 张 GB300 288 GB" in chinese.notes[1]


def test_a_measured_price_and_the_published_one_stand_each_on_its_line():
    row = next(row for row in parity_rows(facts_shown()) if row["precision"] == "nvfp4")
    published, own = row["per_nat"], row["per_nat"] | {"basis": "measured", "nats": 0.2}

    assert rates(row) == {"measured": None, "published": published}
    assert rates(row | {"per_nat": own}) == {"measured": own, "published": published}
    former = {name: value for name, value in row.items() if name != "published_per_nat"}  # of an earlier version
    assert rates(former) == {"measured": None, "published": published}
    assert rates(row | {"per_nat": None, "published_per_nat": None}) == {"measured": None, "published": None}
    document = document_shown()
    document["parity"] = [row | {"per_nat": own}]
    table = parity_table(Facts(checked(document)), EN)
    assert table is not None
    assert table.notes[0].startswith("NVFP4, by its measured loss. Saves $388,000 against BF16 for +0.20")
    assert table.notes[1].startswith("NVFP4, by its published loss. Saves $388,000 against BF16 for +0.050 nats")


def test_a_task_of_another_kind_says_so():
    measured = {"task": "digits-cnn", "steps": 34, "seeds": 3, "device": "AMD EPYC", "emulated": False}

    text = known.tested_on(measured | {"like_plan": False}, EN)
    assert text == "digits-cnn (another kind of model than the plan's), 34 steps, 3 pairs of runs, AMD EPYC"


@pytest.mark.parametrize("method", [*load_grad_compressions(), "powersgd:8"])
@pytest.mark.parametrize("words", [EN, ZH])
def test_compressed_gradients_are_told_of_with_what_their_paper_found(method, words):
    plain = document_shown()
    compressed = plain | {"question": plain["question"] | {"grad_compression": {"value": method, "source": "flag"}}}
    lines = [item.text for item in closing(Facts(checked(compressed)), words).items]  # type: ignore[union-attr]

    (added,) = set(lines) - {item.text for item in closing(Facts(checked(plain)), words).items}  # type: ignore[union-attr]
    assert added.startswith(load_grad_compressions()[method.split(":")[0]].name)
    none = sample.document() | {"question": compressed["question"]}
    assert added in closing(Facts(checked(none)), words).plain  # type: ignore[union-attr]


def test_chinese_has_the_same_lines():
    assert len(closing(facts_shown(), ZH).items) == len(closing(facts_shown(), EN).items)  # type: ignore[union-attr]


def failing() -> Facts:
    """The facts of an answer in which FP16 takes no step."""
    findings = findings_of(overflowing(), "numerics.json")
    return Facts(checked(to_document(with_safety(sample.answer(), findings, "typical"))))


@pytest.mark.parametrize("words", [EN, ZH])
def test_what_does_not_train_is_said_to_be_no_saving_at_the_end_and_in_the_table(words):
    table, block = parity_table(failing(), words), closing(failing(), words)

    assert table is not None
    texts = [cell.text for row in table.rows for cell in row.cells]
    assert words("verdict.untrained") in texts
    assert isinstance(block, Items)
    assert len([item for item in block.items if "400" in item.text]) == 1


def test_what_does_not_train_is_worded_with_its_steps():
    block = closing(failing(), EN)

    assert isinstance(block, Items)
    assert [item.text for item in block.items if "does not train" in item.text] == [
        "FP16 does not train, so its saving does not count: 400 of 400 steps skipped because of overflows – char-lm, "
        "400 steps, AMD EPYC."
    ]

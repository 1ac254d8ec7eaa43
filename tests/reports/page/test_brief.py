"""The short answer: what one compares, decides and must not miss, and where the rest is."""

from __future__ import annotations

import json
from typing import Any

import pytest

import reports
from mpplan.api.document import to_document
from planner.errors import Message
from planner.evidence import Gap
from planner.question.asked import InputValue
from reports.page.brief import NOTICES
from reports.text.messages import templates
from tests.reports import sample


def brief_of(document: dict[str, Any], lang: str = "en", width: int = 80) -> str:
    return str(reports.render(document, "terminal", lang=lang, width=width, color=False, brief=True))


def test_the_table_holds_the_asked_precision_and_what_people_compare_it_with():
    asked = sample.answer().question | {"precision": InputValue(value="fp16", source="flag")}
    text = brief_of(sample.document(question=asked), width=120)
    table = text[text.index("On the same GPUs") :].partition("\n\n")[0]

    assert [line.split(" ")[0] for line in table.splitlines()[-4:]] == ["FP8", "BF16", "FP16", "TF32"]
    assert "FP32" not in table


def test_it_fits_a_screen_and_the_full_answer_says_more():
    document = sample.targets_document()
    document["question"]["budget"]["value"] = 2_000_000  # above the high, as its probability is
    short = brief_of(document).splitlines()
    full = str(reports.render(document, "terminal", width=80, color=False)).splitlines()

    assert len(short) <= 41 < len(full)
    assert short[:4] == full[:4]  # the sentence


def test_the_curve_is_three_lines_and_the_knee():
    text = brief_of(sample.targets_document())
    start = text.index("FP8 on more or fewer")
    lines = text[start:].partition("\n\n")[0].splitlines()

    assert [line.split()[0] for line in lines[-4:]] == ["256", "512", "1,024", "Beyond"]


def test_the_layout_stands_with_the_memory_its_range_and_its_risk():
    text = " ".join(brief_of(sample.targets_document()).split())

    assert (
        "Layout TP8 PP4 DP16 ZeRO-1 MB1×64; memory 62 GiB (48–71) of 79.6 GiB available per GPU. "
        "The probability of running out is 2%."
    ) in text


def test_a_warning_that_changes_a_decision_is_shown_and_a_notice_is_not():
    warnings = (
        Message.of("warning.memory_risk", gpu=sample.GPU, risk=0.31, allowed=0.05, digits=0),
        Message.of("price.warning.later_rows", count=3, as_of="2026-11-20", newest="2026-11-21"),
    )
    text = brief_of(to_document(sample.answer(warnings=warnings)))

    assert "every layout runs out of memory with a probability above 5%" in " ".join(text.split())
    assert "dated after" not in text


def test_that_prices_are_old_is_said_once():
    historic = Message.of("price.warning.historic", rows=("runpod (2025-03-03)",))
    stale = Gap.of("price.stale", as_of="2026-11-20", rows=("runpod (2025-03-03)",))
    alone = brief_of(to_document(sample.answer(warnings=(historic,))))
    with_gap = brief_of(to_document(sample.answer(warnings=(historic,), gaps=(stale,))))

    assert alone.count("runpod") == with_gap.count("runpod") == 1
    assert "mpplan prices refresh" in " ".join(with_gap.split())


def test_a_warning_of_a_newer_version_is_shown():
    document = sample.document(warnings=(Message.of("warning.unused_line", problem="x"),))
    document["warnings"], document["warnings_message"] = ["the moon is full"], [{"key": "warning.moon", "values": {}}]

    assert "the moon is full" in brief_of(document)


def test_what_is_missing_is_said():
    assert "GPU price: the price book has no row" in " ".join(brief_of(sample.document(gaps=(sample.GAP,))).split())


def test_a_plan_that_does_not_fit_says_why_in_the_table():
    document = sample.unsupported_document()
    document["question"]["precision"]["value"] = "fp32"

    assert "FP32 (strict) no plan (does not fit because the leanest" in " ".join(brief_of(document).split())


def test_several_gpus_stand_side_by_side():
    text = brief_of(sample.several_gpus_document(), width=120)
    table = text[text.index("FP8 on each GPU") :].partition("\n\n")[0]

    assert [line.split(" ")[0] for line in table.splitlines()[-3:]] == ["H100", "H200", "B200"]


@pytest.mark.parametrize("lang", reports.LANGUAGES)
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_short_answer_stays_within_its_width(lang, width):
    from reports.text.width import columns_of

    for document in (sample.targets_document(), sample.unsupported_document(), sample.several_gpus_document()):
        assert [line for line in brief_of(document, lang, width).splitlines() if columns_of(line) > width] == []


def test_a_comparison_of_two_answers_has_no_short_form():
    first, second = sample.document(), json.loads(json.dumps(sample.document()))

    assert reports.render_comparison(first, second, "terminal", width=80, color=False)


def test_every_notice_is_a_message():
    assert sorted(NOTICES - set(templates("en"))) == []


def test_a_deadline_is_told_in_the_largest_unit_that_it_fills():
    document = sample.targets_document()
    document["deadline_days"] = 0.0833333333  # 2 hours, as the document rounds them

    assert "within 2 hours with" in " ".join(brief_of(document).split())

"""The section about own runs: what they changed, in words and figures, in both languages."""

from __future__ import annotations

from typing import Any

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.evidence.calibration import calibration
from reports.text.language import words_for
from reports.view import Table
from tests.reports import sample

LEARNED = {
    "name": "our-stack.json",
    "source": "my-runs.csv",
    "runs": 3,
    "gpus": ["h100-sxm5-80gb"],
    "width_ratio": {"time": 0.55, "memory": 0.8},
    "learned": [
        {
            "words": "time to launch a kernel: 12% more than with most teams",
            "words_message": {"key": "learned.more", "values": {"label": "launch_s", "change_ratio": 0.12}},
            "before": 9e-6,
            "after": 1.008e-5,
            "unit": "s",
        }
    ],
}


def section(lang: str = "en", **changes: Any) -> Any:
    return calibration(Facts(checked(sample.document() | {"calibration": LEARNED | changes})), words_for(lang))


def text(spans: Any) -> str:
    return "".join(span.text for span in spans)


def test_it_says_how_much_narrower_each_range_became():
    assert text(section().lead) == (
        "What is particular to your software was learned from 3 of your own runs in my-runs.csv: for runs like those, "
        "the range of the speed is 55% as wide as for a team without measurements and "
        "the range of the peak memory is 80% as wide as "
        "for a team without measurements."
    )


def test_each_term_stands_with_its_middle_before_and_after():
    (table,) = section().blocks
    assert isinstance(table, Table)

    assert [cell.text for cell in table.rows[0].cells] == [
        "time to launch a kernel: 12% more than with most teams", "9e-06", "1.01e-05", "s",
    ]  # fmt: skip


def test_in_chinese_the_sentence_is_worded_from_its_key():
    (table,) = section("zh").blocks

    assert "比多数团队高 12%" in table.rows[0].cells[0].text


def test_without_terms_there_is_a_lead_and_no_table():
    assert section(learned=[]).blocks == ()


def test_an_answer_without_a_calibration_has_no_such_section():
    assert calibration(Facts(checked(sample.document())), words_for("en")) is None

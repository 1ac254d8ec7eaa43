"""Layouts in short and in a table: what is 1 is left out unless some layout has more."""

from __future__ import annotations

from typing import Any

import pytest

from planner.planning.choice import SIMPLER
from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.comparison.layout import MOST_LOST, layout, layout_text
from reports.text.language import words_for
from tests.reports import sample

WORDS = words_for("en")
PLAIN = {"tp": 1, "pp": 1, "vp": 1, "cp": 1, "ep": 1, "dp": 1, "zero": 0, "micro_batch": 1, "grad_accum": 1,
         "act_ckpt": "none"}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "MB1×1"),
        ({"tp": 8, "pp": 4, "dp": 16, "zero": 1, "grad_accum": 64}, "TP8 PP4 DP16 ZeRO-1 MB1×64"),
        ({"vp": 2, "cp": 2, "ep": 8, "micro_batch": 4}, "VP2 CP2 EP8 MB4×1"),
    ],
)
def test_a_layout_in_short_leaves_out_what_is_1(changes, text):
    assert layout_text(PLAIN | changes) == text


def tables(lost: list[dict[str, Any]], **axes: int):
    document = sample.document()
    document["plans"][-1]["layout"] |= axes
    return tables_of(document, lost)


def tables_of(document: dict[str, Any], lost: list[dict[str, Any]]):
    document["plans"][-1]["lost_layouts"] = lost
    section = layout(Facts(checked(document)), WORDS)
    assert section is not None
    return section.blocks


def lost(step_s: float, **axes: int) -> dict[str, Any]:
    return {"layout": PLAIN | axes, "step_s": step_s, "memory_gib": 50.0, "why": "slower"}


def lead(lang: str, lost: list[dict[str, Any]]) -> str:
    document = sample.document()
    document["plans"][-1]["lost_layouts"] = lost
    section = layout(Facts(checked(document)), words_for(lang))
    assert section is not None
    return "".join(span.text for span in section.lead)


def test_only_the_fastest_layout_is_called_the_best():
    slower = lost(9.0) | {"why_message": {"key": "why.slower", "values": {"slower_ratio": 0.1}}}
    simpler = lost(7.0, tp=4, pp=2) | {"why_message": {"key": "why.simpler", "values": {"faster_ratio": 0.018}}}

    assert "the best of" in lead("en", [slower])
    text = lead("en", [simpler, slower])
    assert f"layouts evaluated, the simplest within {SIMPLER - 1:.0%} of the best;" in text
    assert "; TP4 PP2 MB1×1 (a batch of " in text
    assert text.endswith(" is more complex and 1.8% faster on average.")
    assert lead("zh", [simpler]).endswith("）平均快 1.8%，但更复杂。")


def test_a_faster_layout_with_another_batch_is_named_beside_the_one_that_keeps_it():
    row = lost(7.0, tp=4, pp=2) | {"why_message": {"key": "why.other_batch", "values": {"faster_ratio": 0.113}}}

    text = lead("en", [row])
    assert "the best with the published or usual batch; TP4 PP2 MB1×1 (a batch of " in text
    assert text.endswith(" is 11.3% faster on average, too little to change that batch.")


def test_a_layout_that_is_hardly_faster_is_said_to_be_no_faster():
    simpler = lost(7.0, tp=4, pp=2) | {"why_message": {"key": "why.simpler", "values": {"faster_ratio": 0.0002}}}

    assert lead("en", [simpler]).endswith(" is more complex and no faster on average.")


def test_an_axis_that_some_layout_uses_has_a_column():
    (plain,), (interleaved,) = tables([]), tables([], vp=2)

    heads = [column.head for column in interleaved.columns]
    assert WORDS.name("axis", "vp") in heads
    assert len(heads) == len(plain.columns) + 1
    assert WORDS.name("axis", "cp") not in heads


def test_the_chosen_layout_leads_those_that_lost_with_its_own_figures():
    _, table = tables([lost(99.0, cp=2)])

    chosen = sample.document()["plans"][-1]
    assert [row.cells[-2].sort for row in table.rows] == [chosen["step_s"]["total"], 99.0]
    assert [row.cells[-1].sort for row in table.rows] == [chosen["memory_gib"]["total"]["mid"], 50.0]
    assert [row.strong for row in table.rows] == [True, False]


def test_no_more_than_the_first_losers_are_listed():
    _, table = tables([lost(10.0 + n) for n in range(20)])

    assert len(table.rows) == 1 + MOST_LOST


def test_the_numbers_of_a_column_have_the_decimals_of_the_chosen_layout():
    document = sample.document()
    (plan,) = document["plans"][-1:]
    plan["step_s"]["total"], plan["memory_gib"]["total"] = 3.354, {"low": 10.1, "mid": 12.34, "high": 15.2}
    _, table = tables_of(document, [lost(3.0, cp=2) | {"memory_gib": 7.672}, lost(12.3) | {"memory_gib": 101.0}])

    steps, memory = ([row.cells[-column].text for row in table.rows] for column in (2, 1))
    assert steps == ["3.35", "3.00", "12.30"]
    assert memory == ["12.3", "7.7", "101.0"]

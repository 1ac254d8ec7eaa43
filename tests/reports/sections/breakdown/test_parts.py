"""Items of a step and of memory: shares of the asked precision, totals, and how much room is left."""

from __future__ import annotations

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.breakdown.parts import memory, step_time
from reports.text.language import words_for
from reports.view import Section, StackChart, Table
from tests.reports import sample

WORDS = words_for("en")
STEP_10_S = {"matmul": 6.0, "attention": 2.5, "bubble": 1.5, "total": 10.0}


def facts_of(**fp8: object) -> Facts:
    """The sample, with changes to its FP8 plan, the one that is asked for."""
    document = sample.document()
    document["plans"][-1] |= fp8
    return Facts(checked(document))


def text_of(section: Section) -> str:
    return "".join(span.text for span in section.lead)


def columns(table: Table, precision: str) -> dict[str, tuple[str, str]]:
    """Text and detail of each row, in the column of a precision."""
    place = next(n for n, column in enumerate(table.columns) if column.head.startswith(precision))
    return {row.cells[0].text: (row.cells[place].text, row.cells[place].detail) for row in table.rows}


def exactly(gib: float) -> dict[str, float]:
    return {"low": gib, "mid": gib, "high": gib}


def section_of(build, **fp8: object) -> Section:
    section = build(facts_of(**fp8), WORDS)
    assert section is not None
    return section


def test_the_largest_part_of_a_step_is_named_with_its_share():
    lead = text_of(section_of(step_time, step_s=STEP_10_S))

    assert WORDS.name("step", "matmul").lower() in lead.lower()
    assert "60%" in lead.replace("\u00a0", "")


def test_the_asked_precision_has_the_share_of_each_item_and_the_others_have_not():
    table = section_of(step_time, step_s=STEP_10_S).blocks[1]
    assert isinstance(table, Table)
    fp8, bf16 = columns(table, "FP8"), columns(table, "BF16")

    # the smallest total, 10 s, gets three digits
    assert fp8[WORDS.name("step", "matmul")][0] == "6.0"
    assert [detail.rstrip(" %\u00a0") for _, detail in fp8.values() if detail] == ["60", "25", "15"]
    assert not any(detail for _, detail in bf16.values())


def test_what_is_left_of_the_memory_is_its_capacity_less_the_total():
    # 79.6 - 63 = 16.6 GiB
    section = section_of(memory, memory_gib={"weights": 40.0, "activations": 23.0, "total": exactly(63.0)})
    chart = section.blocks[0]
    assert isinstance(chart, StackChart)

    assert all(figure in text_of(section) for figure in ("63", "79.6", "16.6"))
    assert {row.limit for row in chart.drawing.rows} == {99.5}  # the axis ends at 80: 79.6 / 80


def test_a_plan_that_is_too_large_says_by_how_much():
    # 100 - 79.6 = 20.4 GiB
    section = section_of(memory, memory_gib={"weights": 70.0, "activations": 30.0, "total": exactly(100.0)})

    assert "20.4" in text_of(section)
    assert text_of(section) != text_of(section_of(memory))


def test_where_nothing_fits_and_nothing_is_itemised_there_is_no_section():
    document = sample.document()
    for plan in document["plans"]:
        plan |= {"fits": False, "why_not": "too large", "step_s": None, "memory_gib": None}
    facts = Facts(checked(document))

    assert step_time(facts, WORDS) is None
    assert memory(facts, WORDS) is None


def test_a_share_of_an_item_that_is_there_never_reads_as_nothing():
    table = section_of(step_time, step_s=STEP_10_S | {"launches": 0.003, "optimizer": 0.012}).blocks[1]
    assert isinstance(table, Table)

    shares = [detail.replace("\u00a0", "") for _, detail in columns(table, "FP8").values() if detail]
    assert sorted(shares) == ["0.1%", "15%", "25%", "60%", "<0.1%"]

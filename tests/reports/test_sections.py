"""Every part of the report: there with its data, absent without; its numbers are the document's."""

from __future__ import annotations

import re

import pytest

from reports import render
from reports.document.facts import Facts
from reports.page.build import build, checked
from reports.page.sections import SECTIONS
from reports.text.language import words_for
from reports.text.messages import is_message, templates, word
from reports.view import RangeChart, ScatterChart, Section, StackChart, Table, TraceChart
from tests.reports import sample
from tests.reports.conftest import QUESTIONS
from tests.reports.extras import EXTRAS

ALWAYS = {"views", "time", "memory", "money", "layout", "drivers", "claims", "assumptions", "question", "reading",
          "method", "sources", "glossary"}  # fmt: skip


def sections(document, lang="en") -> dict[str, Section]:
    return {section.id: section for section in build(document, lang=lang).sections}


def tables(section: Section) -> list[Table]:
    return [block for block in section.blocks if isinstance(block, Table)]


def test_a_plain_answer_has_the_plain_parts_and_no_empty_one():
    assert set(sections(sample.document())) == ALWAYS


@pytest.mark.parametrize("name", list(EXTRAS))
def test_a_part_appears_when_its_data_does(name):
    place = {"money": "beside", "power_caps": "beside"}[name]
    section = sections(sample.document() | {name: EXTRAS[name]}).get(place)

    assert section is not None
    assert section.blocks


@pytest.mark.parametrize("name", list(EXTRAS))
def test_an_empty_part_is_absent(name):
    empty = {} if isinstance(EXTRAS[name], dict) else []

    assert set(sections(sample.document() | {name: empty})) == ALWAYS


@pytest.mark.parametrize("builder", SECTIONS, ids=lambda builder: builder.__name__)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_builder_gives_a_whole_section_or_none(builder, lang):
    for document in (sample.document(), sample.unsupported_document(), sample.document() | EXTRAS):
        section = builder(Facts(checked(document)), words_for(lang))
        assert section is None or (section.id and section.title and section.blocks)


def everything():
    return sample.document() | EXTRAS


@pytest.mark.parametrize("made", [sample.document, sample.several_gpus_document, everything],
                         ids=["one GPU", "three GPUs", "everything"])  # fmt: skip
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_places_and_captions_are_unique_so_that_a_reader_can_tell_them_apart(made, lang):
    built = list(sections(made(), lang).values())
    captions = [table.caption for section in built for table in tables(section)]
    titles = [section.title for section in built]

    assert len({section.id for section in built}) == len(built)
    assert sorted({text for text in captions + titles if (captions + titles).count(text) > 1}) == []


@pytest.mark.parametrize("made", [sample.document, everything], ids=["plain", "everything"])
def test_every_chart_is_followed_by_a_table(made):
    for section in sections(made()).values():
        charts = [
            n
            for n, b in enumerate(section.blocks)
            if isinstance(b, RangeChart | StackChart | ScatterChart | TraceChart)
        ]
        for number in charts:
            assert any(isinstance(block, Table) for block in section.blocks), section.id
            assert section.blocks[number].description


def test_the_two_views_have_the_numbers_of_the_document():
    same, runs, later = tables(sections(sample.document())["views"])
    first = sample.document()["plans"][-1]

    assert [column.head for column in same.columns] == [
        "Precision", "Cost, million $", "Time, days", "Energy, MWh", "Cost of FP8 vs\u00a0this\u00a0row",
        "GPU-hours, million", "Carbon, t CO₂e",
    ]  # fmt: skip
    assert same.rows[0].cells[1].sort == first["cost_usd"]["mid"]
    assert same.rows[0].cells[1].plain == "0.86 (0.65–1.12)"
    assert [row.cells[1].text for row in later.rows] == ["512", "736", "768", "1,952", "12,368"]
    assert runs.rows[0].cells[1].text == "TP8 PP4 DP16 ZeRO-1 MB1×64"


def test_the_items_of_a_step_and_of_memory_add_up_to_their_totals():
    built = sections(sample.document())
    for name, key in (("time", "step_s"), ("memory", "memory_gib")):
        table = tables(built[name])[0]
        for column, plan in enumerate(Facts(checked(sample.document())).fitting(), start=1):
            parts = [row.cells[column].sort for row in table.rows]
            assert sum(parts[:-1]) == pytest.approx(parts[-1])
            total = plan[key]["total"]
            assert parts[-1] == pytest.approx(total["mid"] if key == "memory_gib" else total)


def test_a_chart_s_segment_and_its_row_share_letter_and_colour():
    section = sections(sample.document())["memory"]
    chart = next(block for block in section.blocks if isinstance(block, StackChart))
    rows = {row.cells[0].swatch: row.cells[0] for row in tables(section)[0].rows if row.cells[0].swatch}

    for letter, colour, name in chart.drawing.legend:
        assert (rows[letter].colour, rows[letter].text) == (colour, name)


def test_memory_is_drawn_against_the_capacity_of_the_gpu():
    chart = next(b for b in sections(sample.document())["memory"].blocks if isinstance(b, StackChart))

    assert chart.drawing.limit_text == "capacity 79.6 GiB"
    assert chart.drawing.rows[0].limit == pytest.approx(99.5)


def test_the_cost_tree_ends_in_the_total_of_the_plan():
    table = tables(sections(sample.document())["money"])[0]

    assert [row.cells[0].text for row in table.rows] == ["GPU rental", "Total"]
    assert table.rows[-1].cells[-1].sort == sample.document()["plans"][-1]["cost_usd"]["mid"]


def test_nested_cost_lines_are_indented_under_their_parent():
    document = sample.document()
    line = document["plans"][-1]["cost_lines"][0]
    child = {"id": "own_part", "label": "Reserved part", "usd": line["usd"], "evidence_ids": []}
    document["plans"][-1]["cost_lines"] = [line | {"children": [child]}]
    table = tables(sections(document)["money"])[0]

    assert [row.cells[0].text.strip() for row in table.rows] == ["GPU rental", "Reserved part", "Total"]
    assert table.rows[1].cells[0].text.startswith(" ")


def test_losing_layouts_say_why_they_lost():
    chosen, lost = tables(sections(sample.document())["layout"])

    assert len(chosen.rows) == 5
    assert [row.cells[0].text for row in lost.rows] == ["chosen", "6.0% slower", "24.4 GiB too much"]


def test_a_source_names_the_figures_it_enters_first():
    document = sample.document()
    document["evidence"][0]["used_in"] = ["carbon_tco2e", "cost_usd", "duration_days", "energy_mwh", "mfu", "step_s"]
    source_tables = tables(sections(document)["sources"])
    used = {row.cells[0].text: row.cells[3].text for table in source_tables for row in table.rows}

    assert used["dense BF16 peak 989 TFLOP/s (test row)"] == "Step time"


def test_sources_are_listed_by_kind_best_first():
    captions = [table.caption for table in tables(sections(sample.document())["sources"])]

    assert captions == ["Kind: published", "Kind: datasheet", "Kind: assumed"]


def test_a_web_source_is_a_link_and_any_other_is_not():
    source_tables = tables(sections(sample.document())["sources"])
    links = {row.cells[1].text: row.cells[1].href for table in source_tables for row in table.rows}

    assert links["https://example.org/h100.pdf"] == "https://example.org/h100.pdf"
    assert links["example provider"] is None


def test_gaps_come_before_assumptions_and_say_their_effect():
    built = sections(sample.document(gaps=(sample.GAP,)))["assumptions"]

    assert built.blocks[0].title == "Gaps"
    assert (
        built.blocks[0]
        .items[0]
        .text.endswith(
            "the cost is unknown; give --price, or --price-like with a GPU whose price to use, or run "
            "`mpplan prices add`."
        )
    )


def test_a_dearer_place_has_a_minus_and_an_unlike_grid_no_carbon():
    table = next(t for t in tables(sections(sample.document() | EXTRAS)["beside"]) if "regions" in t.caption)

    assert [[cell.plain for cell in row.cells] for row in table.rows[:2]] == [
        ["Here", "as planned", "860,000", "–", "152.0", "–"],
        ["SWE", "example (north-1)", "700,000", "160,000", "12.0", "140.0"],
    ]
    assert [cell.text for cell in table.rows[2].cells][3:] == ["−40,000", "–", "–"]


ENGLISH = re.compile(r"[A-Za-z]{4,}(?: [a-z]{2,}){2,}")


def messages(value) -> list[dict]:
    """Every message of a document, with those inside it."""
    if isinstance(value, dict):
        nested = [message for inner in value.values() for message in messages(inner)]
        return [value, *nested] if is_message(value) else nested
    return [message for inner in value for message in messages(inner)] if isinstance(value, list) else []


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_everything_that_the_planner_says_is_worded_in_chinese(ask, name):
    document = checked(ask(name))
    worded = [row for row in messages(document) if templates("en")[row["key"]] != templates("zh")[row["key"]]]
    english = {word(message) for message in worded if ENGLISH.search(word(message))}
    page = str(render(document, "markdown", lang="zh"))

    assert len(english) > 5
    assert [text for text in english if text in page] == []


def test_the_page_in_chinese_has_no_english_sentence_outside_of_sources(recorded):
    view = build(recorded, lang="zh")
    texts = []
    for section in view.sections:
        if section.id in ("sources", "question"):
            continue
        texts += [section.title, "".join(span.text for span in section.lead)]
        for table in tables(section):
            texts += [table.caption, *(column.head for column in table.columns)]
            texts += [cell.plain for row in table.rows for cell in row.cells if not cell.foreign]

    assert [text for text in texts if ENGLISH.search(text)] == []

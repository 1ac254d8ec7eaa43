"""What an answer rests on: its gaps, assumptions and inputs, absent where there are none."""

from __future__ import annotations

import pytest

from planner.errors import Message
from planner.question.asked import SOURCES, InputValue
from planner.question.inputs import INPUTS
from reports.document.facts import Facts
from reports.page.build import build, checked
from reports.sections.evidence.basis import assumptions, gap_cell, input_label, input_text, question, reading
from reports.text.language import LANGUAGES, words_for
from tests.reports import sample

WORDS = words_for("en")


def test_a_gap_says_what_is_missing_why_and_its_effect():
    (gap,) = sample.document(gaps=(sample.GAP,))["gaps"]

    text = gap_cell(gap, WORDS).text.replace("\N{NO-BREAK SPACE}", " ")  # the fields of a document are plain text

    assert all(gap[part].rstrip(".") in text for part in ("what", "why", "effect"))


def test_a_document_without_gaps_assumptions_and_inputs_has_neither_part():
    facts = Facts(checked(sample.document() | {"gaps": [], "assumptions": [], "warnings": [], "question": {}}))

    assert assumptions(facts, WORDS) is None
    assert question(facts, WORDS) is None


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_source_of_an_input_has_a_label(lang):
    assert [source for source in SOURCES if not words_for(lang).has(f"given.{source}")] == []


def test_a_short_view_is_the_first_screen_and_short_answer_of_the_whole_one():
    short, whole = (build(sample.document(), short=short) for short in (True, False))

    assert (short.hero, short.brief, short.footer) == (whole.hero, whole.brief, whole.footer)
    assert (short.sections, short.data, short.sliders) == ((), {}, ())
    assert whole.sections


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_input_of_a_question_has_a_name(lang):
    words = words_for(lang)

    assert [entry.name for entry in INPUTS if not words.has(f"input.{entry.name}")] == []


@pytest.mark.parametrize(
    ("budget", "price", "term"),
    [
        (None, True, "The figure to budget with"),
        (2e6, True, "The figure to budget with"),
        (1e6, True, "The high figure"),  # 0.86 million (0.65 to 1.12): the answer does not say to budget it
        (None, False, "The figure to plan with"),
    ],
)
def test_the_high_end_is_explained_by_the_name_that_the_answer_gives_it(budget, price, term):
    budgeted = sample.answer().question | {"budget": InputValue(value=budget, source="flag")}
    document = sample.document(question=budgeted)
    for plan in document["plans"]:
        plan["cost_usd"] = plan["cost_usd"] if price else None
    section = reading(Facts(checked(document)), WORDS)
    assert section is not None

    assert section.blocks[0].pairs[1][0] == term


@pytest.mark.parametrize(
    ("lang", "label"),
    [("en", "Price per GPU-hour, $: H100 SXM5 80\u00a0GB"), ("zh", "每 GPU 小时价格，美元：H100 SXM5 80\u00a0GB")],
)
def test_the_price_of_one_of_several_gpus_is_labelled_with_the_gpu(lang, label):
    assert input_label("price h100-sxm5-80gb", words_for(lang)) == label


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("grid", 0.3835, "0.3835 kg CO₂e per kWh"),  # of the catalogue
        ("grid", "400", "400 g CO₂e per kWh"),  # of the user
        ("grid", "DEU", "DEU"),
        ("market_grid", 50.0, "50 g CO₂e per kWh"),
        ("power_limit", 450.0, "450 W"),
        ("power_limit", "auto", "auto"),
    ],
)
def test_a_factor_or_a_limit_has_its_unit(name, value, text):
    assert input_text(name, {"value": value, "source": "flag", "note": None}, words_for("en")) == text


@pytest.mark.parametrize(("lang", "label"), [("en", "from a file"), ("zh", "来自文件")])
def test_a_price_of_a_file_names_no_particular_file_because_quote_toml_is_one_too(lang, label):
    price = InputValue(value=2.5, source="file", note=Message.of("quote.basis", vendor="Acme", commitment="1y"))
    document = sample.document(question=sample.answer().question | {"price": price})
    section = question(Facts(checked(document)), words_for(lang))
    assert section is not None

    rows = {row.cells[0].text: row.cells[2] for row in section.blocks[0].rows}
    cell = rows[input_label("price", words_for(lang))]
    assert (cell.text, "Acme" in cell.detail) == (label, True)

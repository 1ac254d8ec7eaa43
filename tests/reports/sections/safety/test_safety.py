"""The section as a whole, in every format."""

from __future__ import annotations

import json
import re

import pytest

import reports
from mpplan import estimate
from mpplan.api.document import to_document
from mpplan.ui.schema import check_schema
from planner.answer.document import ESTIMATE_SCHEMA
from planner.answer.invariants import violations
from planner.safety.document import findings_of, tasks_shown
from planner.safety.training import Training
from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.safety.safety import safety
from reports.text.language import words_for
from reports.text.width import columns_of
from reports.view import HistogramChart, IntervalChart
from tests.planner.safety.recorded import PATH, with_policy
from tests.reports import sample
from tests.reports.packed import unpacked
from tests.reports.sections.safety.shown import document_shown, facts_shown

SECTION = re.compile(r'<section id="safety".*?</section>', re.DOTALL)


def test_with_a_run_it_draws_and_without_one_it_says_how_to_find_out():
    drawn, plain = safety(facts_shown(), words_for("en")), safety(facts_shown(run=False), words_for("en"))

    assert drawn is not None
    assert plain is not None
    kinds = [type(block) for block in drawn.blocks]
    assert HistogramChart in kinds
    assert kinds.count(IntervalChart) == 2
    assert not {HistogramChart, IntervalChart} & {type(block) for block in plain.blocks}
    assert "`mpplan estimate --numerics FILE` adds the result here" in "".join(span.text for span in plain.lead)


def test_an_answer_of_an_earlier_version_has_no_such_section():
    assert safety(Facts(checked(sample.document())), words_for("en")) is None


@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_every_format_has_it(lang):
    words = words_for(lang)

    for form, key in (("html", "safety.title"), ("markdown", "safety.title"), ("terminal", "table.parity")):
        assert words(key) in str(reports.render(document_shown(), form, lang=lang))


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_no_line_of_it_is_longer_than_the_terminal(lang, width):
    for brief in (False, True):
        text = str(reports.render(document_shown(), "terminal", lang=lang, width=width, brief=brief))
        assert max(columns_of(line) for line in text.splitlines()) <= width


def test_the_section_is_small_and_well_formed():
    page = str(reports.render(document_shown(), "html"))
    section = SECTION.search(page)

    assert section
    assert len(section[0].encode()) < 18_000
    assert "NaN" not in section[0]
    assert "None" not in section[0]
    assert "`" not in section[0]


def test_the_document_that_a_drawn_page_holds_can_be_rendered_again():
    page = str(reports.render(document_shown(), "html"))
    head, _, tail = unpacked(page)
    held = head | tail

    check_schema(held, ESTIMATE_SCHEMA, "page")
    assert list(violations(held)) == []
    assert SECTION.search(str(reports.render(held, "html")))


def test_a_loss_that_may_have_fallen_is_no_fault_of_a_saved_answer():
    held = json.loads(json.dumps(document_shown()))
    for point in held["numerics"]["mixtures"]:
        point |= {"loss_change": -0.001, "loss_range": {"low": -0.01, "mid": -0.001, "high": 0.008}}

    check_schema(held, ESTIMATE_SCHEMA, "answer")
    assert SECTION.search(str(reports.render(held, "html")))


@pytest.mark.parametrize("part", ["prices", "names"])
def test_what_is_left_out_is_not_in_it(part):
    document = document_shown()
    text = str(reports.render(document, "markdown", redact=[part]))

    assert "NVFP4" in text
    if part == "prices":
        assert "$" not in text
        assert "GPU-hours per nat" in text
    else:
        assert "EPYC" not in text
        assert "numerics.json" not in text


LIMIT_BYTES = 150_000


@pytest.mark.parametrize("lang", reports.LANGUAGES)
@pytest.mark.parametrize("asked", [{}, {"gpu": "b200-sxm-180gb", "precision": "nvfp4"}])
def test_the_page_of_a_70b_plan_is_at_most_150_kb_with_it(asked, lang):
    document = to_document(estimate(params="70B", numerics=str(PATH), **asked))

    assert document["numerics"] is not None
    assert len(str(reports.render(document, "html", lang=lang)).encode()) <= LIMIT_BYTES


@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_it_is_so_with_a_policy_and_all_intervals_too(monkeypatch, lang):
    trained = Training(findings=findings_of(with_policy(), "x.json"), shown=tasks_shown(with_policy(), "x.json")[:1])
    monkeypatch.setattr("mpplan.api.safety.named_training", lambda name: trained)
    document = to_document(estimate(params="70B", gpu="b200-sxm-180gb", precision="nvfp4", numerics="x.json"))

    assert {point["kind"] for point in document["numerics"]["mixtures"]} == {"policy", "schedule"}
    assert len(str(reports.render(document, "html", lang=lang)).encode()) <= LIMIT_BYTES

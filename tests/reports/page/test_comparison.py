from __future__ import annotations

import csv
import io
import json
import re

import pytest

import reports
from planner.errors import InputFileError
from planner.question.asked import InputValue
from reports.page.comparison import build_comparison, change_of
from tests.reports import sample


def other() -> dict[str, object]:
    """The same question at a lower price."""
    plans = tuple(sample.plan(name, price=2.0) for name in sample.SPEED)
    question = sample.answer().question | {"price": InputValue(value=2.0, source="flag")}
    return sample.document(plans=plans, question=question)


def said(spans) -> str:
    return "".join(span.text for span in spans)


def test_the_headline_says_what_changes():
    hero = build_comparison(sample.document(), other(), names=("before", "after")).hero

    assert said(hero.headline) == (
        "after costs 20% less than before: $0.69 million (0.52–0.90) instead of $0.86 million (0.65–1.12)."
    )


def test_without_a_price_the_headline_is_of_gpu_hours():
    first, second = sample.document(), sample.document()
    for document, hours in ((first, 1.0), (second, 1.25)):
        for plan in document["plans"]:
            plan["cost_usd"] = None
            plan["gpu_hours"] = {end: plan["gpu_hours"][end] * hours for end in ("low", "mid", "high")}

    text = said(build_comparison(first, second, names=("before", "after")).hero.headline)

    assert text.startswith("after takes 25% more GPU-hours than before: ")


def test_the_headline_in_chinese():
    hero = build_comparison(sample.document(), other(), names=("甲", "乙"), lang="zh").hero

    assert said(hero.headline) == "乙的费用比甲低 20%：为 69 万美元（52–90），原为 86 万美元（65–112）。"


def test_a_large_change_is_told_in_times_and_never_as_all_of_it():
    cheap = sample.document()
    for plan in cheap["plans"]:
        plan["cost_usd"] = {end: value / 400 for end, value in plan["cost_usd"].items() if end != "at_least"}
    fewer, more = (build_comparison(*pair, names=("a", "b")).hero for pair in ((other(), cheap), (cheap, other())))
    assert fewer.table is not None

    assert said(fewer.headline).startswith("a costs 320 times as much as b: ")
    assert said(more.headline).startswith("b costs 320 times as much as a: ")
    assert fewer.table.rows[0].cells[3].text == "−99.7%"


def test_a_plan_that_costs_nothing_is_all_of_the_cost_less():
    free = sample.document()
    for plan in free["plans"]:
        plan["cost_usd"] = {"low": 0.0, "mid": 0.0, "high": 0.0}

    assert said(build_comparison(other(), free, names=("a", "b")).hero.headline).startswith("b costs 100% less than a:")


def bounded(document):
    """The document with costs from which something is missing."""
    for plan in document["plans"]:
        plan["cost_usd"] = plan["cost_usd"] | {"at_least": True}
    return document


@pytest.mark.parametrize(
    ("first", "second", "told", "change", "tone"),
    [
        (sample.document(), bounded(other()), "b costs at most 20% less than a:", "≥ −20%", ""),
        (bounded(sample.document()), other(), "b costs at least 20% less than a:", "≤ −20%", "good"),
        (other(), bounded(sample.document()), "b costs at least 25% more than a:", "≥ +25%", "bad"),
        (bounded(other()), sample.document(), "b costs at most 25% more than a:", "≤ +25%", ""),
        (bounded(sample.document()), bounded(other()), "b costs perhaps 20% less than a:", "−20%", ""),
        (sample.document(), bounded(sample.document()), "b costs at least as much as a:", "≥ 0%", ""),
    ],
)
def test_a_figure_that_lacks_something_bounds_the_difference_on_one_side(first, second, told, change, tone):
    hero = build_comparison(first, second, names=("a", "b")).hero
    lacking = [name for name, doc in (("a", first), ("b", second)) if doc["plans"][0]["cost_usd"].get("at_least")]
    assert hero.table is not None
    cell = hero.table.rows[0].cells[3]

    assert said(hero.headline).startswith(told)
    assert (cell.text, cell.tone) == (change, tone)
    assert said(hero.headline).endswith(
        f"The figure of {lacking[0]} is a lower bound: something is missing from it."
        if len(lacking) == 1
        else "something is missing from each, so their difference is not known."
    )


def test_a_lower_bound_many_times_as_large_is_at_least_that():
    dear = bounded(sample.document())
    for plan in dear["plans"]:
        plan["cost_usd"] |= {end: plan["cost_usd"][end] * 400 for end in ("low", "mid", "high")}

    assert said(build_comparison(other(), dear, names=("a", "b")).hero.headline).startswith(
        "b costs at least 500 times"
    )
    assert said(build_comparison(dear, other(), names=("a", "b"), lang="zh").hero.headline).startswith(
        "a 的费用至少是 b 的 500 倍"
    )
    assert build_comparison(other(), dear).data["document"]["changes"][0]["second_at_least"] is True


def test_plans_of_different_trainings_are_said_to_be():
    longer = sample.document()
    longer["question"]["tokens"]["value"] *= 2

    assert build_comparison(sample.document(), other()).hero.alerts == ()
    (alert,) = build_comparison(sample.document(), longer).hero.alerts
    assert alert.startswith("The two plans are not for the same training: ")


def test_the_terminal_has_what_was_asked_differently_and_leaves_sources_to_the_page():
    changed = other()
    changed["evidence"] = []
    text = str(reports.render_comparison(sample.document(), changed, "terminal", width=100))
    page = str(reports.render_comparison(sample.document(), changed, "markdown"))

    assert "Inputs that differ" in text
    assert ("Sources used only in" in text, "Sources used only in" in page) == (False, True)


def test_only_the_inputs_that_differ_are_listed():
    sections = {section.id: section for section in build_comparison(sample.document(), other()).sections}
    rows = sections["inputs"].blocks[0].rows

    assert [[cell.text for cell in row.cells] for row in rows] == [["Price per GPU-hour, $", "–", "2"]]


def test_changes_are_marked_good_when_they_save_and_bad_when_they_cost():
    table = build_comparison(other(), sample.document()).hero.table
    tones = {row.cells[0].text.split(",")[0]: (row.cells[3].text, row.cells[3].tone) for row in table.rows}

    assert tones["Cost"] == ("+25%", "bad")
    assert tones["Time"] == ("0%", "")


def test_a_change_needs_both_figures():
    assert change_of(None, sample.document()["plans"][0], "cost_usd") is None
    assert change_of(sample.document()["plans"][0], other()["plans"][0], "cost_usd") == pytest.approx(-0.2)


def test_an_answer_that_does_not_fit_is_said():
    document = sample.unsupported_document()
    document["question"]["precision"]["value"] = "fp32"
    hero = build_comparison(sample.document(), document).hero

    assert "cannot be compared" in said(hero.headline)
    assert "FP32 (strict) cannot train" in said(hero.setting)


@pytest.mark.parametrize("fmt", ["html", "markdown", "terminal", "csv", "json"])
@pytest.mark.parametrize("lang", reports.LANGUAGES)
def test_every_form_tells_the_comparison(fmt, lang):
    text = reports.render_comparison(sample.document(), other(), fmt, lang=lang)

    assert isinstance(text, str)
    assert text.endswith("\n")


def test_the_json_holds_both_documents_and_the_changes():
    document = json.loads(str(reports.render_comparison(sample.document(), other(), "json", names=("a", "b"))))
    cost = next(row for row in document["changes"] if (row["precision"], row["metric"]) == ("fp8", "cost_usd"))

    assert document["schema"] == "mpplan.comparison/1"
    assert document["names"] == ["a", "b"]
    assert document["first"]["plans"][0]["precision"] == "fp32"
    assert cost["change_ratio"] == pytest.approx(-0.2)


def test_the_csv_has_a_row_per_precision_and_figure():
    rows = list(csv.DictReader(io.StringIO(str(reports.render_comparison(sample.document(), other(), "csv")))))

    assert len(rows) == 5 * 6
    assert (rows[0]["precision"], rows[0]["metric"]) == ("fp8", "cost_usd")
    assert float(rows[0]["first_mid"]) == sample.document()["plans"][-1]["cost_usd"]["mid"]


def test_names_are_left_out_when_asked_to():
    text = reports.render_comparison(
        sample.document(), other(), "markdown", names=("aurora", "borealis"), redact=["names"]
    )

    assert "aurora" not in str(text)
    assert "From A to B" in str(text)


def test_a_document_that_is_none_is_named():
    with pytest.raises(InputFileError, match="second: schema"):
        build_comparison(sample.document(), {}, names=("first", "second"))


def test_one_real_plan_is_compared_with_another(ask):
    text = reports.render_comparison(ask("fp8"), ask("three GPUs"), "terminal", width=100)

    assert "GPU-hours" in str(text)


def test_grid_factors_of_two_plans_are_told_with_what_they_count(ask):
    first, second = ask("fp8"), ask("fp8")
    grid = next(source for source in second["evidence"] if "carbon_tco2e.grid_factor" in source["used_in"])
    grid["what"] = "Virginia: 244.8 g CO₂e per kWh of 2023, location-based, direct emissions of power plants only"
    second["question"]["grid"]["value"] = 0.2448

    text = str(reports.render_comparison(first, second, "terminal", names=("a", "b"), width=100))

    assert re.search(r"Grid +0\.3835 kg CO₂e per kWh +0\.2448 kg CO₂e per kWh", text)
    told = " ".join(text.split())
    assert "- a: United States: 383.5 g CO₂e per kWh of 2024, location-based, life cycle" in told
    assert "- b: Virginia: 244.8 g CO₂e per kWh of 2023, location-based, direct emissions" in told
    same = str(reports.render_comparison(first, first, "terminal", names=("a", "b")))
    assert "Grid factors" not in same

"""Precisions side by side: what a reference does to a scale, and when a saving is good or bad."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reports.document.facts import Facts
from reports.page.build import build, checked
from reports.sections.comparison.curve import short_curve
from reports.sections.comparison.precisions import (
    comparison_table,
    metric_chart,
    metric_columns,
    narrow_notes,
    overview_table,
    short_table,
    views,
)
from reports.text.language import words_for
from reports.view import Cell, RangeChart
from tests.reports import sample

WORDS = words_for("en")


def facts_of(asked: str = "fp8") -> Facts:
    document = sample.document()
    document["question"]["precision"]["value"] = asked
    return Facts(checked(document))


def facts_of_document(document: dict[str, Any]) -> Facts:
    return Facts(checked(document))


def test_a_reference_that_takes_many_times_as_long_does_not_set_the_scale():
    drawing = metric_chart(facts_of(), "cost_usd", WORDS).drawing
    fp8, *_, tf32, fp32 = drawing.rows

    # FP32 runs at 0.06 of BF16's speed, TF32 at 0.38: the axis is that of TF32
    assert (fp32.beyond, fp32.high) == (True, 100)
    assert not tf32.beyond
    assert 50 < tf32.high <= 100
    assert (fp8.strong, fp8.quiet, fp32.quiet) == (True, False, True)
    # cost goes with hours, and hours with 1 / speed
    assert tf32.mid / fp8.mid == pytest.approx(1.45 / 0.38, rel=0.002)


@pytest.mark.parametrize(("fitting", "charts"), [(2, 2), (1, 1)])
def test_a_chart_with_a_single_bar_is_left_out(fitting, charts):
    document = sample.document()
    for plan in document["same_deadline"][: len(document["same_deadline"]) - fitting]:
        plan |= {"fits": False, "why_not": "above the cap"}
    section = views(facts_of_document(document), WORDS)

    assert section is not None
    assert sum(isinstance(block, RangeChart) for block in section.blocks) == charts


def test_where_no_precision_fits_the_table_has_reasons_in_place_of_figures():
    document = sample.document()
    for plan in document["plans"]:
        plan |= {"fits": False, "why_not": "needs 25.2 GiB"}
    facts = facts_of_document(document)

    for table in (comparison_table(facts, "plans", WORDS), overview_table(facts, WORDS)):
        assert table is not None
        assert [(column.head, column.numeric) for column in table.columns] == [("Precision", False), ("Reason", False)]
        assert {len(row.cells) for row in table.rows} == {2}


def bf16_saving(low: float, mid: float, high: float) -> Cell:
    """The cell of BF16 in the column of what the asked precision saves, with this saving of cost."""
    document = sample.document()
    for saving in document["savings"]:
        if (saving["view"], saving["metric"], saving["from"]) == ("same_gpus", "cost_usd", "bf16"):
            saving |= {"low": low, "mid": mid, "high": high}
    table = comparison_table(Facts(checked(document)), "plans", WORDS)
    saved = next(n for n, column in enumerate(table.columns) if "vs\u00a0this\u00a0row" in column.head)
    return next(row for row in table.rows if row.cells[0].text == "BF16").cells[saved]


@pytest.mark.parametrize(
    ("low", "mid", "high", "tone"),
    [(0.1, 0.3, 0.4, "good"), (-0.4, -0.3, -0.1, "bad"), (-0.1, 0.1, 0.3, ""), (0.0, 0.1, 0.2, ""),
     (-0.2, -0.1, 0.0, "")],
)  # fmt: skip
def test_a_saving_is_good_or_bad_only_where_its_whole_range_is(low, mid, high, tone):
    cell = bf16_saving(low, mid, high)

    assert cell.tone == tone
    assert cell.sort == mid


@pytest.mark.parametrize(
    ("low", "mid", "high", "text"),
    [(-0.21, 0.0001, 0.174, "about 0% (−21 to 17)"), (-0.066, -0.003, 0.067, "about 0% (−7 to 7)"),
     (-0.1, 0.016, 0.1, "2% less (−10 to 10)"), (0.001, 0.003, 0.004, "0.3% less (0.1–0.4)"),
     (-0.62, -0.48, -0.35, "48% more (35–62)"), (-0.15, -0.03, 0.08, "3% more (−8 to 15)"), (0.0, 0.0, 0.0, "0%"),
     (0.0, 0.0, 0.366, "0 to 37% less"), (-0.42, 0.0, 0.0, "0 to 42% more"), (-2e-16, 0.0, 2e-16, "0%")],
)  # fmt: skip
def test_what_the_asked_precision_costs_beside_another_is_told_in_words(low, mid, high, text):
    cell = bf16_saving(low, mid, high)

    assert cell.plain == text


def test_the_asked_precision_saves_nothing_against_itself():
    table = comparison_table(facts_of(), "plans", WORDS)
    saved = next(n for n, column in enumerate(table.columns) if "vs\u00a0this\u00a0row" in column.head)
    own = next(row for row in table.rows if row.strong)

    assert (own.cells[saved].text, own.cells[saved].sort) == (WORDS("saving.itself"), None)


@pytest.mark.parametrize("asked", ["fp8", "bf16", "fp16", "fp32"])
def test_the_short_table_has_a_row_for_whatever_the_headline_compares(asked):
    document = sample.document()
    document["question"]["precision"]["value"] = asked
    for plan in document["plans"]:
        if plan["precision"] in ("fp8", "tf32") and asked != plan["precision"]:
            plan["fits"] = False  # as on a GPU that has neither: FP16 is then what the headline compares with
    headline = "".join(span.text for span in build(document).hero.headline)
    rows = {row.cells[0].text for row in short_table(facts_of_document(document), WORDS).rows}

    told = {WORDS.name("precision", name) for name in ("bf16", "fp16", "fp32", "fp8", "tf32")}
    assert {name for name in told if name in headline} <= rows
    assert "FP16" in headline


def test_without_a_price_the_short_table_has_the_gpu_hours_whose_saving_it_shows():
    document = sample.document()
    for plan in document["plans"]:
        plan["cost_usd"] = None
    priced, unpriced = (short_table(Facts(checked(answer)), WORDS) for answer in (sample.document(), document))

    assert [column.head for column in priced.columns] == [
        "Precision", "Cost, million $", "Time, days", "Energy, MWh", "Cost of FP8 vs\u00a0this\u00a0row",
    ]  # fmt: skip
    assert [column.head for column in unpriced.columns] == [
        "Precision", "Time, days", "Energy, MWh", "GPU-hours of FP8 vs\u00a0this\u00a0row", "GPU-hours, million",
    ]  # fmt: skip


def test_metrics_that_no_plan_has_get_no_column():
    document = sample.document()
    for plan in document["plans"]:
        plan["cost_usd"] = None
    columns = metric_columns(
        facts_of_document(document), facts_of_document(document).fitting(), ("cost_usd", "duration_days"), WORDS
    )

    assert [name for name, _, _ in columns] == ["duration_days"]


def test_by_the_same_deadline_each_precision_has_its_own_number_of_gpus():
    same, later = (comparison_table(facts_of(), view, WORDS) for view in ("plans", "same_deadline"))

    assert len(later.columns) == len(same.columns) + 1
    # 512 x 1.45 / speed, in whole nodes of 8
    assert [row.cells[1].sort for row in later.rows] == [512, 736, 768, 1952, 12368]


def test_sentences_and_tables_tell_a_figure_in_one_unit():
    document = sample.targets_document()
    for part in ("plans", "curve"):
        for row in document[part]:
            row["energy_mwh"] = {"low": 500.0, "mid": 700.0, "high": 1100.0}
    document["curve"][-1]["energy_mwh"] = {"low": 1100.0, "mid": 1300.0, "high": 1900.0}
    for plan in document["plans"]:
        plan["cost_usd"] = {"low": 150e3, "mid": 340e3, "high": 800e3}
    facts = facts_of_document(document)

    short, around = short_table(facts, WORDS), short_curve(facts, WORDS)
    assert around is not None
    units = [[c.head for c in table.columns if c.head.startswith(("Cost,", "Energy,"))] for table in (short, around)]
    assert sorted(units[0]) == sorted(units[1]) == ["Cost, million $", "Energy, GWh"]
    hero = build(document).hero
    assert "$0.34 million" in "".join(span.text for span in hero.headline)
    assert "$0.80 million" in "".join(span.text for span in hero.budget)


def test_the_time_of_a_plan_is_in_the_same_unit_in_every_table():
    document = sample.targets_document()
    for row in document["plans"]:
        row["duration_days"] = {"low": 0.05, "mid": 0.16, "high": 0.6}
    for row in document["curve"]:
        row["duration_days"] = {
            end: size * 512 / row["gpus"] for end, size in (("low", 0.05), ("mid", 0.16), ("high", 0.6))
        }
    facts = facts_of_document(document)

    short, around = short_table(facts, WORDS), short_curve(facts, WORDS)
    assert around is not None
    heads = [[c.head for c in table.columns if c.head.startswith("Time")] for table in (short, around)]
    assert heads == [["Time, hours"], ["Time, hours"]]


def test_a_time_far_beyond_the_plans_is_in_a_larger_unit():
    document = sample.document()
    for row in document["plans"]:
        days = 0.02 if row["precision"] == "fp8" else 100.0
        row["duration_days"] = {"low": days, "mid": days, "high": days}

    heads = [column.head for column in short_table(facts_of_document(document), WORDS).columns]
    assert "Time, hours" in heads  # 144,000 minutes are too long to read


def test_what_is_little_beside_the_answer_is_told_in_a_smaller_unit():
    document = sample.document()
    document["question"]["precision"]["value"] = "bf16"
    for saving in document["savings"]:
        if (saving["from"], saving["to"], saving["metric"]) == ("bf16", "fp8", "cost_usd"):
            saving["amount"] = {"low": 39e3, "mid": 85e3, "high": 204e3}

    assert "FP8 would save $85,000 (39,000–204,000)" in "".join(span.text for span in build(document).hero.headline)


def risky_document(asked: str, *risky: str) -> dict[str, Any]:
    """The sample's question with some precisions that may run out of memory more often than is allowed."""
    document = sample.document()
    document["question"]["precision"]["value"] = asked
    document["question"]["memory_risk"] = {"value": "5%", "source": "default", "note": None}
    for plan in document["plans"]:
        plan["memory_risk"] = 0.27 if plan["precision"] in risky else 0.05
    return document


def test_a_plan_that_breaks_the_risk_allowed_is_marked_with_its_risk():
    table = short_table(facts_of_document(risky_document("bf16", "fp8")), WORDS)

    assert [row.cells[0].text for row in table.rows][:2] == ["FP8 *", "BF16"]
    assert table.notes == ("* FP8: this plan runs out of memory with a probability of 27%.",)
    bolder = risky_document("bf16", "fp8")
    bolder["question"]["memory_risk"]["value"] = "0.3"
    del (silent := risky_document("bf16", "fp8"))["question"]["memory_risk"]
    assert short_table(facts_of_document(bolder), WORDS).notes == ()
    assert short_table(facts_of_document(silent), WORDS).notes == ()


@pytest.mark.parametrize(
    ("asked", "risky", "told"),
    [
        ("bf16", (), {"FP8", "TF32", "FP16"}),
        ("bf16", ("fp8", "tf32"), {"FP16", "FP32"}),
        ("bf16", ("bf16", "fp8", "tf32"), {"FP8", "TF32", "FP16"}),  # its own plan is as risky
    ],
)
def test_the_headline_compares_with_no_plan_that_is_riskier_than_is_allowed(asked, risky, told):
    headline = "".join(span.text for span in build(risky_document(asked, *risky)).hero.headline)

    assert {name for name in ("FP8", "FP16", "TF32", "FP32") if re.search(rf"\b{name}\b", headline)} == told


@pytest.mark.parametrize(
    ("ratio", "pays", "words"),
    [
        (
            1.5,
            1024.0,
            "FP8 runs 1.50× as fast as BF16, casts included; a product of these proportions pays off from hidden ",
        ),
        (0.9, 8192.0, "FP8 runs 0.90× as fast as BF16, casts included; a product of these proportions pays off only "),
        (0.9, None, "a product of these proportions does not pay off at any larger hidden size that was measured."),
    ],
)
def test_beside_the_runs_stands_what_a_narrow_type_gains_at_the_largest_product(ratio, pays, words):
    gain = {"m": 8192.0, "n": 14336.0, "k": 4096.0, "hidden": 4096.0, "gain_ratio": ratio, "pays_from_hidden": pays}
    plans = [{"precision": "fp8", "narrow_gain": gain}, {"precision": "bf16", "narrow_gain": None}]

    (note,) = narrow_notes(plans, WORDS)

    assert note.startswith("For the largest matrix product (14,336 × 4,096, 8,192 tokens) FP8 runs")
    assert words in note


@pytest.mark.parametrize(("ratio", "times", "noted"), [(0.9, 1.1, True), (0.9, 0.8, False), (1.1, 1.1, False)])
def test_the_short_table_says_why_a_narrow_type_is_slower_where_its_products_are(ratio, times, noted):
    gain = {"m": 8192.0, "n": 14336.0, "k": 4096.0, "hidden": 4096.0, "gain_ratio": ratio, "pays_from_hidden": None}
    document = sample.document()
    narrow, wide = (next(p for p in document["plans"] if p["precision"] == name) for name in ("fp8", "bf16"))
    narrow["narrow_gain"] = gain
    narrow["gpu_hours"] = {"at_least": False} | {end: times * wide["gpu_hours"][end] for end in ("low", "mid", "high")}

    notes = short_table(facts_of_document(document), WORDS).notes

    assert any("FP8 runs 0.90× as fast as BF16" in note for note in notes) == noted


def test_an_answer_whose_sizes_are_of_another_product_has_no_such_note():
    gain = {"m": 1.0, "n": 1.0, "k": 1.0, "gain_ratio": 1.0, "pays_from_hidden": None}

    assert narrow_notes([{"precision": "fp8", "narrow_gain": gain}], WORDS) == ()


def test_a_batch_other_than_the_asked_precision_s_is_said_under_the_table():
    document = sample.document()
    for plan in document["same_deadline"]:
        plan["layout"] = document["plans"][0]["layout"]
    assert comparison_table(facts_of_document(document), "same_deadline", WORDS).notes == ()
    other = next(plan for plan in document["same_deadline"] if plan["precision"] == "tf32")
    other["layout"] = other["layout"] | {"grad_accum": 80}

    (note,) = comparison_table(facts_of_document(document), "same_deadline", WORDS).notes
    assert "TF32" in note
    assert "1,280 sequences per step: with 1,024" in note


@pytest.mark.parametrize(
    ("asked", "several", "expected"),
    [
        ("30d", False, "Same deadline, 30 days: each"),
        (None, False, "Same deadline, 30 days (which FP8 meets with 80% probability): each"),
        (
            None,
            True,
            "Same deadline, 30 days (which FP8 on H100 SXM5 80\N{NO-BREAK SPACE}GB meets with 80% probability): each",
        ),
    ],
)
def test_a_deadline_that_nobody_set_says_whose_time_it_is(asked, several, expected):
    document = sample.several_gpus_document() if several else sample.document()
    document |= {"deadline_days": 30.0, "confidence": 0.8}
    document["question"]["deadline"] = {"value": asked, "source": "flag" if asked else "default", "note": None}
    facts = facts_of_document(document)

    assert (comparison_table(facts, "same_deadline", WORDS).caption or "").startswith(expected)

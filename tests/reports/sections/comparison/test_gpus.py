"""Several GPUs: bars on one axis, cost where any is known and GPU-hours where none is, reasons of those left out."""

from __future__ import annotations

from typing import Any

import pytest

from reports.document.facts import Facts
from reports.formats import html, markdown, terminal
from reports.page.build import build, checked
from reports.sections.comparison.gpus import gpus
from reports.text.language import words_for
from reports.view import RangeChart, Section, Table
from tests.reports import sample

WORDS = words_for("en")


def section_of(document: dict[str, Any]) -> Section:
    section = gpus(Facts(checked(document)), WORDS)
    assert section is not None
    return section


def test_a_single_gpu_is_not_compared_with_itself():
    assert gpus(Facts(checked(sample.document())), WORDS) is None


def test_bars_are_as_long_as_what_each_gpu_costs():
    chart = section_of(sample.several_gpus_document()).blocks[0]
    assert isinstance(chart, RangeChart)
    h100, h200, b200 = (row.mid for row in chart.drawing.rows)

    # price over speed against the H100: 3.2 / 2.5 / 1.05 and 4.6 / 2.5 / 2.1
    assert h200 / h100 == pytest.approx(3.2 / 2.5 / 1.05, abs=0.002)
    assert b200 / h100 == pytest.approx(4.6 / 2.5 / 2.1, abs=0.002)
    assert [row.strong for row in chart.drawing.rows] == [False, False, True]  # the cheapest leads


def test_without_any_price_gpu_hours_are_drawn():
    document = sample.several_gpus_document()
    for plan in document["plans"]:
        plan["cost_usd"] = None
    chart = section_of(document).blocks[0]
    assert isinstance(chart, RangeChart)
    h100, _, b200 = (row.mid for row in chart.drawing.rows)

    assert b200 / h100 == pytest.approx(1 / 2.1, abs=0.002)


def test_a_gpu_on_which_it_does_not_fit_is_in_the_table_with_its_reason_and_not_in_the_chart():
    document = sample.several_gpus_document()
    for plan in document["plans"]:
        if plan["gpu"] == "h200-sxm-141gb":
            plan |= {"fits": False, "why_not": "needs 151 GiB per GPU, 10.6 GiB more than there is"}
    chart, table = section_of(document).blocks[:2]
    assert isinstance(chart, RangeChart)
    assert isinstance(table, Table)

    assert len(chart.drawing.rows) == 2
    assert len(table.rows) == 3
    assert [len(row.cells) for row in table.rows] == [7, 2, 7]
    assert table.rows[1].cells[1].tone == "bad"


A100 = "a100-sxm4-80gb"


def lacking_document() -> dict[str, Any]:
    """The sample on two GPUs with FP8 asked, which one of them lacks: its plans are in the others."""
    document = sample.several_gpus_document()
    document["plans"] = [p for p in document["plans"] if (p["gpu"], p["precision"]) != ("h200-sxm-141gb", "fp8")]
    document["plans"] = [p | {"gpu": A100} if p["gpu"] == "h200-sxm-141gb" else p for p in document["plans"]]
    reason = "does not support FP8 matrix multiplication in hardware"
    lacks = {"precision": "fp8", "gpu": A100, "reason": reason, "instead": "bf16"}
    return document | {"unsupported": [lacks]}


def test_a_gpu_that_lacks_the_precision_keeps_its_row_with_what_it_lacks_and_its_best_plan():
    blocks = section_of(lacking_document()).blocks
    table = next(block for block in blocks if isinstance(block, Table))
    row = next(row for row in table.rows if row.cells[0].text.startswith("A100"))

    assert row.cells[0].detail == "in BF16: it has no FP8"
    assert len(row.cells) == len(table.columns)
    assert row == table.rows[-1]  # after those that can be ranked
    assert isinstance(blocks[0], RangeChart)
    assert len(blocks[0].drawing.rows) == 2  # another training: no bar beside the others


def test_the_table_of_such_a_gpu_compares_with_its_best_precision():
    document = lacking_document()
    for saving in document["savings"]:
        saving["gpu"] = A100 if saving["gpu"] == "h200-sxm-141gb" else saving["gpu"]
    blocks = section_of(document).blocks
    table = next(block for block in blocks if isinstance(block, Table) and block.caption.startswith("On A100"))
    strong = [row.cells[0].text for row in table.rows if row.strong]

    assert strong == ["BF16"]
    assert any("of BF16 vs\u00a0this\u00a0row" in column.head for column in table.columns)


def test_a_gpu_without_a_price_says_so_and_stands_after_those_that_are_ranked():
    document = sample.several_gpus_document()
    for plan in document["plans"]:
        if plan["gpu"] == "h100-sxm5-80gb":
            plan["cost_usd"] = None
    chart, table = section_of(document).blocks[:2]
    assert isinstance(chart, RangeChart)
    assert isinstance(table, Table)

    assert table.rows[-1].cells[0].text.startswith("H100")
    assert [cell.text for cell in table.rows[-1].cells].count(WORDS("gpus.unpriced")) == 1
    assert len(chart.drawing.rows) == 2


H200 = "H200 SXM 141\N{NO-BREAK SPACE}GB"


def risky_document(allowed: str) -> dict[str, Any]:
    """The sample on several GPUs, on one of which the plan may run out of memory."""
    document = sample.several_gpus_document()
    document["question"]["memory_risk"] = {"value": allowed, "source": "default", "note": None}
    for plan in document["plans"]:
        plan["memory_risk"] = 0.24 if plan["gpu"] == "h200-sxm-141gb" else 0.0
    return document


def test_a_gpu_whose_plan_breaks_the_risk_allowed_is_marked_with_its_risk():
    table, calm = (section_of(risky_document(allowed)).blocks[1] for allowed in ("5%", "30%"))
    assert isinstance(table, Table)
    assert isinstance(calm, Table)

    assert [row.cells[0].text for row in table.rows if "*" in row.cells[0].text] == [f"{H200} *"]
    assert table.notes == (f"* {H200}: this plan runs out of memory with a probability of 24%.",)
    assert calm.notes == ()
    assert not any("*" in row.cells[0].text for row in calm.rows)


@pytest.mark.parametrize(
    ("render", "lang", "note"),
    [
        (terminal.render, "en", "H200 SXM 141 GB: this plan runs out of memory with a probability of 24%"),
        (markdown.render, "en", "H200 SXM 141 GB: this plan runs out of memory with a probability of 24%"),
        (html.render, "en", "H200 SXM 141 GB: this plan runs out of memory with a probability of 24%"),
        (markdown.render, "zh", "H200 SXM 141 GB：该方案显存不足的概率为 24%"),
    ],
)
def test_the_mark_and_its_note_are_in_every_format(render, lang, note):
    shown = render(build(risky_document("5%"), lang=lang)).replace("\\*", "*").replace("\N{NO-BREAK SPACE}", " ")

    assert "H200 SXM 141 GB *" in shown
    assert f"* {note}" in shown


def lead_of(document: dict[str, Any]) -> str:
    return "".join(span.text for span in section_of(document).lead)


def test_the_lead_says_which_gpu_the_first_screen_shows():
    document = sample.several_gpus_document()
    assert lead_of(document).endswith("The first screen shows the cheapest.")

    for plan in document["plans"]:
        if plan["gpu"] == "b200-sxm-180gb":
            plan |= {"cost_usd": None, "cost_lines": []}
    assert lead_of(document).endswith(
        "the cheapest of those with a price; none is known for B200 SXM 180\N{NO-BREAK SPACE}GB."
    )
    assert (
        "Not compared in cost, since no price is known: B200 SXM 180\N{NO-BREAK SPACE}GB."
        in build(document).hero.alerts
    )

    for plan in document["plans"]:
        plan |= {"cost_usd": None, "cost_lines": []}
    assert lead_of(document).endswith("Without prices, the first screen shows the first GPU on which the run fits.")
    assert not any("no price is known" in alert for alert in build(document).hero.alerts)


def test_with_a_budget_alone_the_first_screen_shows_the_soonest_end():
    document = sample.several_gpus_document()
    for plan in document["plans"]:
        plan["probability"] = {"budget": 0.9, "deadline": None}

    assert lead_of(document).endswith("the one that finishes soonest within the budget.")

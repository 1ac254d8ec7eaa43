"""The cost tree and the table of energy: lines as they nest, items that sum, one unit for a column."""

from __future__ import annotations

from typing import Any

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.breakdown.money import ENERGY_ITEMS, bill_in_words, money, more_carbon
from reports.text.language import words_for
from reports.view import Items, Prose, Section, Table
from tests.reports import sample

WORDS = words_for("en")


def ends(mid: float) -> dict[str, Any]:
    return {"low": mid * 0.9, "mid": mid, "high": mid * 1.2, "at_least": False}


def line(name: str, mid: float, **more: Any) -> dict[str, Any]:
    base = {"id": name, "label": name, "usd": ends(mid), "quantity": None, "unit": "", "unit_price_usd": None}
    return base | {"evidence_ids": []} | more


def section_of(**fp8: Any) -> Section:
    document = sample.document()
    document["plans"][-1] |= fp8
    section = money(Facts(checked(document)), WORDS)
    assert section is not None
    return section


def tables(section: Section) -> list[Table]:
    return [block for block in section.blocks if isinstance(block, Table)]


def test_lines_stand_under_their_parent_one_indent_a_level_and_the_total_last():
    inner = line("inner", 100.0)
    middle = line("middle", 300.0, children=[inner, line("second", 200.0)])
    table = tables(section_of(cost_lines=[line("outer", 300.0, children=[middle])], cost_usd=ends(300.0)))[0]
    indent = WORDS("tree.indent")

    assert [row.cells[0].text for row in table.rows] == [
        "outer", f"{indent}middle", f"{indent * 2}inner", f"{indent * 2}second", "Total"
    ]  # fmt: skip
    assert [row.cells[-1].sort for row in table.rows] == [300, 300, 100, 200, 300]
    assert [row.strong for row in table.rows] == [False, False, False, False, True]


def test_amounts_are_in_cents_however_large_and_add_up_as_shown():
    large = tables(section_of(cost_lines=[line(n, 6.3e6 + 0.604) for n in "abc"], cost_usd=ends(18.9e6 + 1.812)))[0]
    small = tables(section_of(cost_lines=[line("a", 6.301), line("b", 1.464)], cost_usd=ends(7.765)))[0]

    assert [row.cells[-1].text for row in large.rows] == [*["6,300,000.60"] * 3, "18,900,001.80"]
    assert [row.cells[-1].text for row in small.rows] == ["6.30", "1.46", "7.76"]


def number(text: str) -> float:
    return float(text.split()[0].lstrip("$").replace(",", ""))


def test_what_a_reader_multiplies_is_the_amount_that_is_shown():
    rent = line(
        "gpu_rental", 290_956.1234 * 3.4875, quantity=290_956.1234, unit="GPU-hour", unit_price_usd=ends(3.4875)
    )
    row = tables(section_of(cost_lines=[rent], cost_usd=rent["usd"]))[0].rows[0]

    assert [cell.text for cell in row.cells[1:]] == ["290,956.123 GPU-hours", "$3.4875", "1,014,709.48"]
    assert round(number(row.cells[1].text) * number(row.cells[2].text), 2) == number(row.cells[3].text)


def test_a_quantity_and_its_price_stand_beside_the_line():
    rent = line("gpu_rental", 2500.0, quantity=1000.0, unit="GPU-hours", unit_price_usd=ends(2.5))
    cells = tables(section_of(cost_lines=[rent], cost_usd=ends(2500.0)))[0].rows[0].cells

    assert cells[1].sort == 1000
    assert cells[1].text.startswith("1,000")
    assert "2.50" in cells[2].text
    assert cells[2].detail  # 2.25 to 3.00


def test_the_energy_of_a_plan_reads_the_same_in_the_sentence_and_in_the_table():
    items = {"gpu": 216.2, "host": 94.1, "network": 6.4, "pue_overhead": 79.1}
    section = section_of(energy_items_mwh=items, energy_mwh=ends(395.8))
    row = next(row for row in tables(section)[-1].rows if row.strong)

    assert row.cells[1 + len(ENERGY_ITEMS)].text == "396"
    assert any(span.text == "396 MWh" for span in section.lead)


def test_the_sentence_says_by_what_energy_power_and_carbon_can_be_checked():
    items = {"gpu": 216.0, "host": 94.0, "network": 10.0, "pue_overhead": 80.0}
    section = section_of(
        energy_items_mwh=items, energy_mwh=ends(400.0), carbon_tco2e=ends(153.4), gpu_power_w=ends(560.0),
        mean_power_mw=ends(0.5), peak_power_mw=0.8, carbon_market_tco2e=None,
    )  # fmt: skip
    text = "".join(span.text for span in section.lead)

    assert "at a PUE of 1.25. That is 500 kW (450–600) on average" in text
    assert "must be able to supply 800 kW" in text
    assert "A GPU draws 560 W (500–670) while it trains" in text  # times the GPU-hours, this is no item of the table
    assert "A million tokens take 0.286 kWh (0.257–0.343) at the meter" in text  # of 1.4T
    assert "At the grid's 383.5 g CO₂e per kWh the run emits 153 t CO₂e" in text


def test_the_factors_of_energy_and_carbon_stand_below_it(ask):
    section = money(Facts(checked(ask("fp8"))), WORDS)
    assert section is not None
    listed = next(block for block in section.blocks if isinstance(block, Items))

    texts = [cell.text for cell in listed.items]
    assert texts[0] == "PUE 1.25 (1.1 to 1.5), default, 2024"
    assert texts[1].startswith("United States: 383.5 g CO₂e per kWh of 2024, location-based, life cycle")


def test_the_items_of_energy_sum_as_shown_to_the_column_beside_them():
    # 216.2 + 94.1 + 6.4 + 79.1 is 395.8: rounded one by one they would sum to 395, beside a total of 396
    items = {"gpu": 216.2, "host": 94.1, "network": 6.4, "pue_overhead": 79.1}
    table = tables(section_of(energy_items_mwh=items, energy_mwh=ends(395.8)))[-1]
    row = next(row for row in table.rows if row.strong)
    cells = [int(cell.text) for cell in row.cells[1 : 2 + len(ENERGY_ITEMS)]]

    assert cells == [216, 94, 7, 79, 396]


def test_an_item_too_small_for_a_unit_is_less_than_one_and_not_nothing():
    items = {"gpu": 300.0, "host": 95.0, "network": 0.2, "pue_overhead": 100.0}
    table = tables(section_of(energy_items_mwh=items, energy_mwh=ends(495.2)))[-1]
    row = next(row for row in table.rows if row.strong)

    assert row.cells[3].text == WORDS("less_than").format("1")


def facts_of(**fp8: Any) -> Facts:
    document = sample.document()
    document["plans"][-1] |= fp8
    return Facts(checked(document))


def said(prose: Prose | None) -> str | None:
    return None if prose is None else "".join(span.text for span in prose.spans)


def test_the_short_answer_names_what_a_bill_is_made_up_of_and_adds_up_the_small():
    lines = [
        line("GPU rental", 13_226.58),
        line("Data transfer out", 45.0),
        line("Experiments before the run", 15_871.89),
    ]
    small = [line(name, 100.0) for name in ("A", "B", "C")]

    assert said(bill_in_words(facts_of(cost_lines=lines), WORDS)) == (
        "The cost is made up of: experiments before the run $15,900; GPU rental $13,200; data transfer out $45."
    )
    assert (said(bill_in_words(facts_of(cost_lines=[*lines, *small]), WORDS)) or "").endswith(
        "GPU rental $13,200; A $100; B $100; 2 smaller lines $145."
    )


def test_a_bill_of_one_line_is_not_told_and_one_that_nests_is_by_its_inner_lines():
    inner = [line("Servers", 900.0), line("Staff", 100.0)]

    assert bill_in_words(facts_of(cost_lines=[line("GPU rental", 5.0)]), WORDS) is None
    assert said(bill_in_words(facts_of(cost_lines=[line("Own GPUs", 1000.0, children=inner)]), WORDS)) == (
        "The cost is made up of: servers $900; staff $100."
    )


def test_a_second_figure_of_carbon_is_told_where_it_was_asked_for():
    energy = {"low": 40.0, "mid": 50.0, "high": 62.5, "at_least": False}  # which the market-based range follows
    carbon: dict[str, Any] = {"carbon_tco2e": ends(10.0), "energy_mwh": energy}
    neither = {"carbon_with_embodied_tco2e": None, "carbon_market_tco2e": None}
    figures = {"carbon_with_embodied_tco2e": ends(12.0), "carbon_market_tco2e": 2.0}

    assert more_carbon(facts_of(**carbon, **neither), WORDS) is None
    assert said(more_carbon(facts_of(**carbon, **figures), WORDS)) == (
        "Carbon: 10.0 t CO₂e (9.0–12.0) at the grid's average, 12.0 t CO₂e (10.8–14.4) including the manufacture of "
        "the GPUs and 2.00 t CO₂e (1.60–2.50) market-based."
    )

"""Tables beside the plan: signs of what is saved, kilograms as tonnes, and only rows of the leading GPU."""

from __future__ import annotations

from typing import Any

import pytest

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.breakdown.alternatives import MOST_PLACES, alternatives
from reports.text.language import words_for
from reports.view import Section, Table
from tests.reports import sample
from tests.reports.extras import EXTRAS

WORDS = words_for("en")


def section_of(**changes: Any) -> Section | None:
    return alternatives(Facts(checked(sample.document() | changes)), WORDS)


def table_of(caption: str, **changes: Any) -> Table:
    section = section_of(**changes)
    assert section is not None
    return next(t for t in section.blocks if isinstance(t, Table) and t.caption == WORDS(f"table.{caption}"))


def place(saved: float | None, **more: Any) -> dict[str, Any]:
    return EXTRAS["money"]["elsewhere"][0] | {"saved_usd": saved, "saved_tco2e": saved} | more


@pytest.mark.parametrize(
    ("usd", "text", "tone"),
    [(840_000.0, "160,000", "good"), (1_040_000.0, "−40,000", "bad"), (1_000_000.0, WORDS("nothing"), "")],
)
def test_what_is_saved_is_here_less_there_and_costs_more_with_a_minus(usd, text, tone):
    rows = table_of("places", money={"elsewhere": [place(None, usd_here=1e6, usd=usd)]}).rows

    assert (rows[0].cells[2].text, rows[1].cells[2].text) == ("1,000,000", f"{usd:,.0f}")
    assert (rows[1].cells[3].text, rows[1].cells[3].tone) == (text, tone)


@pytest.mark.parametrize(
    ("here", "there", "shown"),
    [
        (1_281_025.50, 840_558.28, ["1,281,000", "841,000", "440,000"]),
        (1_281_025.50, 1_281_025.496, ["1,280,000", "1,280,000", "0"]),
        (7.031, 5.264, ["7.03", "5.26", "1.77"]),
    ],
)
def test_an_amount_elsewhere_has_no_more_digits_than_its_hours_deserve(here, there, shown):
    rows = table_of("places", money={"elsewhere": [place(here - there, usd_here=here, usd=there)]}).rows

    assert [rows[0].cells[2].text, *(cell.text for cell in rows[1].cells[2:4])] == shown


def test_a_saving_is_the_difference_of_the_dollars_that_are_shown():
    # 100.6 and 50.4 read as 101 and 50: their difference as shown is 51, not the 50 of the exact one
    rows = table_of("places", money={"elsewhere": [place(50.2, usd_here=100.6, usd=50.4)]}).rows

    assert [rows[0].cells[2].text, *(cell.text for cell in rows[1].cells[2:4])] == ["101", "50", "51"]


def test_without_a_price_here_nothing_is_saved_rather_than_0():
    cell = table_of("places", money={"elsewhere": [place(None, usd_here=None)]}).rows[1].cells[3]

    assert (cell.text, cell.tone) == (WORDS("none"), "quiet")


def test_carbon_of_places_is_compared_with_the_same_decimals():
    # 100 t here; 28.55 t there
    rows = table_of("places", money={"elsewhere": [place(0.0, carbon_tco2e=28.55, saved_tco2e=71.45)]}).rows

    assert rows[0].cells[4].text == "100.0"
    assert float(rows[1].cells[4].text) + float(rows[1].cells[5].text) == pytest.approx(100.0)


def test_no_more_than_the_first_places_are_listed():
    many = [place(1000.0 * n, place=f"P{n}") for n in range(20)]

    rows = table_of("places", money={"elsewhere": many}).rows
    assert [row.cells[0].text for row in rows] == [WORDS("places.here"), *(f"P{n}" for n in range(MOST_PLACES))]


def test_rows_of_other_gpus_are_left_out():
    assert section_of(money={"elsewhere": [place(1.0, gpu="h200-sxm-141gb")]}) is None
    assert section_of(power_caps=[EXTRAS["power_caps"][0] | {"gpu": "h200-sxm-141gb"}]) is None


def test_an_own_hour_is_itemised_and_held_against_a_rented_one():
    rows = table_of("owned", money={"owned": EXTRAS["money"]["owned"]}).rows
    values = [row.cells[1].text for row in rows]

    # $1.40 and half a dollar of items, $1.90 in all, $2.50 rented; used 80 % of the time, worth it from 60 %
    assert [row.cells[1].sort for row in rows] == [1.4, 0.5, None, 2.5, 0.8, 0.6]
    assert (values[2], values[3]) == ("$1.90", "$2.50")
    assert [text.rstrip("%\u00a0 ") for text in values[-2:]] == ["80", "60"]
    assert [row.strong for row in rows].index(True) == 2


@pytest.mark.parametrize(
    ("high", "text", "detail"), [(0.9, "60%", "40–90"), (None, "60%", "from 40% up, or never")]
)  # fmt: skip
def test_the_break_even_and_the_rent_show_their_ranges(high, text, detail):
    ends = {"break_even_low_ratio": 0.4, "break_even_high_ratio": high}
    ends |= {"rental_low_usd_per_gpu_h": 2.0, "rental_high_usd_per_gpu_h": 4.0}
    rows = table_of("owned", money={"owned": [EXTRAS["money"]["owned"][0] | ends]}).rows
    rented, _, even = (row.cells[1] for row in rows[-3:])

    assert (rented.text, rented.detail) == ("$2.50", "2.00–4.00")
    assert (even.text, even.detail) == (text, detail)


def test_an_own_hour_without_its_electricity_has_bounds_and_no_zero_for_what_is_unknown():
    owned = EXTRAS["money"]["owned"][0] | {"break_even_low_ratio": 0.4}
    hour = owned["usd_per_gpu_h"] | {"at_least": True}
    lacking = owned | {"usd_per_gpu_h": hour, "items_usd_per_gpu_h": {"server": 1.9, "electricity": 0.0}}

    values = [row.cells[1].text for row in table_of("owned", money={"owned": [lacking]}).rows]

    assert values == ["$1.90", WORDS("none"), "≥ $1.90", "$2.50", "80%", "≥ 60%"]


def test_kilograms_of_the_sci_score_are_read_as_tonnes():
    document = sample.document()
    document["plans"][-1] |= {
        "embodied_tco2e": {"low": 1.0, "mid": 2.0, "high": 3.0},
        "sci_kg_per_run": {"low": 1000.0, "mid": 2000.0, "high": 3000.0},
        "sci_kg_per_1e21_flop": None,
    }
    section = alternatives(Facts(checked(document)), WORDS)
    assert section is not None
    cells = [row.cells[1].plain for row in section.blocks[-1].rows]

    assert len(cells) == 2
    assert cells[0] == cells[1]
    assert "2.0" in cells[0]


def test_a_cap_shows_how_many_gpus_it_leaves():
    cells = table_of("caps", power_caps=EXTRAS["power_caps"]).rows[0].cells

    assert [cell.text for cell in cells[2:]] == ["368", WORDS("yes"), "512"]
    assert cells[1].sort == 0.5

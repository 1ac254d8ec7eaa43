"""The limits that were searched for: each against the one as sold, only where that was asked."""

from __future__ import annotations

from typing import Any

import pytest

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.breakdown.limits import limits, short_limits
from reports.text.language import LANGUAGES, words_for
from reports.view import Section, Table
from tests.reports import sample


def point(limit_w: float, days: float, mwh: float, usd: float | None) -> dict[str, Any]:
    return {"limit_w": limit_w, "gpus": 64, "duration_days": days, "energy_mwh": mwh, "cost_usd": usd}


SEARCH = {
    "gpu": "h100-sxm5-80gb", "precision": "fp8", "least_w": 200.0, "limits": 21, "sold": point(700, 4.0, 6.4, 20_000),
    "cheapest": point(700, 4.0, 6.4, 20_000), "greenest": point(425, 5.0, 5.6, 25_000),
}  # fmt: skip


def section_of(lang: str = "en", **search: Any) -> Section | None:
    document = sample.document() | {"power_limit_search": [SEARCH | search]}
    return limits(Facts(checked(document)), words_for(lang))


def rows_of(**search: Any) -> list[list[str]]:
    section = section_of(**search)
    assert section is not None
    (table,) = section.blocks
    assert isinstance(table, Table)
    return [[cell.plain for cell in row.cells] for row in table.rows]


def test_each_limit_is_held_against_the_one_as_sold():
    assert rows_of() == [
        ["As sold", "700 W", "64", "4 days", "6.4 MWh", "$20,000"],
        ["Cheapest", "700 W", "64", "4 days", "6.4 MWh", "$20,000"],
        ["Least energy", "425 W", "64", "5 days (+25.0%)", "5.6 MWh (−12.5%)", "$25,000 (+25.0%)"],
    ]


def test_without_a_price_there_is_no_cheapest_and_no_cost():
    rows = rows_of(cheapest=None, sold=point(700, 4.0, 6.4, None), greenest=point(425, 5.0, 5.6, None))

    assert [row[0] for row in rows] == ["As sold", "Least energy"]
    assert {row[-1] for row in rows} == {words_for("en")("none")}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_part_appears_only_where_the_search_was_asked_for(lang):
    assert section_of(lang) is not None
    assert limits(Facts(checked(sample.document())), words_for(lang)) is None


def told(lang: str = "en", **search: Any) -> str:
    document = sample.document() | {"power_limit_search": [SEARCH | search]}
    prose = short_limits(Facts(checked(document)), words_for(lang))
    assert prose is not None
    return prose.plain


def test_the_short_answer_says_which_limit_was_found_and_what_it_saves():
    assert told() == (
        "Power limit: of 21 limits from 200 W up, the default of 700 W costs the least. "
        "Energy is lowest at 425 W on 64 GPUs: 25% more cost, 13% less energy and 25% more time."
    )
    assert told(cheapest=point(600, 4.0, 6.0, 19_000)) == (
        "Power limit: of 21 limits from 200 W up, 600 W costs the least: 5% less cost and 6% less energy "
        "than at the default of 700 W."
    )
    assert told(cheapest=None).startswith("Power limit: of 21 limits from 200 W up, 425 W uses the least energy: ")
    assert told("zh", cheapest=point(600, 4.0, 6.0, 19_000)) == (
        "功率上限：在 200 瓦起的 21 种上限中，600 瓦费用最低；与出厂的 700 瓦相比，费用少 5%、能耗少 6%。"
    )


def test_without_a_search_on_the_gpu_the_short_answer_says_nothing_of_limits():
    assert short_limits(Facts(checked(sample.document())), words_for("en")) is None
    other = sample.document() | {"power_limit_search": [SEARCH | {"gpu": "b200-sxm-180gb"}]}
    assert short_limits(Facts(checked(other)), words_for("en")) is None

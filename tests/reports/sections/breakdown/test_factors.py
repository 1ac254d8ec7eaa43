"""The factors behind energy and carbon: of the leading GPU, each once, with its date."""

from typing import Any

from reports.document.facts import Facts
from reports.document.public import HIDDEN
from reports.page.build import checked
from reports.sections.breakdown.factors import GRID, factor_of, factors
from reports.text.language import words_for
from tests.reports import sample


def source(figure: str, what: str, **more: Any) -> dict[str, Any]:
    made = {"id": what, "kind": "published", "what": what, "source": "a table", "date": "2024", "gpu": None}
    return made | {"used_in": [figure], "precisions": [], "terms": [], "public": True} | more


def facts_with(*sources: dict[str, Any]) -> Facts:
    document = sample.document()
    document["evidence"] = list(sources)
    return Facts(checked(document))


def test_each_factor_is_listed_with_its_date_in_the_order_of_the_arithmetic():
    facts = facts_with(
        source("carbon_market_tco2e", "contract", source="--market-grid", date=None),
        source("carbon_tco2e.grid_factor", "Germany of 2024"),
        source("energy_items_mwh.pue_overhead", "PUE 1.2"),
        source("embodied_tco2e", "another GPU", gpu="b200-sxm-180gb"),
    )
    listed = factors(facts, words_for("en"))

    assert listed is not None
    assert [(cell.text, cell.foreign) for cell in listed.items] == [
        ("PUE 1.2, 2024", False),
        ("Germany of 2024", False),
        ("contract", False),
    ]
    chinese = factors(facts, words_for("zh"))
    assert chinese is not None
    assert all(cell.foreign for cell in chinese.items)


def test_the_making_of_a_gpu_is_listed_where_it_was_asked_for():
    facts = facts_with(source("embodied_tco2e", "575 kg per GPU", gpu=sample.GPU))
    assert factors(facts, words_for("en")) is None

    answer = facts.answer
    assert answer is not None
    answer["embodied_tco2e"] = {"low": 1.0, "mid": 2.0, "high": 3.0}
    listed = factors(facts, words_for("en"))
    assert listed is not None
    assert [cell.text for cell in listed.items] == ["575 kg per GPU, 2024"]


def test_a_factor_whose_text_was_left_out_is_not_listed():
    facts = facts_with(source("energy_items_mwh.pue_overhead", HIDDEN), source("carbon_tco2e.grid_factor", "Germany"))
    listed = factors(facts, words_for("en"))

    assert listed is not None
    assert [cell.text for cell in listed.items] == ["Germany, 2024"]


def test_an_answer_without_factors_lists_none():
    facts = facts_with(source("step_s", "a rate"))

    assert (factor_of(facts, GRID), factors(facts, words_for("en"))) == (None, None)

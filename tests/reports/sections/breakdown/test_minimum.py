"""The part of a bill that an offer's minimum makes, before one decides."""

from __future__ import annotations

from typing import Any

import pytest

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.breakdown.minimum import dear_offer, unused
from reports.sections.breakdown.money import money
from reports.text.language import words_for
from reports.view import Items
from tests.reports import sample
from tests.reports.sections.breakdown.test_money import ends, line


def offered(
    *, of: float = 800e3, cost: float = 900e3, gpus: int = 2048, days: float = 90.0, ratio: float = 1.0
) -> Facts:
    """A plan on 512 GPUs whose curve costs as much at 1,024, or a ratio of it, and more at 2,048."""
    document: dict[str, Any] = sample.targets_document()
    document["plans"][-1] |= {
        "cost_lines": [line("minimum_term", of)],
        "cost_usd": ends(cost),
    }
    document["money"] = {
        "prices": [], "owned": [], "here": None, "elsewhere": [], "start_hours": [], "power_limits": [],
        "quotes": [
            {"gpu": sample.GPU, "vendor": "Acme", "minimum_term_days": days, "minimum_gpus": gpus,
             "setup_fee_usd": 0.0, "expired": False}
        ],
    }  # fmt: skip
    for point in document["curve"]:
        point["cost_usd"] = ends(ratio * cost if point["gpus"] < 2048 else 1.2 * cost)
    return Facts(checked(document))


def told(lang: str = "en", **of_the_offer: Any) -> str:
    """What is said of that plan."""
    cell = unused(offered(**of_the_offer), words_for(lang))
    return "" if cell is None else cell.text


def test_the_amount_is_told_and_the_count_that_pays_the_same_and_ends_sooner():
    assert told() == (
        "The offer bills at least 2,048 GPUs for 90 days: $800,000 of the $900,000 pay for hours that this plan does "
        "not use; `--gpus 1024` costs the same and finishes sooner."
    )
    assert "`--gpus 1024` 花费相同" in told(lang="zh")


@pytest.mark.parametrize("gpus", [1, 512, 600])
def test_no_count_is_named_beyond_the_offers_minimum(gpus):
    assert "--gpus" not in told(gpus=gpus)


@pytest.mark.parametrize(
    ("gpus", "days", "least"),
    [
        (1, 90.0, "at least 90 days:"),
        (2048, 0.0, "at least 2,048 GPUs:"),
        (2048, 0.5, "2,048 GPUs for 12 hours:"),
        (1, 1.0, "at least 1 day:"),
        (512, 90.0, "The offer bills at least 90 days:"),
        (256, 90.0, "The offer bills at least 90 days:"),
    ],
)
def test_the_minimum_is_what_the_offer_has_and_the_plan_leaves(gpus, days, least):
    """The minimum of 256 GPUs once explained the unused hours of 512, which cost more than that minimum."""
    assert least in told(gpus=gpus, days=days)


def test_a_count_that_costs_less_is_not_said_to_cost_the_same():
    assert told(ratio=0.66).endswith("`--gpus 1024` costs about $306,000 less and finishes sooner.")
    assert told(ratio=0.996).endswith("`--gpus 1024` costs the same and finishes sooner.")
    assert "约少花 30.6 万美元" in told(ratio=0.66, lang="zh")


def test_little_is_not_worth_telling():
    assert told(of=8e3) == ""


def test_the_whole_answer_tells_it_too():
    """`--full` and the page once had it only as a line of the bill, without the number of GPUs that ends sooner."""
    section, little = money(offered(), words_for("en")), money(offered(of=8e3), words_for("en"))

    assert section is not None
    assert little is not None
    items = [block for block in section.blocks if isinstance(block, Items)]
    assert told() in [cell.text for block in items for cell in block.items]
    assert not any("The offer bills" in cell.text for b in little.blocks if isinstance(b, Items) for cell in b.items)


def beside(*usd: float, quoted: bool = True) -> str:
    """What is said of an offer that bills $900,000, beside listed rents of the same GPU-hours."""
    facts = offered()
    plan = facts.answer
    assert plan is not None
    facts.doc["money"]["elsewhere"] = [
        {"gpu": plan["gpu"], "precision": plan["precision"], "provider": f"p{number}", "region": "r", "place": "FIN",
         "usd": amount, "usd_here": 900e3, "saved_usd": 900e3 - amount, "date": "2026-01-01/2026-11-20"}
        for number, amount in enumerate(usd)
    ]  # fmt: skip
    if not quoted:
        facts.doc["money"]["quotes"] = []
    cell = dear_offer(facts, words_for("en"))
    return "" if cell is None else cell.text


def test_an_offer_that_costs_far_more_than_listed_rent_says_so():
    """An offer whose minimum made it four times as dear as renting by the hour was answered without a word of that."""
    assert beside(300e3, 200e3) == (
        "Under the offer, the GPUs cost $900,000; the same GPU-hours on demand are listed for $200,000 at p1 "
        "(r; price of 2026-11-20)."
    )
    assert beside(700e3) == ""
    assert beside() == ""
    assert beside(200e3, quoted=False) == ""

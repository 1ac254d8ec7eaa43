"""What an offer's terms cost: the part of its minimum that the plan does not use, and far cheaper listed rent."""

from __future__ import annotations

from reports.document.facts import COST, DURATION, Doc, Facts
from reports.text.language import Words
from reports.view import Cell

LINE = "minimum_term"
"""Id of the bill's line for these hours."""
WORTH_TELLING = 0.01
"""Minimum share of the cost; a smaller one changes no decision."""
FAR_LESS = 0.75
"""Share of an offer's bill up to which rent at a listed price is told beside it."""
SAME_COST_RATIO = 0.005
"""Two bills count as equal if they differ by less than this share of the plan's."""


def unused(facts: Facts, words: Words) -> Cell | None:
    """Return how much of the cost is the offer's unused minimum; None if it is little or nothing."""
    plan = facts.answer
    if plan is None or plan[COST] is None:
        return None
    quote = next((row for row in (facts.doc.get("money") or {}).get("quotes", ()) if row["gpu"] == plan["gpu"]), None)
    line = next((row for row in plan["cost_lines"] or () if row["id"] == LINE), None)
    if quote is None or line is None or line["usd"]["mid"] < WORTH_TELLING * plan[COST]["mid"]:
        return None
    more, cost = _sooner(plan, quote["minimum_gpus"], facts.curve), plan[COST]["mid"]
    saved = 0.0 if more is None else cost - more[COST]["mid"]
    key = "brief.unused" if more is None else "brief.unused_sooner"
    return Cell(text=words(
        "brief.unused_less" if saved > SAME_COST_RATIO * cost else key,
        least=_least(plan, quote, words), gpus=None if more is None else more["gpus"],
        unused=words.value("money", line["usd"]["mid"]), cost=words.value("money", cost),
        saved=words.value("money", saved),
    ))  # fmt: skip


def dear_offer(facts: Facts, words: Words) -> Cell | None:
    """Return where the same GPU-hours are listed on demand for far less than an offer bills; None if nowhere."""
    plan, money = facts.answer, facts.doc.get("money") or {}
    if plan is None or not any(row["gpu"] == plan["gpu"] for row in money.get("quotes", ())):
        return None
    places = money.get("elsewhere", ())  # left out of a copy without names
    same = [row for row in places if (row["gpu"], row["precision"]) == (plan["gpu"], plan["precision"])]
    far_less = [row for row in same if row["usd_here"] and row["usd"] <= FAR_LESS * row["usd_here"]]
    if not far_less:
        return None
    cheapest = min(far_less, key=lambda row: float(row["usd"]))
    return Cell(text=words(
        "brief.dear_offer", rent=words.value("money", cheapest["usd"]), provider=cheapest["provider"],
        region=cheapest["region"], offered=words.value("money", cheapest["usd_here"]),
        date=cheapest["date"].split("/")[-1],
    ))  # fmt: skip


def _least(plan: Doc, quote: Doc, words: Words) -> str:
    """Describe the minimum that the plan does not use up: GPUs, time, or both.

    A plan on more GPUs than the minimum pays for each of them until the end of the term.
    """
    days, gpus = quote["minimum_term_days"], quote["minimum_gpus"]
    key = "brief.least_gpus" if days <= 0 else "brief.least_both" if gpus > plan["gpus"] else "brief.least_days"
    return words(key, gpus=f"{gpus:,}", days=words.duration(days) if days > 0 else "")


def _sooner(plan: Doc, most: int, points: list[Doc]) -> Doc | None:
    """Return the point within the offer's minimum that ends soonest at no higher cost; None without one."""
    cost = plan[COST]
    same = [
        point
        for point in points
        if plan["gpus"] < point["gpus"] <= most
        and all(point[COST][end] <= cost[end] * (1.0 + SAME_COST_RATIO) for end in ("mid", "high"))
        and point[DURATION]["mid"] < plan[DURATION]["mid"]
    ]
    return min(same, key=lambda point: point[DURATION]["mid"], default=None)

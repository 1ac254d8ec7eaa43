"""The part of an offer's minimum bill that the plan does not use, for the short answer."""

from __future__ import annotations

from reports.document.facts import COST, DURATION, Doc, Facts
from reports.text.language import Words
from reports.view import Cell

LINE = "minimum_term"
"""Id of the bill's line for these hours."""
WORTH_TELLING = 0.01
"""Minimum share of the cost; a smaller one changes no decision."""
SAME_COST_RATIO = 0.005
"""Two bills count as equal if the higher one exceeds the other by less than this share."""


def unused(facts: Facts, words: Words) -> Cell | None:
    """Return how much of the cost is the offer's unused minimum; None if it is little or nothing."""
    plan = facts.answer
    if plan is None or plan[COST] is None:
        return None
    quote = next((row for row in (facts.doc.get("money") or {}).get("quotes", ()) if row["gpu"] == plan["gpu"]), None)
    line = next((row for row in plan["cost_lines"] or () if row["id"] == LINE), None)
    if quote is None or line is None or line["usd"]["mid"] < WORTH_TELLING * plan[COST]["mid"]:
        return None
    more = _sooner(plan, quote["minimum_gpus"], facts.curve)
    return Cell(text=words(
        "brief.unused" if more is None else "brief.unused_sooner", least=_least(quote, words), gpus=more,
        unused=words.value("money", line["usd"]["mid"]), cost=words.value("money", plan[COST]["mid"]),
    ))  # fmt: skip


def _least(quote: Doc, words: Words) -> str:
    """Describe the offer's minimum: GPUs, time, or both."""
    days, gpus = quote["minimum_term_days"], quote["minimum_gpus"]
    key = "brief.least_both" if days > 0 and gpus > 1 else "brief.least_days" if days > 0 else "brief.least_gpus"
    return words(key, gpus=f"{gpus:,}", days=f"{days:g}")


def _sooner(plan: Doc, most: int, points: list[Doc]) -> int | None:
    """Return the planned GPU count within the offer's minimum that ends soonest at no higher cost; None without one."""
    cost = plan[COST]
    same = [
        point
        for point in points
        if plan["gpus"] < point["gpus"] <= most
        and all(point[COST][end] <= cost[end] * (1.0 + SAME_COST_RATIO) for end in ("mid", "high"))
        and point[DURATION]["mid"] < plan[DURATION]["mid"]
    ]
    soonest = min(same, key=lambda point: point[DURATION]["mid"], default=None)
    return None if soonest is None else int(soonest["gpus"])

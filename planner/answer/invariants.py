"""Rules that hold for every answer, whatever the question: checked before one is given out and when one is read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any

from planner.errors import InternalError, Message
from planner.lazy import dataclass
from planner.units import DAY_S, HOUR_S

Doc = Mapping[str, Any]

VIEWS = ("plans", "same_deadline")
ROUNDING = 1e-6
"""Relative error in a sum of numbers that were written with ten digits."""
CENT = 0.01
"""Tolerance in USD within which a bill adds up; for a large bill it is `ROUNDING` of the total."""
LARGEST_USD = 1e24
"""Largest amount in USD that still has cents: a bill is added up in decimals of 28 digits."""
LAST_YEAR = 8999
"""Last year of a moment: a run of a thousand years that begins then ends before calendars do."""
FIGURES = ("duration_days", "gpu_hours", "step_s", "memory_gib", "layout")
"""Figures that every plan that fits has."""
SHARES = ("mfu", "hfu", "goodput_ratio", "memory_risk")
"""Figures that are a share of something, so at most 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that an answer breaks."""

    place: str
    """The place in the notation of the document, for example `plans[0].mfu`."""
    rule: str
    """The rule that does not hold, with the numbers."""


def require_possible(document: Doc) -> None:
    """Refuse to give out an answer that cannot be right.

    Raises:
        InternalError: the answer breaks a rule, which is a mistake in mpplan.
    """
    for violation in chain(violations(document), _powers(document)):
        raise _impossible(violation)


def require_ordered(document: Doc) -> None:
    """Refuse to give out a document, other than an estimate, whose ranges are out of order.

    Args:
        document: the document of any command, as JSON values.

    Raises:
        InternalError: a range is out of order, which is a mistake in mpplan.
    """
    for violation in _ranges(document):
        raise _impossible(violation)


def _impossible(violation: Violation) -> InternalError:
    return InternalError(
        Message.of("error.impossible_answer", place=violation.place, rule=violation.rule),
        hint=Message.of("hint.report_impossible"),
    )


def violations(document: Doc) -> Iterator[Violation]:
    """Yield the rules that a document `mpplan.estimate/2` of any version of mpplan breaks; none for a possible answer.

    Args:
        document: valid by its schema; keys that later versions added may be missing.
    """
    yield from _ranges(document)
    ids = None if document.get("redacted") else {source["id"] for source in document["evidence"]}
    for view in VIEWS:
        for number, plan in enumerate(document.get(view) or ()):
            place = f"{view}[{number}]"
            if plan["fits"]:
                yield from _of_plan(plan, place)
            if ids is not None:
                yield from _references(plan, place, ids)
    yield from _savings(document)
    yield from _head(document)
    worded, messages = document.get("warnings") or (), document.get("warnings_message")
    if messages is not None and len(messages) != len(worded):
        yield Violation(place="warnings_message", rule=f"{len(messages)} messages of {len(worded)} warnings")


def _head(document: Doc) -> Iterator[Violation]:
    """Yield a moment that is not valid, and carbon savings against an unknown figure."""
    moment = document.get("created_at")
    if moment is not None and not _is_moment(moment):
        yield Violation(place="created_at", rule="no moment in ISO 8601")
    for number, row in enumerate((document.get("money") or {}).get("elsewhere") or ()):
        if row.get("carbon_tco2e") is None and row.get("saved_tco2e") is not None:
            place = f"money.elsewhere[{number}].carbon_tco2e"
            yield Violation(place=place, rule="missing, though what it saves is stated")


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).year <= LAST_YEAR
    except ValueError:
        return False


def _ranges(value: Any, place: str = "") -> Iterator[Violation]:
    """Yield ranges anywhere in a value whose ends are out of order; messages hold no ranges."""
    if isinstance(value, list):
        for number, inner in enumerate(value):
            if isinstance(inner, dict | list):
                yield from _ranges(inner, f"{place}[{number}]")
    elif isinstance(value, dict):
        low, mid, high = value.get("low"), value.get("mid"), value.get("high")
        if low is not None and mid is not None and high is not None and not low <= mid <= high:
            yield Violation(place=place, rule=f"low {low:g}, mid {mid:g}, high {high:g} are not in order")
        for name, inner in value.items():
            if name.endswith("_low"):
                yield from _flat_range(value, name.removesuffix("_low"), place)
            if isinstance(inner, dict | list) and not name.endswith("_message"):
                yield from _ranges(inner, f"{place}.{name}" if place else name)


def _flat_range(value: Doc, name: str, place: str) -> Iterator[Violation]:
    """Yield a range out of order whose ends are separate keys: `loss_low`, `loss` or `loss_mid`, `loss_high`."""
    low, mid, high = value[f"{name}_low"], value.get(f"{name}_mid", value.get(name)), value.get(f"{name}_high")
    if low is not None and mid is not None and high is not None and not low <= mid <= high:
        rule = f"low {low:g}, mid {mid:g}, high {high:g} are not in order"
        yield Violation(place=f"{place}.{name}" if place else name, rule=rule)


def _of_plan(plan: Doc, place: str) -> Iterator[Violation]:
    missing = [name for name in FIGURES if plan.get(name) is None]
    if missing:
        yield Violation(place=f"{place}.{missing[0]}", rule="missing, though the plan fits")
        return
    for name in SHARES:
        high = _high(plan.get(name))
        if high > 1.0 + ROUNDING:
            yield Violation(place=f"{place}.{name}", rule=f"{high:g} is more than all")
    yield from _totals(plan, place)
    yield from _bill(plan, place)


def _totals(plan: Doc, place: str) -> Iterator[Violation]:
    """Yield items that do not sum to their total, GPU-hours that are not GPUs times hours, and a wrong rank count."""
    totals = {"memory_gib": plan["memory_gib"]["total"]["mid"], "step_s": plan["step_s"]["total"]}
    if plan.get("energy_items_mwh") and plan.get("energy_mwh"):
        totals["energy_items_mwh"] = plan["energy_mwh"]["mid"]
    for name, total in totals.items():
        items = math.fsum(size for item, size in plan[name].items() if item != "total")
        if not _same(items, total):
            yield Violation(place=f"{place}.{name}", rule=f"the items sum to {items:g}, not to the total {total:g}")
    hours = plan["gpus"] * plan["duration_days"]["mid"] * DAY_S / HOUR_S
    if not _same(plan["gpu_hours"]["mid"], hours):
        rule = f"{plan['gpu_hours']['mid']:g} at mid are not {plan['gpus']} GPUs for {hours / (plan['gpus'] or 1):g} h"
        yield Violation(place=f"{place}.gpu_hours", rule=rule)
    layout = plan["layout"]
    ranks = layout["tp"] * layout["pp"] * layout["cp"] * layout["dp"]
    if ranks != plan["gpus"]:
        yield Violation(place=f"{place}.layout", rule=f"{ranks} ranks on {plan['gpus']} GPUs")


def _powers(document: Doc) -> Iterator[Violation]:
    """Yield means above their peak and peaks above their cap. Earlier versions wrote the peak at the mid PUE."""
    caps = {cap["gpu"]: cap["cap_mw"] for cap in document.get("power_caps") or ()}
    for view in VIEWS:
        for number, plan in enumerate(document.get(view) or ()):
            if plan["fits"] and plan.get("peak_power_mw") is not None:
                yield from _power(plan, f"{view}[{number}]", caps.get(plan["gpu"]))


def _power(plan: Doc, place: str, cap_mw: float | None) -> Iterator[Violation]:
    peak, mean = plan["peak_power_mw"], _high(plan.get("mean_power_mw"))
    if mean > peak * (1.0 + ROUNDING):
        yield Violation(place=f"{place}.mean_power_mw", rule=f"{mean:g} MW at the high end, above the peak {peak:g} MW")
    if cap_mw is not None and peak > cap_mw * (1.0 + ROUNDING):
        yield Violation(place=f"{place}.peak_power_mw", rule=f"{peak:g} MW, above the cap {cap_mw:g} MW")


def _bill(plan: Doc, place: str) -> Iterator[Violation]:
    """Yield lines of a bill that do not sum, or do not multiply out, and amounts above `LARGEST_USD`."""
    cost, lines = plan.get("cost_usd"), plan.get("cost_lines") or ()
    if cost is None:
        return
    if cost["high"] > LARGEST_USD:
        yield Violation(place=f"{place}.cost_usd", rule=_too_much(cost["high"]))
    if not lines:
        return
    yield from _lines({"usd": cost, "children": lines}, f"{place}.cost_usd", f"{place}.cost_lines")


def _lines(line: Doc, place: str, below: str) -> Iterator[Violation]:
    children = line.get("children") or ()
    parts, whole = math.fsum(child["usd"]["mid"] for child in children), line["usd"]["mid"]
    if children and abs(parts - whole) > max(CENT, ROUNDING * abs(parts)):
        yield Violation(place=place, rule=f"the lines' mid sums to {parts:.2f}, not to {whole:.2f}")
    price, quantity = line.get("unit_price_usd"), line.get("quantity")
    most = max(line["usd"]["high"], 0.0 if price is None else price["high"] * (1.0 if quantity is None else quantity))
    if most > LARGEST_USD:
        yield Violation(place=place, rule=_too_much(most))
    elif price is not None and quantity is not None:
        product = price["mid"] * quantity
        if abs(product - line["usd"]["mid"]) > max(CENT, ROUNDING * product):
            yield Violation(
                place=place, rule=f"{quantity:g} units at {price['mid']:g} are not {line['usd']['mid']:.2f}"
            )
    for number, child in enumerate(children):
        yield from _lines(child, f"{below}[{number}]", f"{below}[{number}].children")


def _too_much(usd: float) -> str:
    return f"{usd:g} is more than there is of money"


def _references(plan: Doc, place: str, ids: set[str]) -> Iterator[Violation]:
    """Yield ids of sources that the answer does not have."""
    for name in ("products", "collectives"):
        for number, use in enumerate(plan.get(name) or ()):
            if use.get("evidence") is not None and use["evidence"] not in ids:
                yield Violation(place=f"{place}.{name}[{number}].evidence", rule=f"no source `{use['evidence']}`")
    for number, line in enumerate(plan.get("cost_lines") or ()):
        for source in _sources(line):
            if source not in ids:
                yield Violation(place=f"{place}.cost_lines[{number}].evidence_ids", rule=f"no source `{source}`")


def _sources(line: Doc) -> Iterable[str]:
    yield from line.get("evidence_ids") or ()
    for child in line.get("children") or ():
        yield from _sources(child)


def _savings(document: Doc) -> Iterator[Violation]:
    """Yield savings of more than everything, or between precisions that the answer does not have."""
    known = {plan["precision"] for view in VIEWS for plan in document.get(view) or ()}
    for number, saving in enumerate(document["savings"]):
        if saving["high"] > 1.0 + ROUNDING:
            yield Violation(place=f"savings[{number}].high", rule=f"{saving['high']:g} is more than all")
        for end in ("from", "to"):
            if saving[end] not in known:
                yield Violation(place=f"savings[{number}].{end}", rule=f"no plan in `{saving[end]}`")


def _high(value: Any) -> float:
    """Return the high end of a range, the number itself, or 0 for None."""
    if value is None:
        return 0.0
    return float(value["high"] if isinstance(value, Mapping) else value)


def _same(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=ROUNDING, abs_tol=ROUNDING)

"""The downloadable data of a page: its packed document, in as much detail as the size limit of a page allows."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from reports.document.facts import SHOWN
from reports.view import Table, View

GZIP_WINDOW = 31
"""zlib's largest window, with a gzip header."""


def most_that_fits(view: View, columns: list[str], room_bytes: int, *, alone: bool = False) -> str:
    """Return the packed document of a page in the most detailed form that fits, else in the least detailed form.

    Args:
        view: view of the page.
        columns: columns of its CSV, for a view that has not written the CSV.
        room_bytes: bytes left within the page's size limit.
        alone: whether the least detailed form has only the leading GPU.
    """
    last = ""
    for held in page_data(view, columns, alone=alone):
        last = packed(held)
        if len(last) <= room_bytes:
            break
    return last


def page_data(view: View, columns: list[str], *, alone: bool = False) -> Iterator[list[Any]]:
    """Yield the page's data from more to less detail: the document in two parts, with its CSV or its columns between.

    Of the savings between pairs of precisions, the page holds those that involve the requested precision.
    """
    asked = (view.data.get("whatif") or {}).get("asked")
    leading = (view.data.get("whatif") or {}).get("gpu")
    whole = _without_detail(asked, _with_savings_of(asked, view.data["document"]))
    table = view.data.get("csv") or columns
    plans = _leading_plans(asked, leading, whole)
    least = [_leading_alone(leading, plans)] if alone and leading is not None else []
    for document in (whole, _leading_detail(leading, whole), plans, _leading_curve(leading, plans), *least):
        items = list(_said_once(view, document).items())
        cut = next((n for n, (key, _) in enumerate(items, start=1) if key in ("plans", "first")), len(items))
        yield [dict(items[:cut]), table, dict(items[cut:])]


def _with_savings_of(asked: str | None, document: dict[str, Any]) -> dict[str, Any]:
    if asked is None:
        return document
    return document | {"savings": [row for row in document["savings"] if asked in (row["from"], row["to"])]}


DETAIL = frozenset({
    "lost_layouts", "uncertainty", "products", "collectives", "attention_kernel", "narrow_gain", "energy_items_mwh",
    "step_range_s", "sci_kg_per_run", "sci_kg_per_1e21_flop",
})  # fmt: skip
"""Fields of plans by the same deadline that a page with training results or several GPUs leaves out, so that it is as
small as other pages."""
LISTS = ("lost_layouts", "collectives", "uncertainty", "products")
"""Lists in plans on the same GPUs that such a page keeps only for the requested precision."""
DIGITS, END_DIGITS = 7, 3
"""Digits of numbers in the document of such a page, with which items still sum to their totals, and of range ends."""
TO_THE_CENT = frozenset({"cost_usd", "cost_lines"})
"""Fields that keep all digits, because a bill must add up."""


def _without_detail(asked: str | None, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with less detail if it shows training results or several GPUs.

    Detail is dropped from the second view, and from precisions that were not requested. Only savings of the requested
    and the narrowest precision remain.
    """
    if not _has_more(asked, document):
        return document
    plans = [{name: held for name, held in plan.items() if name not in DETAIL} for plan in document["same_deadline"]]
    first = [plan if plan["precision"] == asked else _without_lists(plan) for plan in document["plans"]]
    held = {plan["precision"] for plan in document["plans"]}
    to = {asked, next((name for name in SHOWN if name in held), asked)}
    savings = [row for row in document["savings"] if row["to"] in to]
    shorter: dict[str, Any] = _rounded(document | {"plans": first, "same_deadline": plans, "savings": savings})
    return shorter


def _has_more(asked: str | None, document: dict[str, Any]) -> bool:
    """Return whether a document has training results, or several GPUs."""
    several = asked is not None and len({plan["gpu"] for plan in document["plans"]}) > 1
    return bool(document.get("numerics")) or several


def is_shortened(view: View) -> bool:
    """Return whether the data to download have less detail than the document, beyond the savings left out."""
    return _has_more((view.data.get("whatif") or {}).get("asked"), view.data["document"])


def _without_lists(plan: dict[str, Any]) -> dict[str, Any]:
    return plan | {name: [] for name in LISTS}


def _leading_detail(leading: str | None, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with lists of the parts of a step only for the leading GPU."""
    if leading is None:
        return document
    return document | {
        "plans": [plan if plan["gpu"] == leading else _without_lists(plan) for plan in document["plans"]]
    }


def _leading_plans(asked: str | None, leading: str | None, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with only the requested precision for GPUs other than the leading one."""
    shorter = _leading_detail(leading, document)
    if leading is None:
        return shorter
    views = {
        view: [plan for plan in shorter[view] if plan["gpu"] == leading or plan["precision"] == asked]
        for view in ("plans", "same_deadline")
    }
    savings = [row for row in shorter["savings"] if row.get("gpu", leading) == leading]
    return shorter | views | {"savings": savings}


def _leading_curve(leading: str | None, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the plans on more or fewer GPUs only for the leading GPU."""
    if leading is None:
        return document
    return document | {"curve": [point for point in document.get("curve") or () if point["gpu"] == leading]}


def _leading_alone(leading: str | None, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with only the leading GPU's plans and their sources."""
    views = {view: [plan for plan in document[view] if plan["gpu"] == leading] for view in ("plans", "same_deadline")}
    evidence = [row for row in document.get("evidence") or () if row.get("gpu") in (None, leading)]
    return _leading_curve(leading, document) | views | {"evidence": evidence}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if abs(value) < 10**DIGITS else value
    if isinstance(value, dict):
        shorter = {name: held if name in TO_THE_CENT else _rounded(held) for name, held in value.items()}
        return shorter | _rounded_ends(value)
    return [_rounded(held) for held in value] if isinstance(value, list) else value


def _rounded_ends(value: dict[str, Any]) -> dict[str, float]:
    """Return the ends of a range with fewer digits, rounded outwards; nothing for an exact value."""
    low, high = value.get("low"), value.get("high")
    if not isinstance(low, float) or not isinstance(high, float) or not low < high:
        return {}
    return {"low": _outwards(low, ROUND_FLOOR), "high": _outwards(high, ROUND_CEILING)}


def _outwards(value: float, way: str) -> float:
    if not value:
        return value
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - END_DIGITS + 1), rounding=way))


SAID = ("what", "source", "date")
"""Columns of the page's tables of sources, in order."""


def _said_once(view: View, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with text that the page's tables of sources show replaced by the number of the table row."""
    evidence = document.get("evidence")
    section = next((section for section in view.sections if section.id == "sources"), None)
    if not evidence or section is None:
        return document
    rows = [row.cells for block in section.blocks if isinstance(block, Table) for row in block.rows]
    places = {cells[0].text: number for number, cells in enumerate(rows)}

    def named(source: dict[str, Any]) -> dict[str, Any]:
        number = places.get(source["what"])
        if number is None:
            return source
        cells = zip(SAID, rows[number][: len(SAID)], strict=True)
        return source | {name: number for name, cell in cells if source[name] == cell.text and "`" not in cell.text}

    return document | {"evidence": [named(source) for source in evidence]}


def packed(value: Any) -> str:
    """Return JSON, compressed with gzip and encoded in Ascii85, with `v` in place of `<`, which could end an element.

    The keys of objects are stored once for all objects with the same keys: `[[names, ...], value]`, where an object is
    `[number of its names, value, ...]` and a list `[-1, value, ...]`. A document of 100 kB takes a tenth of that.
    Ascii85 is a sixteenth shorter than base64; its abbreviation `z` is not used.
    """
    names: dict[tuple[str, ...], int] = {}
    shaped = _shaped(value, names)
    text = json.dumps([[*map(list, names)], shaped], ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, GZIP_WINDOW, 9)
    letters = base64.a85encode(packer.compress(text.encode()) + packer.flush()).decode()
    return letters.replace("z", "!!!!!").replace("<", "v")


def _shaped(value: Any, names: dict[tuple[str, ...], int]) -> Any:
    if isinstance(value, dict):
        number = names.setdefault(tuple(value), len(names))
        return [number, *(_shaped(held, names) for held in value.values())]
    return [-1, *(_shaped(held, names) for held in value)] if isinstance(value, list | tuple) else value

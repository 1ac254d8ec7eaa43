"""One self-contained HTML file: no requests, readable without scripts, safe from injection by the document."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.document.facts import SHOWN
from reports.formats import csv
from reports.view import View

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

GZIP_WINDOW = 31
"""Largest window, with the head of a gzip file."""
TEMPLATES = Path(__file__).parent.parent / "templates"


def render(view: View) -> str:
    """The page, ending in a line break."""
    from markupsafe import Markup

    css, js = style(), script()
    w = view.words
    whatif = view.data.get("whatif") or {}
    names = [plan["precision"] for plan in whatif.get("plans", ())]
    rows = [("cost_usd", "metric.cost_usd"), ("days", "metric.duration_days"), ("gpu_hours", "metric.gpu_hours"),
            ("energy_mwh", "metric.energy_mwh"), ("carbon_t", "metric.carbon_tco2e"),
            ("bill_usd", "whatif.bill")]  # fmt: skip
    page = _template().render(
        view=view,
        w=w,
        css=Markup(css),
        js=Markup(js),
        csp=policy(css, js),
        data=Markup(embedded(whatif or None)),
        packed=Markup(packed(page_data(view))),
        whatif_after="gpus" if any(section.id == "gpus" for section in view.sections) else "views",
        whatif_rows=[(name, w(key)) for name, key in rows],
        whatif_plans=[(name, w.name("precision", name)) for name in names],
        asked=w.name("precision", whatif.get("asked", "")),
    )
    return page.strip() + "\n"


def page_data(view: View) -> list[Any]:
    """What the page holds for download: the document in two parts, and between them its CSV or the columns of it.

    Of the savings between any two precisions the page holds those of the one that was asked for.
    """
    asked = (view.data.get("whatif") or {}).get("asked")
    items = list(_without_detail(asked, _with_savings_of(asked, view.data["document"])).items())
    cut = next((n for n, (key, _) in enumerate(items, start=1) if key in ("plans", "first")), len(items))
    table = view.data.get("csv") or csv.paths_of(view.data["document"])
    return [dict(items[:cut]), table, dict(items[cut:])]


def _with_savings_of(asked: str | None, document: dict[str, Any]) -> dict[str, Any]:
    if asked is None:
        return document
    return document | {"savings": [row for row in document["savings"] if asked in (row["from"], row["to"])]}


DETAIL = frozenset({
    "lost_layouts", "uncertainty", "products", "collectives", "attention_kernel", "narrow_gain", "energy_items_mwh",
    "step_range_s", "sci_kg_per_run", "sci_kg_per_1e21_flop",
})  # fmt: skip
"""Of the plans by the same deadline, what a page that draws training or several GPUs leaves out, to be as small as the
others."""
DIGITS, END_DIGITS = 7, 3
"""Digits of a number in the document of such a page: items still sum to their totals; and of the ends of its range."""


def _without_detail(asked: str | None, document: dict[str, Any]) -> dict[str, Any]:
    """The document, where training or several GPUs are drawn with less detail: of the second view, and of precisions
    that were not asked for.

    Of the savings, what the asked precision and the narrowest one save is left.
    """
    several = asked is not None and len({plan["gpu"] for plan in document["plans"]}) > 1
    if not document.get("numerics") and not several:
        return document
    plans = [{name: held for name, held in plan.items() if name not in DETAIL} for plan in document["same_deadline"]]
    first = [
        plan
        if plan["precision"] == asked
        else plan | {"lost_layouts": [], "collectives": [], "uncertainty": [], "products": []}
        for plan in document["plans"]
    ]
    held = {plan["precision"] for plan in document["plans"]}
    to = {asked, next((name for name in SHOWN if name in held), asked)}
    savings = [row for row in document["savings"] if row["to"] in to]
    shorter: dict[str, Any] = _rounded(document | {"plans": first, "same_deadline": plans, "savings": savings})
    return shorter


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if abs(value) < 10**DIGITS else value
    if isinstance(value, dict):
        return {name: _rounded(held) for name, held in value.items()} | _rounded_ends(value)
    return [_rounded(held) for held in value] if isinstance(value, list) else value


def _rounded_ends(value: dict[str, Any]) -> dict[str, float]:
    """The ends of a range with fewer digits, outwards; of what is exact none."""
    low, high = value.get("low"), value.get("high")
    if not isinstance(low, float) or not isinstance(high, float) or not low < high:
        return {}
    return {"low": _outwards(low, ROUND_FLOOR), "high": _outwards(high, ROUND_CEILING)}


def _outwards(value: float, way: str) -> float:
    if not value:
        return value
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - END_DIGITS + 1), rounding=way))


def packed(value: Any) -> str:
    """JSON, compressed (gzip) and in Ascii85, with `v` for the `<` that could end an element.

    A document of 100 kB takes a tenth of that. Ascii85 is a sixteenth shorter than base64; its abbreviation `z` is not
    used.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, GZIP_WINDOW, 9)
    letters = base64.a85encode(packer.compress(text.encode()) + packer.flush()).decode()
    return letters.replace("z", "!!!!!").replace("<", "v")


def embedded(value: Any) -> str:
    """JSON that is safe inside a script element: nothing in it ends the element or starts a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def policy(css: str, js: str) -> str:
    """Content security policy: only this style, this script and embedded pictures."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (css, js)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def short(value: float) -> str:
    """A number for an attribute: six significant digits, no trailing zeros."""
    return f"{value:.6g}"


def with_code(text: str) -> Markup:
    """Escaped text, with the parts between backticks as code."""
    from markupsafe import Markup, escape

    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    coded = (f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
    return Markup("".join(coded))


_PLAIN = re.compile(r"(?:[≥<] ?)?[−+]?[\d,]+(?:\.\d+)?%?")
"""A text that the page's script can sort as the number it is."""


@lru_cache
def style() -> str:
    """The style sheet."""
    return (TEMPLATES / "report.css").read_text(encoding="utf-8").strip()


@lru_cache
def script() -> str:
    """The script without its comment lines, indentation and spaces around what parts words anyway."""
    texts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("arithmetic.js", "report.js")]
    kept = (line.strip() for text in texts for line in text.splitlines())
    return "\n".join(closer(line) for line in kept if line and not line.startswith("//"))


_STRING = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_EXPRESSION = re.compile(r"([(=!:,]|return) ?/[^/*]")
"""Where a regular expression begins, whose spaces count."""
_LOOSE = re.compile(r" ?([,;:=<>&|*(){}\[\]]+) ?")
"""Marks that part words by themselves; not `+` and `-`, which may be signs, nor `?`."""


def closer(line: str) -> str:
    """A line of the script without those spaces; strings stay, and lines with a regular expression."""
    if _EXPRESSION.search(line):
        return line
    parts = _STRING.split(line)
    return "".join(part if number % 2 else _LOOSE.sub(r"\1", part) for number, part in enumerate(parts))


@lru_cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, auto_reload=False
    )
    environment.filters["g"] = short
    environment.filters["code"] = with_code
    environment.tests["plain"] = lambda text: _PLAIN.fullmatch(text) is not None
    return environment.get_template("report.html.j2")

"""One self-contained HTML file: no requests, readable without scripts, safe from injection by the document."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.formats import csv
from reports.view import View
from reports.view.held import most_that_fits

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

LIMIT_BYTES = 150_000
"""What a page takes at most: the document in it has less detail where it would take more."""
HELD = "~held~"
"""Stands for the packed document until the size of the rest of the page is known."""
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
        packed=HELD,
        whatif_after="gpus" if any(section.id == "gpus" for section in view.sections) else "views",
        whatif_rows=[(name, w(key)) for name, key in rows],
        whatif_plans=[(name, w.name("precision", name)) for name in names],
        asked=w.name("precision", whatif.get("asked", "")),
        priced=bool((whatif.get("knobs") or {}).get("price")),
    )
    page = page.strip() + "\n"
    columns = [] if view.data.get("csv") else csv.paths_of(view.data["document"])
    held = most_that_fits(view, columns, LIMIT_BYTES - len(page.encode()))
    return page.replace(f">{HELD}<", f">{held}<", 1)  # no text of the document has such a `<` beside it


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
    """The style sheet without line ends where a mark parts what stands on both sides."""
    lines = (TEMPLATES / "report.css").read_text(encoding="utf-8").strip().splitlines()
    return "".join(line if line.endswith((";", ",", "{", "}")) else line + "\n" for line in lines).strip()


@lru_cache
def script() -> str:
    """The script without its comment lines, indentation, and spaces and line ends around what parts words anyway."""
    texts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("arithmetic.js", "report.js")]
    kept = (line.strip() for text in texts for line in text.splitlines())
    lines = (closer(line) for line in kept if line and not line.startswith("//"))
    return "".join(line if line.endswith((";", ",", "{")) else line + "\n" for line in lines).strip()


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

"""One self-contained HTML file that makes no requests, works without scripts, and resists injection by the document."""

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
from reports.view.page_data import is_shortened, most_that_fits
from reports.view.shorter import shorter

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

LIMIT_BYTES = 150_000
"""Size limit of a page in bytes; the embedded document has less detail if it would exceed the limit."""
HELD = "~held~"
"""Placeholder for the packed document until the size of the rest of the page is known."""
TEMPLATES = Path(__file__).parent.parent / "templates"


def render(view: View) -> str:
    """Return the page, ending in a line break, with less detail about GPUs than the leading one if it is too large."""
    page = _page(view)
    return page if len(page.encode()) <= LIMIT_BYTES else _page(shorter(view), alone=True)


def _page(view: View, *, alone: bool = False) -> str:
    """Return the page; `alone`: the data to download may lack the plans of all GPUs but the leading one."""
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
        download=_download(view),
        whatif_after="gpus" if any(section.id == "gpus" for section in view.sections) else "views",
        whatif_rows=[(name, w(key)) for name, key in rows],
        whatif_plans=[(name, w.name("precision", name)) for name in names],
        asked=w.name("precision", whatif.get("asked", "")),
        priced=bool((whatif.get("knobs") or {}).get("price")),
    )
    page = page.strip() + "\n"
    columns = [] if view.data.get("csv") else csv.paths_of(view.data["document"])
    held = most_that_fits(view, columns, LIMIT_BYTES - len(page.encode()), alone=alone)
    return page.replace(f">{HELD}<", f">{held}<", 1)  # no text of the document has an unescaped `<` here


def _download(view: View) -> str:
    """Return the key of the sentence that says what there is to download."""
    if view.data.get("csv"):
        return "compare.download"
    return "download.lead_shortened" if is_shortened(view) else "download.lead"


def embedded(value: Any) -> str:
    """Return JSON that is safe inside a script element: nothing in it can end the element or start a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def policy(css: str, js: str) -> str:
    """Return the content security policy: only this style, this script and embedded pictures are allowed."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (css, js)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def short(value: float) -> str:
    """Format a number for an attribute with six significant digits and no trailing zeros."""
    return f"{value:.6g}"


_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*\w", re.ASCII)
"""A flag of the command line, in escaped text."""


def with_code(text: str) -> Markup:
    """Return escaped text with flags and the parts between backticks as code, which does not break after a hyphen.

    Spaces at the start, which indent a label in a table, are kept.
    """
    from markupsafe import Markup, escape

    words = text.lstrip(" ")
    indent = "&nbsp;" * (len(text) - len(words)) if words else ""
    parts = [str(escape(part)) for part in words.split("`")]
    if len(parts) % 2 == 0:
        parts = [str(escape(words))]
    coded = (f"<code>{part}</code>" if number % 2 else _FLAG.sub(r"<code>\g<0></code>", part)
             for number, part in enumerate(parts))  # fmt: skip
    return Markup(indent + "".join(coded))


_PLAIN = re.compile(r"(?:[≥<] ?)?[−+]?[\d,]+(?:\.\d+)?%?")
"""Text that the page's script can sort as a number."""


@lru_cache
def style() -> str:
    """Return the style sheet without line breaks after punctuation that makes them redundant."""
    lines = (TEMPLATES / "report.css").read_text(encoding="utf-8").strip().splitlines()
    return "".join(line if line.endswith((";", ",", "{", "}")) else line + "\n" for line in lines).strip()


@lru_cache
def script() -> str:
    """Return the script without comment lines, indentation, and redundant spaces and line breaks around punctuation."""
    texts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("arithmetic.js", "report.js")]
    kept = (line.strip() for text in texts for line in text.splitlines())
    lines = (closer(line) for line in kept if line and not line.startswith("//"))
    return "".join(line if line.endswith((";", ",", "{")) else line + "\n" for line in lines).strip()


_STRING = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_EXPRESSION = re.compile(r"([(=!:,]|return) ?/[^/*]")
"""Start of a regular expression, whose spaces are significant."""
_LOOSE = re.compile(r" ?([,;:=<>&|*(){}\[\]]+) ?")
"""Punctuation that separates words by itself; not `+` and `-`, which may be signs, nor `?`."""


def closer(line: str) -> str:
    """Return a script line without redundant spaces; strings and lines with a regular expression stay unchanged."""
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

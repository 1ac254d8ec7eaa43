"""From a document to a view: check, clean and redact it, then make the first screen and sections in one language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from planner.answer.document import ESTIMATE_SCHEMA
from planner.errors import InputFileError
from reports.document.facts import Doc, Facts
from reports.document.redact import left_out, redacted
from reports.page.brief import brief
from reports.page.hero import asked_size, hero, model_phrase
from reports.text.clean import clean, clean_tree
from reports.text.language import Words, words_for
from reports.view import View

_NEEDED = ("question", "model", "plans", "savings", "assumptions", "gaps", "evidence")
_PLAN_KEYS = ("precision", "policy", "gpu", "gpus", "fits", "why_not", "memory_gib", "step_s", "duration_days",
              "gpu_hours", "energy_mwh", "cost_usd", "carbon_tco2e")  # fmt: skip
_OPTIONAL_PLAN: Doc = {
    "memory_capacity_gib": 0.0, "memory_risk": None, "step_range_s": None, "mfu_full_attention": None, "hfu": None,
    "goodput_ratio": None,
    "energy_items_mwh": None, "gpu_power_w": None, "peak_power_mw": None, "cost_lines": [], "carbon_market_tco2e": None,
    "uncertainty": [], "lost_layouts": [], "layouts_evaluated": 0, "layout": None,
}  # fmt: skip


def checked(document: Any, name: str = "document") -> Doc:
    """Return a cleaned copy of an estimate, with every key that the report reads.

    Raises:
        InputFileError: it is not an estimate, or a key that the report needs is missing.
    """
    hint = "pass the document that `mpplan estimate --json` printed"
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != ESTIMATE_SCHEMA:
        raise InputFileError(f"{name}: schema: expected `{ESTIMATE_SCHEMA}`, found `{clean(schema)}`", hint=hint)
    for key in _NEEDED:
        if key not in document:
            raise InputFileError(f"{name}: {key}: missing", hint=hint)
    doc: Doc = clean_tree(document)
    if not doc["plans"]:
        raise InputFileError(f"{name}: plans: expected at least one plan, found none", hint=hint)
    for view in ("plans", "same_deadline"):
        doc[view] = [_plan(plan, f"{name}: {view}[{number}]", hint) for number, plan in enumerate(doc.get(view) or ())]
    for line in (line for plan in doc["plans"] + doc["same_deadline"] for line in plan["cost_lines"]):
        _fill_line(line)
    return doc


def _plan(plan: Any, where: str, hint: str) -> Doc:
    if not isinstance(plan, dict):
        raise InputFileError(f"{where}: expected an object", hint=hint)
    for key in _PLAN_KEYS:
        if key not in plan:
            raise InputFileError(f"{where}: {key}: missing", hint=hint)
    if plan["fits"] and not (plan["duration_days"] and plan["gpu_hours"] and plan["step_s"] and plan["memory_gib"]):
        raise InputFileError(f"{where}: fits, but has no figures", hint=hint)
    return {**_OPTIONAL_PLAN, **plan}


def _fill_line(line: Doc) -> None:
    for key in ("quantity", "unit", "unit_price_usd"):
        line.setdefault(key, None)
    for child in line.setdefault("children", []):
        _fill_line(child)


def build(
    document: Any,
    *,
    name: str = "document",
    title: str | None = None,
    logo: str | None = None,
    redact: Iterable[str] = (),
    lang: str = "en",
    short: bool = False,
) -> View:
    """Return the view of one plan; a short view has only the first screen and the short answer, which is much faster.

    Raises:
        InputFileError: see `checked`.
        UsageError: the language or a part to leave out is unknown.
    """
    words = words_for(lang)
    doc = redacted(checked(document, name), redact)
    if "names" in left_out(doc):
        doc["model"]["name"] = words("redact.model")
    facts = Facts(doc)
    view = View(
        words=words,
        title=clean(title) or words("title", model=_model_title(facts, words)),
        subtitle=words("subtitle"),
        hero=hero(facts, words),
        sections=(),
        brief=brief(facts, words),
        footer=_footer(doc, words),
        logo=logo,
    )
    return view if short else _whole(view, facts)


def _model_title(facts: Facts, words: Words) -> str:
    if facts.given("params") and not facts.given("model"):
        return asked_size(facts, words)
    return facts.model_name or model_phrase(facts, words)


def _whole(view: View, facts: Facts) -> View:
    """Add the sections to the view, and the data for the script of a page."""
    from reports.page.sections import SECTIONS
    from reports.page.whatif import slider_data

    built = (builder(facts, view.words) for builder in SECTIONS)
    data, sliders = slider_data(facts, view.words)
    return replace(
        view,
        sections=tuple(section for section in built if section is not None),
        data={"document": facts.doc, "whatif": data},
        sliders=sliders,
    )


def made_by(doc: Doc, words: Words) -> str:
    """Return the line that says which version made a document, and when, to the minute."""
    made = str(doc.get("created_at") or "")[:16].replace("T", " ")
    return words("page.by", version=doc.get("mpplan") or "", date=made)


def _footer(doc: Doc, words: Words) -> tuple[str, ...]:
    lines = [made_by(doc, words)]
    if doc.get("command"):
        lines.append(words("page.command", command=" ".join(doc["command"])))
    if left_out(doc):
        parts = [words(f"redact.{part}") for part in left_out(doc)]
        lines.append(words("page.redacted", parts=words.join(parts)))
    return tuple(lines)

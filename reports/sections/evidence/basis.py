"""The basis of the answer: assumptions and gaps in plain words, all inputs, all sources, and a guide to the page."""

from __future__ import annotations

from typing import Any

from reports.document.facts import COST, Facts, rung_of
from reports.document.public import PRICE_OF
from reports.text.clean import clean, web_address
from reports.text.language import Words
from reports.text.messages import Sentence, sentence, sentences
from reports.text.names import pretty_gpu
from reports.view import Block, Cell, Column, Items, Pairs, Prose, Section, Table, TableRow
from reports.view.cells import count_cell

GLOSSARY = (
    "precision", "strict_fp32", "tf32", "bf16", "fp8", "policy", "gpu_hour", "step", "global_batch", "tp", "pp", "cp",
    "ep", "dp", "zero", "checkpointing", "mfu", "hfu", "goodput", "pue", "grid_factor", "range", "lower_bound",
)  # fmt: skip
READING = ("range", "budget", "views", "saving", "lower_bound", "evidence")
METHOD = ("work", "memory", "time", "run", "energy", "cost", "carbon", "ranges")


def assumptions(facts: Facts, words: Words) -> Section | None:
    """Show what is missing, what was assumed, and the flag that replaces each assumption."""
    doc = facts.doc
    blocks: list[Block] = []
    gaps = [gap_cell(gap, words) for gap in doc["gaps"]]
    if gaps:
        blocks.append(Items(title=words("assumptions.gaps"), items=tuple(gaps), tone="bad"))
    warnings = [_cell(warning) for warning in sentences(doc, "warnings", words.lang)]
    if warnings:
        blocks.append(Items(title=words("assumptions.warnings"), items=tuple(warnings)))
    assumed = [_cell(sentence(row, "text", words.lang), detail=clean(row["change_with"])) for row in doc["assumptions"]]
    if assumed:
        blocks.append(Items(title=words("assumptions.taken"), items=tuple(assumed)))
    if not blocks:
        return None
    lead = words.spans("assumptions.lead")
    return Section(id="assumptions", title=words("assumptions.title"), lead=lead, blocks=tuple(blocks), group="basis")


def _cell(worded: Sentence, detail: str = "") -> Cell:
    return Cell(text=worded.text, detail=detail, foreign=worded.foreign)


def gap_cell(gap: dict[str, Any], words: Words) -> Cell:
    """Return one sentence on a gap: what is missing, why, and its effect."""
    parts = {name: sentence(gap, name, words.lang) for name in ("what", "why", "effect")}
    text = words("gap", **{name: part.text for name, part in parts.items()})
    return Cell(text=text, foreign=any(part.foreign for part in parts.values()))


def question(facts: Facts, words: Words) -> Section | None:
    """Show every input with its value and its origin."""
    asked = facts.doc["question"]
    if not asked:
        return None
    rows = tuple(
        TableRow(
            cells=(
                Cell(text=input_label(name, words)),
                Cell(text=input_text(name, entry, words)),
                _source_of(entry, words),
            )
        )
        for name, entry in asked.items()
        if entry["value"] is not None
    )
    model = facts.doc["model"]
    derived = facts.given("params") and not facts.given("model")
    sparse = model["params_active"] < model["params_total"]
    lead = words.spans(
        "question.lead" if sparse else facts.worded("question.lead_dense", "question.lead_images"),
        model=words("question.derived") if derived else facts.model_name,
        params=words.value("params", model["params_total"]),
        active=words.value("params", model["params_active"]),
    )
    table = Table(
        caption=words("table.question"),
        columns=tuple(Column(head=words(f"column.{h}")) for h in ("input", "value", "where_from")),
        rows=rows,
    )
    return Section(id="question", title=words("question.title"), lead=lead, blocks=(table, _shape(facts, words)))


def _source_of(entry: dict[str, Any], words: Words) -> Cell:
    """Return the origin of an input, with its note."""
    note = sentence(entry, "note", words.lang)
    return Cell(text=words.name("given", str(entry["source"])), detail=note.text)


SHAPE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "vocab", "context", "experts", "top_k",
         "shared_experts", "expert_ffn", "mtp_layers")  # fmt: skip
IMAGE_SHAPE = ("params_total", "image_size", "flop_per_image")


def _shape(facts: Facts, words: Words) -> Table:
    model = facts.doc["model"]
    rows = tuple(
        TableRow(cells=(Cell(text=words.name("shape", name)), count_cell(model[name])))
        for name in (IMAGE_SHAPE if facts.sees_images else SHAPE)
        if model.get(name)
    )
    return Table(
        caption=words("table.shape"),
        columns=(Column(head=words("column.item")), Column(head=words("column.value"), numeric=True)),
        rows=rows,
        wide=False,
    )


_INPUT_QUANTITY = {
    "tokens": "tokens",
    "samples": "plain",
    "examples": "plain",
    "params": "params",
    "budget": "money",
    "power_limit": "power_w",
}
_PER_KWH = {"grid": "input.kg_per_kwh", "market_grid": "input.g_per_kwh"}
"""Factors of electricity and their units where they are numbers; a grid factor that the user gives is text, in g."""


def input_label(name: str, words: Words) -> str:
    """Return the label of an input; the price of one of several GPUs is labelled with the GPU, too."""
    if not name.startswith(PRICE_OF):
        return words.name("input", name)
    return words("list.told", name=words.name("input", "price"), text=pretty_gpu(name.removeprefix(PRICE_OF)))


def input_text(name: str, entry: dict[str, Any], words: Words) -> str:
    """Format the value of an input."""
    value = entry["value"]
    if name in _PER_KWH and (factor := _factor_text(name, value, words)):
        return factor
    if isinstance(value, bool):
        return words("yes") if value else words("no")
    if isinstance(value, int | float):
        return words.value(_INPUT_QUANTITY[name], value) if name in _INPUT_QUANTITY else _number(value)
    if isinstance(value, list):
        return ", ".join(pretty_gpu(str(item)) if name == "gpu" else clean(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{clean(key)} {clean(inner)}" for key, inner in value.items())
    return pretty_gpu(str(value)) if name == "gpu" else sentence(entry, "value", words.lang).text


def _factor_text(name: str, value: Any, words: Words) -> str:
    """Return a factor of electricity with its unit, which depends on where it comes from; empty for a zone."""
    if isinstance(value, int | float):
        return words(_PER_KWH[name], n=_number(float(value)))
    try:
        return words("input.g_per_kwh", n=_number(float(value)))
    except ValueError:
        return ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.6g}"


def sources(facts: Facts, words: Words) -> Section | None:
    """Show every source that was used, in one table per kind, best kind first."""
    evidence = sorted(facts.doc["evidence"], key=lambda source: rung_of(source["kind"]))
    if not evidence:
        return None
    kinds: dict[str, list[dict[str, Any]]] = {}
    for source in evidence:
        kinds.setdefault(source["kind"], []).append(source)
    counts = [
        words("sources.count", n=f"{len(own):,}", kind=words.name("evidence", kind)) for kind, own in kinds.items()
    ]
    tables = tuple(_source_table(kind, own, evidence, words) for kind, own in kinds.items())
    note = Prose(spans=words.spans("note.sources"), tone="note")
    lead = words.spans("sources.lead", n=f"{len(evidence):,}", counts=words.join(counts))
    return Section(id="sources", title=words("sources.title"), lead=lead, blocks=(*tables, note))


def _source_table(kind: str, own: list[dict[str, Any]], evidence: list[dict[str, Any]], words: Words) -> Table:
    rows = tuple(
        TableRow(
            cells=(
                Cell(text=clean(source["what"]), foreign=words.lang != "en"),
                _source_cell(source, evidence, words),
                _date_cell(source["date"], words),
                Cell(text=words.join([_used(name, words) for name in direct(source["used_in"])])),
            )
        )
        for source in own
    )
    return Table(
        caption=words("table.sources", kind=words.name("evidence", kind)),
        columns=tuple(Column(head=words(f"column.{h}")) for h in ("what", "source", "date", "used_in")),
        rows=rows,
    )


LONG_SOURCE = 80
"""If a source at least this long is the end of another source, the other one refers to it instead of repeating it."""


def _source_cell(source: dict[str, Any], evidence: list[dict[str, Any]], words: Words) -> Cell:
    text = clean(source["source"])
    for candidate in evidence:
        shared = clean(candidate["source"])
        if len(shared) >= LONG_SOURCE and text != shared and text.endswith(f"; {shared}"):
            named = words("sources.as_for", what=clean(candidate["what"]).partition(":")[0])
            return Cell(text=f"{text[: -len(shared)]}{named}", foreign=words.lang != "en")
    return Cell(text=text, href=web_address(text))


def _date_cell(date: object, words: Words) -> Cell:
    """Return a day or a year; for an interval, its months."""
    text = clean(date) if date else words("undated")
    first, dash, last = text.partition("/")
    return Cell(text=words("range.dates", first=first[:7], last=last[:7]) if dash else text)


_FOLLOWS = {
    "duration_days": ("step_s", "goodput_ratio"),
    "mfu": ("step_s",),
    "tokens_per_s_per_gpu": ("step_s",),
    "samples_per_s_per_gpu": ("step_s",),
    "tflops_per_gpu": ("step_s",),
    "gpu_hours": ("duration_days", "step_s"),
    "cost_usd": ("gpu_hours", "duration_days", "step_s"),
    "energy_mwh": ("gpu_power_w", "gpu_hours", "duration_days", "step_s"),
    "carbon_tco2e": ("energy_mwh", "gpu_hours", "duration_days", "step_s"),
}
"""Figures that are derived from others; a source for an original figure is implicitly a source for the derived ones."""


def direct(used_in: list[str]) -> list[str]:
    """Return the figures that a source affects directly, without their items and without derived figures."""
    figures = list(dict.fromkeys(name.partition(".")[0] for name in used_in))
    return [name for name in figures if not set(figures).intersection(_FOLLOWS.get(name, ()))]


def _used(name: str, words: Words) -> str:
    metric, _, item = clean(name).partition(".")
    label = words.name("metric", metric)
    if not item:
        return label
    group = {"step_s": "step", "memory_gib": "memory", "cost_usd": "cost"}.get(metric, metric)
    return words("used.item", metric=label, item=words.name(group, item))


def reading(facts: Facts, words: Words) -> Section | None:
    """Explain how to read the page, and what would make it wrong.

    The high end of the range goes by the name that the answer gives it.
    """
    high = "over" if facts.over_budget else "budget" if (facts.answer or {}).get(COST) else "plan"
    keys = (high if key == "budget" else key for key in READING)
    pairs = tuple((words(f"reading.{key}.term"), words(f"reading.{key}.text")) for key in keys)
    wrong = Items(
        title=words("reading.wrong"),
        items=tuple(Cell(text=words(f"reading.wrong.{n}")) for n in range(1, 6)),
    )
    lead = words.spans("reading.lead")
    return Section(id="reading", title=words("reading.title"), lead=lead, blocks=(Pairs(pairs=pairs), wrong))


def method(_facts: Facts, words: Words) -> Section | None:
    """Describe the performance model in eight sentences."""
    pairs = tuple((words(f"method.{key}.term"), words(f"method.{key}.text")) for key in METHOD)
    return Section(id="method", title=words("method.title"), lead=(), blocks=(Pairs(pairs=pairs),))


def glossary(_facts: Facts, words: Words) -> Section | None:
    """Explain each technical term in a sentence."""
    pairs = tuple((words(f"glossary.{key}.term"), words(f"glossary.{key}.text")) for key in GLOSSARY)
    return Section(id="glossary", title=words("glossary.title"), lead=(), blocks=(Pairs(pairs=pairs),))

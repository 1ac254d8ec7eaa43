"""Known effects of each precision on the loss, as sentences of the short answer and as a table."""

from __future__ import annotations

from planner.training.grad_compression import OF_RANK, load_grad_compressions
from reports.document.facts import Doc, Facts
from reports.text.clean import clean
from reports.text.language import Span, Words
from reports.text.names import pretty_gpu
from reports.text.numbers import grouped, magnitude
from reports.view import Block, Cell, Column, Items, Prose, Table, TableRow

KNOWN = ("measured", "published")
UNKNOWN = {"not_tested": "parity.not_tested", "reference": "parity.reference"}
"""Text for a precision without results, by its basis."""
HEADS = ("precision", "parity", "verdict", "parity_of")
UNTESTED_HEADS = ("precision", "parity")
"""Columns of the table if nothing is known about any precision."""


def parity_rows(facts: Facts) -> list[Doc]:
    """Return the parity row of each precision on the leading GPU, lowest precision first."""
    own = {row["precision"]: row for row in facts.doc.get("parity") or () if row["gpu"] == facts.gpu}
    return [own[plan["precision"]] for plan in facts.plans() if plan["precision"] in own]


def signed(value: float, like: float | None = None) -> str:
    """Format a difference with its sign and two digits, relative to its own size or to that of `like`."""
    size = abs(value if like is None else like)
    decimals = min(max(2, 1 - magnitude(size)), 6) if size else 2
    text = grouped(value, decimals)
    return text if text.startswith("−") or not value else f"+{text}"


def signed_ends(interval: Doc) -> tuple[str, str, str]:
    """Return low, middle and high of a difference with signs, all with the decimals of the larger end."""
    size = max(abs(interval["low"]), abs(interval["high"]))
    low, mid, high = (signed(interval[end], size) for end in ("low", "mid", "high"))
    return low, mid, high


def ended_in_nan(runs: int, of: int, words: Words) -> str:
    """Say how many runs ended without a finite value."""
    return words("parity.diverged_of", runs=f"{runs:,}", of=words.count("runs", of))


def difference(measured: Doc, words: Words) -> str:
    """Describe a measured difference with its interval, and how many runs ended in NaN."""
    interval, diverged, pairs = measured["difference"], measured.get("diverged"), measured["seeds"]
    nan = ended_in_nan(diverged, max(pairs or 0, diverged), words) if diverged else ""
    if interval is None:
        return nan or words("parity.diverged" if diverged is None else "parity.too_few")
    text = _with_interval(measured, interval, words)
    return words("list.semicolon").join((text, nan)) if nan else text


def _with_interval(measured: Doc, interval: Doc, words: Words) -> str:
    low, mid, high = signed_ends(interval)
    loss = "parity.loss" if measured.get("task") == "own" else "parity.nats"  # the unit of their loss is unknown
    unit = loss if measured["metric"] == "loss" else "parity.accuracy"
    return words(unit, text=words("parity.interval", low=low, mid=mid, high=high))


def skipped_text(untrained: Doc, words: Words) -> str:
    """Say how many steps loss scaling skipped in a precision that does not train."""
    if untrained["steps"] is None or untrained["skipped"] is None:
        return words("untrained.all")
    steps = words.count("steps_of_training", int(untrained["steps"]))
    return words("untrained.skipped", skipped=f"{untrained['skipped']:,}", steps=steps)


def failed(row: Doc) -> Doc | None:
    """Return the training run that shows that a precision does not train; None if there is none."""
    tried: Doc | None = row.get("untrained")
    return tried


def verdict(measured: Doc, words: Words) -> str:
    """Return the verdict with its margin."""
    margin = measured["margin"]
    return words(f"verdict.{measured['verdict']}", margin=f"{margin:g}" if margin is not None else "–")


def tested_on(measured: Doc, words: Words) -> str:
    """Describe what was trained, for how long and on which device."""
    task = words("parity.own_task") if measured["task"] == "own" else clean(measured["task"])
    parts = [task if measured.get("like_plan", True) else words("parity.other_kind", task=task)]
    if measured["steps"] is not None:
        parts.append(words.count("steps_of_training", int(measured["steps"])))
    if measured.get("seeds") is not None:
        parts.append(words.count("pairs_of_runs", int(measured["seeds"])))
    parts.append(clean(measured["device"]))
    if measured["emulated"]:
        parts.append(words("parity.emulated"))
    return words("list.comma").join(parts)


def published_text(published: Doc, words: Words) -> str:
    """Describe a published difference with its setting."""
    steps = published["steps"]
    return words(
        "parity.published" if steps is not None else "parity.published_unknown_steps",
        difference=words("parity.nats", text=signed(published["difference"], 0.01)),
        baseline=words.name("precision", published["baseline"]),
        model=clean(published["model"]),
        steps="" if steps is None else words.count("steps_of_training", int(steps)),
    )


def per_nat_text(per_nat: Doc | None, words: Words) -> str:
    """Describe the saving, the loss paid for it, and the rate per nat, in money or else GPU-hours; empty if unknown."""
    if per_nat is None:
        return ""
    usd, saved = per_nat["usd_per_nat"], per_nat["saved_usd"]
    priced = usd is not None and saved is not None
    kind, total, rate = (
        ("money", saved, usd) if priced else ("gpu_hours", per_nat["saved_gpu_hours"], per_nat["gpu_hours_per_nat"])
    )
    return words(
        "parity.per_nat", saved=words.value(kind, total), rate=words.value(kind, rate),
        baseline=words.name("precision", per_nat["baseline"]),
        nats=words("parity.nats", text=signed(per_nat["nats"], min(per_nat["nats"], 0.01))),
    )  # fmt: skip


def rates(row: Doc) -> dict[str, Doc | None]:
    """Return the saving per nat by the measured loss and by the published one."""
    per_nat = row["per_nat"]
    own = per_nat if per_nat and per_nat["basis"] == "measured" else None
    others = row.get("published_per_nat") or (per_nat if own is None else None)
    return {"measured": own, "published": others}


def closing(facts: Facts, words: Words) -> Block:
    """Return the end of the short answer: known effects of lower precisions on the result, and untested precisions."""
    rows = parity_rows(facts)
    lines = [line for row in rows for line in _lines(row, words)]
    names = untested(rows, words)
    if not lines:
        spans = words.spans("brief.quality") + (words.spans("brief.untested", names=names) if names else ())
        compressed = compression_text(facts, words)
        return Prose(spans=spans + ((Span(text=words("brief.then", text=compressed)),) if compressed else ()))
    if names:
        lines.append(words("parity.untested", names=names))
    compressed = compression_text(facts, words)
    lines += [compressed] if compressed else []
    lines.append(words("parity.not_yours"))
    return Items(items=tuple(Cell(text=line) for line in lines), title=words("brief.result"))


def compression_text(facts: Facts, words: Words) -> str:
    """Describe the plan's compression of gradients and its paper's finding; empty without compression."""
    given = facts.given("grad_compression")
    compression = load_grad_compressions().get(str(given).split(OF_RANK)[0]) if given else None
    return "" if compression is None else words(f"compression.{compression.id}", name=compression.name)


UNTRAINED = "tf32"
"""The precision in which `mpplan numerics` does not train."""


def untested(rows: list[Doc], words: Words) -> str:
    """Name the untested precisions that `mpplan numerics` could test; empty if there are none."""
    names = [row["precision"] for row in rows if row["basis"] == "not_tested" and row["precision"] != UNTRAINED]
    return words.join([words.name("precision", name) for name in names])


def _lines(row: Doc, words: Words) -> list[str]:
    """Return one line on the measured effect, with the rate per nat, and one on the published effect.

    The rate per nat of the published loss is only in the full answer, because that loss is of another model.
    """
    name, lines = words.name("precision", row["precision"]), []
    measured, published, untrained = row["measured"], row["published"], failed(row)
    cost = per_nat_text(rates(row)["measured"], words)
    if untrained is not None:
        skips, tried = skipped_text(untrained, words), tested_on(untrained, words)
        lines.append(words("untrained.line", precision=name, skipped=skips, tested=tried))
    if measured is not None:
        text = words(
            "parity.line", precision=name, difference=difference(measured, words), verdict=verdict(measured, words),
            baseline=words.name("precision", measured["baseline"]), tested=tested_on(measured, words),
        )  # fmt: skip
        lines.append(text + cost)
    if published is not None:
        lines.append(words("parity.published_line", precision=name, text=published_text(published, words)))
    return lines


def parity_table(facts: Facts, words: Words) -> Table | None:
    """Return all precisions with their known effects; None if the document has no such rows."""
    rows = parity_rows(facts)
    if not rows:
        return None
    body: list[TableRow] = []
    for row in rows:
        head = Cell(text=words.name("precision", row["precision"]))
        strong = row["precision"] == facts.asked
        if row["basis"] not in KNOWN:
            body.append(TableRow(cells=(head, Cell(text=words(UNKNOWN[row["basis"]]), tone="quiet")), strong=strong))
            continue
        measured, published, untrained = row["measured"], row["published"], failed(row)
        if untrained is not None:
            body.append(TableRow(cells=(
                head, Cell(text=skipped_text(untrained, words)), Cell(text=words("verdict.untrained"), tone="bad"),
                Cell(text=tested_on(untrained, words)),
            ), strong=strong))  # fmt: skip
        if measured is not None:
            body.append(TableRow(cells=(
                head, Cell(text=difference(measured, words)), Cell(text=verdict(measured, words)),
                Cell(text=tested_on(measured, words)),
            ), strong=strong))  # fmt: skip
        if published is not None:
            model = words("list.comma").join([clean(published["model"]), clean(published["framework"])])
            if published["steps"] is not None:
                model += words("list.comma") + words.count("steps_of_training", int(published["steps"]))
            body.append(TableRow(cells=(
                head, Cell(text=words("parity.nats", text=signed(published["difference"], 0.01))),
                Cell(text=words("parity.against", baseline=words.name("precision", published["baseline"])),
                     href=_address(published["source"])),
                Cell(text=model),
            ), strong=strong))  # fmt: skip
    heads = UNTESTED_HEADS if all(len(row.cells) == len(UNTESTED_HEADS) for row in body) else HEADS
    prices = (_price(row, basis, rate, words) for row in rows for basis, rate in rates(row).items() if rate)
    speeds = (_rate(row, rate, words) for row in rows for rate in (row["published"] or {}).get("rates", ()))
    return Table(
        caption=words("table.parity"), columns=tuple(Column(head=words(f"column.{head}")) for head in heads),
        rows=tuple(body), sortable=False, notes=(*prices, *speeds),
    )  # fmt: skip


def _price(row: Doc, basis: str, rate: Doc, words: Words) -> str:
    """Describe the rate per nat for one loss; it goes below the table, since a column is too wide for a phone."""
    key = "parity.priced_measured" if basis == "measured" else "parity.priced_published"
    return words(key, precision=words.name("precision", row["precision"]), text=per_nat_text(rate, words))


def _rate(row: Doc, rate: Doc, words: Words) -> str:
    """Describe a published speed for which no loss was compared."""
    named = rate["gpus"] is not None and rate["gpu"] is not None
    gpus = words("gpus.row", gpus=f"{rate['gpus']:,}", gpu=pretty_gpu(rate["gpu"])) if named else ""
    return words(
        "parity.rate" if rate["power_gain_ratio"] is not None else "parity.rate_alone",
        precision=words.name("precision", row["precision"]),
        baseline=words.name("precision", rate["baseline"]),
        setting=words("list.comma").join(part for part in (clean(rate["model"]), gpus) if part),
        speed=_gain(rate["rate_gain_ratio"]),
        power=_gain(rate["power_gain_ratio"] or 0.0),
    )


def _gain(ratio: float) -> str:
    text = grouped(100.0 * ratio, 1)
    return f"{text}%" if text.startswith("−") else f"+{text}%"


def _address(source: object) -> str | None:
    text = clean(source)
    return text if text.startswith("https://") else None

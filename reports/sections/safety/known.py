"""What is known of the loss of each precision: as sentences of the short answer, and as a table."""

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
"""What stands for a precision of which nothing is known, by its basis."""
HEADS = ("precision", "parity", "verdict", "parity_of")
UNTESTED_HEADS = ("precision", "parity")
"""Columns of the table where nothing is known of any precision."""


def parity_rows(facts: Facts) -> list[Doc]:
    """What is known of each precision of the leading GPU, lowest precision first."""
    own = {row["precision"]: row for row in facts.doc.get("parity") or () if row["gpu"] == facts.gpu}
    return [own[plan["precision"]] for plan in facts.plans() if plan["precision"] in own]


def signed(value: float, like: float | None = None) -> str:
    """A difference with its sign, with two digits of its own size or of that of `like`."""
    size = abs(value if like is None else like)
    decimals = min(max(2, 1 - magnitude(size)), 6) if size else 2
    text = grouped(value, decimals)
    return text if text.startswith("−") or not value else f"+{text}"


def signed_ends(interval: Doc) -> tuple[str, str, str]:
    """Low, middle and high of a difference with their signs, all with the digits of the larger end."""
    size = max(abs(interval["low"]), abs(interval["high"]))
    low, mid, high = (signed(interval[end], size) for end in ("low", "mid", "high"))
    return low, mid, high


def ended_in_nan(runs: int, of: int, words: Words) -> str:
    """How many runs ended without a finite figure."""
    return words("parity.diverged_of", runs=f"{runs:,}", of=words.count("runs", of))


def difference(measured: Doc, words: Words) -> str:
    """A measured difference with its interval, and how many runs ended in NaN."""
    interval, diverged, pairs = measured["difference"], measured.get("diverged"), measured["seeds"]
    nan = ended_in_nan(diverged, max(pairs or 0, diverged), words) if diverged else ""
    if interval is None:
        return nan or words("parity.diverged" if diverged is None else "parity.too_few")
    text = _with_interval(measured, interval, words)
    return words("list.semicolon").join((text, nan)) if nan else text


def _with_interval(measured: Doc, interval: Doc, words: Words) -> str:
    low, mid, high = signed_ends(interval)
    loss = "parity.loss" if measured.get("task") == "own" else "parity.nats"  # nobody knows what their loss is in
    unit = loss if measured["metric"] == "loss" else "parity.accuracy"
    return words(unit, text=words("parity.interval", low=low, mid=mid, high=high))


def skipped_text(untrained: Doc, words: Words) -> str:
    """How many steps the loss scale skipped where a precision does not train."""
    if untrained["steps"] is None or untrained["skipped"] is None:
        return words("untrained.all")
    steps = words.count("steps_of_training", int(untrained["steps"]))
    return words("untrained.skipped", skipped=f"{untrained['skipped']:,}", steps=steps)


def failed(row: Doc) -> Doc | None:
    """The training that shows that a precision does not train; None where there is none."""
    tried: Doc | None = row.get("untrained")
    return tried


def verdict(measured: Doc, words: Words) -> str:
    """The verdict with its margin."""
    margin = measured["margin"]
    return words(f"verdict.{measured['verdict']}", margin=f"{margin:g}" if margin is not None else "–")


def tested_on(measured: Doc, words: Words) -> str:
    """What was trained, for how long and on what."""
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
    """A published difference with what it is of."""
    steps = published["steps"]
    return words(
        "parity.published" if steps is not None else "parity.published_unknown_steps",
        difference=words("parity.nats", text=signed(published["difference"], 0.01)),
        baseline=words.name("precision", published["baseline"]),
        model=clean(published["model"]),
        steps="" if steps is None else words.count("steps_of_training", int(steps)),
    )


def per_nat_text(per_nat: Doc | None, words: Words) -> str:
    """What is saved, for how much loss, and so how much per nat, in money or else GPU-hours; empty where not known."""
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
    """What a nat costs by the measured loss and by the published one."""
    per_nat = row["per_nat"]
    own = per_nat if per_nat and per_nat["basis"] == "measured" else None
    others = row.get("published_per_nat") or (per_nat if own is None else None)
    return {"measured": own, "published": others}


def closing(facts: Facts, words: Words) -> Block:
    """The end of the short answer: what lower precision is known to do to the result, and what nobody tested."""
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
    """What the plan's compression of gradients sends, and what its paper found; empty without one."""
    given = facts.given("grad_compression")
    compression = load_grad_compressions().get(str(given).split(OF_RANK)[0]) if given else None
    return "" if compression is None else words(f"compression.{compression.id}", name=compression.name)


UNTRAINED = "tf32"
"""What `mpplan numerics` does not train in."""


def untested(rows: list[Doc], words: Words) -> str:
    """The precisions that `mpplan numerics` would tell of, in words; empty where it has, or others have."""
    names = [row["precision"] for row in rows if row["basis"] == "not_tested" and row["precision"] != UNTRAINED]
    return words.join([words.name("precision", name) for name in names])


def _lines(row: Doc, words: Words) -> list[str]:
    """One line of what was measured, with what a nat costs, and one of what is published.

    What a nat of the published loss costs is in the full answer: that loss is another model's.
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
    """Every precision with what is known of it; None where the document says nothing of any."""
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
    """What a nat costs by one of the losses, under the table: a column for it would be too wide for a phone."""
    key = "parity.priced_measured" if basis == "measured" else "parity.priced_published"
    return words(key, precision=words.name("precision", row["precision"]), text=per_nat_text(rate, words))


def _rate(row: Doc, rate: Doc, words: Words) -> str:
    """A published speed where no loss was compared."""
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

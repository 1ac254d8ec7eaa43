"""What is known of the loss of each precision: as sentences of the short answer, and as a table."""

from __future__ import annotations

from reports.document.facts import Doc, Facts
from reports.text.clean import clean
from reports.text.language import Words
from reports.text.names import pretty_gpu
from reports.text.numbers import grouped, magnitude
from reports.view import Block, Cell, Column, Items, Prose, Table, TableRow

KNOWN = ("measured", "published")
UNKNOWN = {"not_tested": "parity.not_tested", "reference": "parity.reference"}
"""What stands for a precision of which nothing is known, by its basis."""


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


def difference(measured: Doc, words: Words) -> str:
    """A measured difference with its interval."""
    interval = measured["difference"]
    if interval is None:
        return words("parity.diverged")
    size = max(abs(interval["low"]), abs(interval["high"]))
    low, mid, high = (signed(interval[end], size) for end in ("low", "mid", "high"))
    unit = "parity.nats" if measured["metric"] == "loss" else "parity.accuracy"
    return words(unit, text=words("parity.interval", low=low, mid=mid, high=high))


def verdict(measured: Doc, words: Words) -> str:
    """The verdict with its margin."""
    margin = measured["margin"]
    return words(f"verdict.{measured['verdict']}", margin=f"{margin:g}" if margin is not None else "–")


def tested_on(measured: Doc, words: Words) -> str:
    """What was trained, for how long and on what."""
    task = words("parity.own_task") if measured["task"] == "own" else clean(measured["task"])
    parts = [task]
    if measured["steps"] is not None:
        parts.append(words.count("steps_of_training", int(measured["steps"])))
    if measured["seeds"] is not None:
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
    """What is saved per nat, in money and GPU-hours; empty where that is not known."""
    if per_nat is None:
        return ""
    hours = words.value("gpu_hours", per_nat["gpu_hours_per_nat"])
    baseline = words.name("precision", per_nat["baseline"])
    if per_nat["usd_per_nat"] is None:
        return words("parity.hours_per_nat", hours=hours, baseline=baseline)
    usd = words.value("money", per_nat["usd_per_nat"])
    return words("parity.usd_per_nat", usd=usd, hours=hours, baseline=baseline)


def closing(facts: Facts, words: Words) -> Block:
    """The end of the short answer: what lower precision is known to do to the result, and what nobody tested."""
    rows = parity_rows(facts)
    lines = [line for row in rows for line in _lines(row, words)]
    names = untested(rows, words)
    if not lines:
        return Prose(spans=words.spans("brief.quality") + (words.spans("brief.untested", names=names) if names else ()))
    if names:
        lines.append(words("parity.untested", names=names))
    lines.append(words("parity.not_yours"))
    return Items(items=tuple(Cell(text=line) for line in lines), title=words("brief.result"))


UNTRAINED = "tf32"
"""What `mpplan numerics` does not train in."""


def untested(rows: list[Doc], words: Words) -> str:
    """The precisions that `mpplan numerics` would tell of, in words; empty where it has, or others have."""
    names = [row["precision"] for row in rows if row["basis"] == "not_tested" and row["precision"] != UNTRAINED]
    return words.join([words.name("precision", name) for name in names])


def _lines(row: Doc, words: Words) -> list[str]:
    """One line of what was measured, one of what is published, with what a nat costs after the one it is of."""
    name, lines = words.name("precision", row["precision"]), []
    measured, published = row["measured"], row["published"]
    basis = (row["per_nat"] or {}).get("basis")
    if measured is not None:
        text = words(
            "parity.line", precision=name, difference=difference(measured, words), verdict=verdict(measured, words),
            baseline=words.name("precision", measured["baseline"]), tested=tested_on(measured, words),
        )  # fmt: skip
        lines.append(text + (per_nat_text(row["per_nat"], words) if basis == "measured" else ""))
    if published is not None:
        text = words("parity.published_line", precision=name, text=published_text(published, words))
        lines.append(text + (per_nat_text(row["per_nat"], words) if basis == "published" else ""))
    return lines


def parity_table(facts: Facts, words: Words) -> Table | None:
    """Every precision with what is known of it; None where the document says nothing of any."""
    rows = parity_rows(facts)
    if not rows:
        return None
    heads: tuple[str, ...] = ("precision", "parity", "verdict", "parity_of", "per_nat")
    none = Cell(text=words("none"), tone="quiet")
    body = []
    for row in rows:
        head = Cell(text=words.name("precision", row["precision"]))
        strong = row["precision"] == facts.asked
        if row["basis"] not in KNOWN:
            body.append(TableRow(cells=(head, Cell(text=words(UNKNOWN[row["basis"]]), tone="quiet")), strong=strong))
            continue
        measured, published, per_nat = row["measured"], row["published"], row["per_nat"]
        cost = Cell(text=per_nat_text(per_nat, words).strip()) if per_nat else none
        if measured is not None:
            body.append(TableRow(cells=(
                head, Cell(text=difference(measured, words)), Cell(text=verdict(measured, words)),
                Cell(text=tested_on(measured, words)), cost if per_nat and per_nat["basis"] == "measured" else none,
            ), strong=strong))  # fmt: skip
        if published is not None:
            model = words("list.comma").join([clean(published["model"]), clean(published["framework"])])
            if published["steps"] is not None:
                model += words("list.comma") + words.count("steps_of_training", int(published["steps"]))
            body.append(TableRow(cells=(
                head, Cell(text=words("parity.nats", text=signed(published["difference"], 0.01))),
                Cell(text=words("parity.against", baseline=words.name("precision", published["baseline"])),
                     href=_address(published["source"])),
                Cell(text=model), cost if per_nat and per_nat["basis"] == "published" else none,
            ), strong=strong))  # fmt: skip
    if not any(row["per_nat"] for row in rows):
        heads, body = (
            heads[:-1],
            [
                TableRow(cells=line.cells[:-1] if len(line.cells) > 2 else line.cells, strong=line.strong)
                for line in body
            ],
        )
    return Table(
        caption=words("table.parity"), columns=tuple(Column(head=words(f"column.{head}")) for head in heads),
        rows=tuple(body), sortable=False,
        notes=tuple(_rate(row, rate, words) for row in rows for rate in (row["published"] or {}).get("rates", ())),
    )  # fmt: skip


def _rate(row: Doc, rate: Doc, words: Words) -> str:
    """A published speed where no loss was compared."""
    gpus = "" if rate["gpus"] is None or rate["gpu"] is None else f"{rate['gpus']:,} × {pretty_gpu(rate['gpu'])}"
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

"""A comparison (`mpplan.compare/1`) as text for a terminal, in English or Chinese."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from planner.comparison.conventions import Count
from planner.comparison.findings import count_words
from planner.errors import Message
from planner.training.method import PRETRAIN
from planner.units import DAY_S, HOUR_S, MINUTE_S
from reports.text.language import Words, words_for
from reports.text.messages import sentences, word
from reports.text.width import columns_of, wrapped

Document = dict[str, Any]
Say = Callable[..., str]

WIDTH = 100
"""Width of lines where that of the terminal is unknown, in columns."""
LEAST, WIDEST = 40, 160
"""Least and greatest width of lines, in columns."""
LEAST_NAME = 12
"""Least width of the first column of a table, even where the others leave less room."""
LEAST_SHOWN_S = 5e-4
"""Minimum difference that is shown, in seconds."""
SHOWN_COUNTS = 6
"""Number of ways of counting FLOP that are shown without recomputation; `SHOWN_RECOMPUTING` are shown with it."""
SHOWN_RECOMPUTING = 2
LEAST_USD = 0.01
"""One cent; smaller amounts are described as less than a cent."""
UNITS = (("days", DAY_S), ("hours", HOUR_S), ("minutes", MINUTE_S), ("seconds", 1.0))
"""Units for waiting times, in seconds; the first unit that a time fills at least once is used."""


def to_text(document: Document, lang: str = "en", width: int = WIDTH) -> str:
    """Render a comparison as text that ends in a line break.

    Args:
        document: worded or not.
        lang: one of `reports.text.language.LANGUAGES`.
        width: of a line, in columns, brought between `LEAST` and `WIDEST`.
    """
    words, width = words_for(lang), min(max(width, LEAST), WIDEST)

    def say(key: str, **values: Any) -> str:
        if key.startswith("compare.part."):  # the planner's messages also use these names
            return word(Message.of(key), lang)
        return words(
            key, **{name: _figure(value) if isinstance(value, float) else value for name, value in values.items()}
        )

    parts = [
        "\n".join(_wrapped(line, width) for line in _head(document, say, lang)),
        "\n".join(_wrapped(text, width, "- ") for text in _texts(document, "findings", lang)),
        _utilisation(document, say, lang, width),
        _gap(document, say, width),
        _time(document, say, width),
        _forecast(document, say, lang, width),
        _listed(say("compare.head.cannot"), _texts(document, "cannot_tell", lang), width),
        "\n".join(_wrapped(say("compare.note", text=text), width, "", " ") for text in _texts(document, "notes", lang)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _texts(document: Document, name: str, lang: str) -> list[str]:
    """Return the sentences of a list of messages, worded or not."""
    texts = document[name]
    if texts and isinstance(texts[0], dict):
        return [word(text, lang) for text in texts]
    return [sentence.text for sentence in sentences(document, name, lang)]


def _wrapped(text: str, width: int, first: str = "", indent: str = "  ") -> str:
    lines = wrapped(text, width - columns_of(first or indent))
    return "\n".join(f"{indent if number else first}{line}" for number, line in enumerate(lines))


def _listed(head: str, texts: Sequence[str], width: int) -> str:
    return "\n".join([head, *(_wrapped(text, width, "  - ", "    ") for text in texts)]) if texts else ""


def _head(document: Document, say: Say, lang: str) -> list[str]:
    log, pace = document["log"], document["pace"]
    of = "" if document["last_step"] is None else say("compare.head.of", steps=f"{document['last_step']:,}")
    key = "compare.head.log" if log["framework"] else "compare.head.unknown"
    reached = f"{log['reached_step']:,}" if log["reached_step"] else "?"
    lines = [
        say(key, framework=log["framework"], understood=f"{log['understood']:,}", lines=f"{log['lines']:,}",
            reached=reached, of=of, starts=words_for(lang).count("starts", log["starts"]))
    ]  # fmt: skip
    if pace is not None:
        step, rate = pace["step_s"], document["tokens_per_s_per_gpu"]
        key = "compare.head.mean" if pace["lines"] == 1 else "compare.head.pace"
        line = say(key, step_s=step["mid"], low=step["low"], high=step["high"])
        lines.append(line + ("" if rate is None else say("compare.head.rate", rate=rate)))
    return lines


def _columns(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Align rows of cells: the first column left, the others right; double-width characters count twice.

    In a table that is wider than a line, headers take up to two lines, and the first column wraps.

    Args:
        rows: the headers, then the rows.
        width: of a line, in columns.
    """
    widths = [max(columns_of(row[column]) for row in rows) for column in range(len(rows[0]))]
    if sum(each + 2 for each in widths) > width:
        heads = [next(lines for each in range(1, WIDEST) if len(lines := wrapped(head, each)) <= 2) for head in rows[0]]
        least = [max(map(columns_of, lines)) for lines in heads]
        widths[1:] = [max(least[i], *(columns_of(row[i]) for row in rows[1:])) for i in range(1, len(widths))]
        widths[0] = min(widths[0], max(LEAST_NAME, width - 2 - sum(each + 2 for each in widths[1:])))
    lines = []
    for number, row in enumerate(rows):
        cells = [wrapped(cell, each) for cell, each in zip(row, widths, strict=True)]
        height = max(map(len, cells))
        for column, texts in enumerate(cells):
            blank = [""] * (height - len(texts))
            texts[:] = [*blank, *texts] if number == 0 else [*texts, *blank]  # headers end in the same line
            texts[:] = [_padded(text, widths[column], right=column > 0) for text in texts]
        lines += ["  " + "  ".join(parts).rstrip() for parts in zip(*cells, strict=True)]
    return lines


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - columns_of(text))
    return space + text if right else text + space


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1%}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _utilisation(document: Document, say: Say, lang: str, width: int) -> str:
    rows = [row for row in document["utilisation"] if row["tflops_per_gpu"] is not None]
    if not rows:
        return ""
    method = rows[0]["count"]["method"]
    own = [row for row in rows if row["count"]["method"] == method]
    usual = [row for row in own if not row["count"]["recompute"]]
    recomputing = [row for row in own if row["count"]["recompute"] and row["count"]["parameters"] == "matrices"]
    whole = [row for row in rows if method != PRETRAIN and row["count"]["method"] == PRETRAIN]
    shown = usual[:SHOWN_COUNTS] + recomputing[:SHOWN_RECOMPUTING] + whole[:1]
    head = tuple(say(f"compare.column.{name}") for name in ("counted", "tflops", "dense", "sparse"))
    cells = [
        (word(count_words(Count(**row["count"])), lang), _figure(row["tflops_per_gpu"]),
         _percent(row["mfu_dense_ratio"]), _percent(row["mfu_sparse_ratio"]))
        for row in shown
    ]  # fmt: skip
    return "\n".join([say("compare.head.mfu"), *_columns([head, *cells], width)])


def _gap(document: Document, say: Say, width: int) -> str:
    gap = document["gap"]
    if gap is None:
        return ""
    head = tuple(say(f"compare.column.{name}") for name in ("part", "log", "plan", "excess"))
    cells = [
        (say(f"compare.part.{row['part']}"), _figure(row["log_s"]), _figure(row["plan_s"]), _signed(row["excess_s"]))
        for row in gap["rows"]
    ]
    return "\n".join([say("compare.head.gap"), *_columns([head, *cells], width)])


def _signed(value: float) -> str:
    if abs(value) < LEAST_SHOWN_S:
        return "0"
    return f"{'+' if value > 0 else '−'}{_figure(abs(value))}"


def _time(document: Document, say: Say, width: int) -> str:
    use = document["time"]
    if not use["spent"]:
        return ""
    wall = use["wall_s"]
    total = max(wall or 0.0, sum(row["seconds"] for row in use["spent"]))  # the clock begins after the first line
    unit, per = _unit(total)
    unit_word = say(f"compare.unit.{unit}")
    wall_text = (
        say("compare.head.no_wall") if wall is None else say("compare.head.wall", time=wall / per, unit=unit_word)
    )
    head = (say("compare.column.part"), say("compare.column.count"), unit_word, say("compare.column.share"))
    cells = [
        (say(f"compare.part.{row['kind']}"), f"{row['count']:,}", _figure(row["seconds"] / per),
         _percent(row["seconds"] / total if total > 0 else None))
        for row in use["spent"]
    ]  # fmt: skip
    return "\n".join([say("compare.head.time", wall=wall_text), *_columns([head, *cells], width)])


def _unit(seconds: float) -> tuple[str, float]:
    """Return the unit in which a time is shown, and its length in seconds."""
    return next((unit for unit in UNITS if seconds >= unit[1]), UNITS[-1])


def _forecast(document: Document, say: Say, lang: str, width: int) -> str:
    ahead, head = document["forecast"], say("compare.head.forecast")
    if ahead is None:
        why = "no_time" if document["pace"] is None else "no_length"
        return f"{head}\n  {say('compare.ahead.none', why=say(f'compare.ahead.{why}'))}"
    words = words_for(lang)

    def ranged(range_: Document, show: Callable[[float], str]) -> str:
        low, mid, high = (show(range_[end]) for end in ("low", "mid", "high"))
        return mid if low == high else say("compare.ahead.range", mid=mid, low=low, high=high)

    def usd(value: float) -> str:
        return _usd(value, say)

    reason = "no_gpus" if ahead["gpu_hours"] is None else "no_price"
    if ahead["remaining_steps"] == 0:
        rows = [("", say("compare.ahead.done"))]
    else:
        rows = [("steps", f"{ahead['remaining_steps']:,}")]
        if ahead["remaining_tokens"] is not None:
            rows.append(("tokens", words.value("tokens", ahead["remaining_tokens"])))
        unit, per = _unit(ahead["days"]["mid"] * DAY_S)
        rows.append((unit, ranged(ahead["days"], lambda days: _figure(days * DAY_S / per))))
        if ahead["end_s"] is not None:
            rows.append(("end", ranged(ahead["end_s"], _moment)))
        if ahead.get("days_without_stops") is not None:
            calm = ahead["days_without_stops"] * DAY_S / per
            rows.append(("stops", say("compare.ahead.stops_planned", time=calm, unit=say(f"compare.unit.{unit}"))))
        cost = ahead["cost_usd"]
        rows.append(("cost", say(f"compare.ahead.{reason}") if cost is None else ranged(cost, usd)))
    rows.append(("spent", _spent(ahead, say, ranged, reason)))
    rows += _once(document, say, lang) + _energy(ahead, words)
    labels = [_label(name, say) for name, _ in rows]
    room = max(map(columns_of, labels))
    lines = [
        _wrapped(text, width, f"  {_padded(label, room, right=False)}  ", " " * (room + 4)) if label else f"  {text}"
        for label, (_, text) in zip(labels, rows, strict=True)
    ]
    return "\n".join([head, *lines])


def _label(name: str, say: Say) -> str:
    """Return the label of a row of the forecast; a time is labelled by its unit."""
    return "" if not name else say(f"compare.unit.{name}" if name in dict(UNITS) else f"compare.ahead.{name}")


def _spent(ahead: Document, say: Say, ranged: Callable[[Document, Callable[[float], str]], str], reason: str) -> str:
    """Describe the time and money spent until the end of the log."""
    if ahead["spent_days"] is None:
        return say("compare.ahead.no_spent")
    seconds = ahead["spent_days"] * DAY_S
    unit, per = _unit(seconds)
    so_far = say("compare.ahead.so_far", time=seconds / per, unit=say(f"compare.unit.{unit}"))
    spent = ahead["spent_usd"]
    return (
        f"{so_far}{say(f'compare.ahead.{reason}') if spent is None else ranged(spent, lambda value: _usd(value, say))}"
    )


def _once(document: Document, say: Say, lang: str) -> list[tuple[str, str]]:
    """Return the row of one-off costs; none if the whole bill grows with the hours."""
    costs = document.get("costs_once") or []
    if not costs:
        return []
    costs_text = say("list.semicolon").join(word(cost.get("words_message") or cost["words"], lang) for cost in costs)
    usd = _usd(sum(cost["usd"] for cost in costs), say)
    return [("once", say("compare.ahead.once_costs", usd=usd, costs=costs_text))]


def _energy(ahead: Document, words: Words) -> list[tuple[str, str]]:
    """Return the row of the energy, at the plan's power; none where no plan knows it."""
    rest = ahead.get("energy_mwh") if ahead["remaining_steps"] else None
    parts = {"energy_rest": rest, "energy_spent": ahead.get("spent_energy_mwh")}
    known = {name: range_ for name, range_ in parts.items() if range_ is not None}
    if not known:
        return []
    rung = words.shared("energy", list(known.values()))

    def text(range_: Document) -> str:
        low, mid, high = (_figure(range_[end] / rung.per) for end in ("low", "mid", "high"))
        return words("compare.ahead.range", mid=rung.text.format(mid), low=low, high=high)

    texts = [words(f"compare.ahead.{name}", energy=text(range_)) for name, range_ in known.items()]
    return [("energy", words("compare.ahead.energy_at", energy=words("list.semicolon").join(texts)))]


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return "–"


def _usd(value: float, say: Say) -> str:
    if 0 < value < LEAST_USD:
        return say("compare.usd_below", amount=f"{LEAST_USD}")
    return say("compare.usd", amount=f"{value:,.2f}" if value < 100 else f"{value:,.0f}")

"""Predictions against what really happened: published runs, and this machine's own verification."""

from __future__ import annotations

from reports.charts import Mark, ScatterDrawing, log_axis, log_ticks, on_log
from reports.document.facts import Doc, Facts
from reports.text.language import Words
from reports.text.names import pretty_gpu
from reports.text.numbers import rung_for
from reports.view import Block, Cell, Column, ScatterChart, Section, Table, TableRow
from reports.view.cells import count_cell

MOST_ROWS = 24


def accuracy(facts: Facts, words: Words) -> Section | None:
    """The points of `accuracy`, with the leading GPU's marked; absent if the document has none."""
    carried = facts.doc.get("accuracy") or {}
    points = [p for p in carried.get("points", ()) if (p.get("published") or 0) > 0 and (p.get("mid") or 0) > 0]
    if not points:
        return None
    blocks: list[Block] = [_chart(facts, points, words)]
    summary = carried.get("summary")
    if summary:
        blocks.append(_summary(summary, words))
    own = [p for p in points if p.get("gpu") == facts.gpu]
    blocks.append(_table(own or points, words, own=bool(own)))
    overall = (summary or {}).get("overall") or {}
    error, inside = overall.get("median_abs_error"), overall.get("coverage")
    lead = words.spans(
        "accuracy.lead" if error is not None and inside is not None else "accuracy.lead_plain",
        n=f"{len(points):,}",
        own=f"{len(own):,}",
        gpu=pretty_gpu(facts.gpu),
        error=words.value("percent", error) if error is not None else "",
        inside=words.value("percent", inside) if inside is not None else "",
    )
    return Section(id="accuracy", title=words("accuracy.title"), lead=lead, blocks=tuple(blocks))


def _chart(facts: Facts, points: list[Doc], words: Words) -> ScatterChart:
    """One logarithmic square; only the metric that most points have, since one axis holds one unit."""
    names = [str(p["metric"]) for p in points]
    metric = max(sorted(set(names)), key=names.count)
    drawn = [p for p in points if p["metric"] == metric]
    sizes = [v for p in drawn for v in (p["published"], p["low"], p["mid"], p["high"]) if v and v > 0]
    ticks = log_ticks(min(sizes), max(sizes))
    ladder = words.ladder("plain")
    labels = [words.number(v, v, v, rung_for(ladder, v)).text for v in ticks]
    marks = []
    for p in sorted(drawn, key=lambda p: p.get("gpu") == facts.gpu):
        own = p.get("gpu") == facts.gpu
        x, y = on_log(p["published"], ticks), on_log(p["mid"], ticks)
        y_low = on_log(p["low"], ticks) if p.get("low") else y
        y_high = on_log(p["high"], ticks) if p.get("high") else y
        label = words(
            "accuracy.point", name=p["id"], published=_plain(p["published"], words), mid=_plain(p["mid"], words)
        )
        marks.append(Mark(x=x, y=y, x_low=x, x_high=x, y_low=y_low, y_high=y_high, strong=own, label=label,
                          shape="dot" if own else "ring"))  # fmt: skip
    title = words("chart.accuracy", metric=words.name("metric", metric))
    return ScatterChart(
        title=title,
        description=words("chart.accuracy_described", title=title, n=f"{len(drawn):,}"),
        drawing=ScatterDrawing(
            marks=tuple(marks),
            x_ticks=log_axis(ticks, labels),
            y_ticks=log_axis(ticks, labels),
            line=((0, 0), (100, 100)),
        ),
        x_label=words("accuracy.published"),
        y_label=words("accuracy.predicted"),
        legend=(("dot", words("accuracy.own", gpu=pretty_gpu(facts.gpu))), ("ring", words("accuracy.other"))),
    )


def _plain(value: float, words: Words) -> str:
    return words.value("plain", value)


def _summary(summary: Doc, words: Words) -> Table:
    groups = [("overall", summary.get("overall"))]
    for part in ("by_precision", "by_gpu", "by_group"):
        groups += sorted((summary.get(part) or {}).items())
    rows = []
    for name, group in groups:
        if not group or not group.get("n"):
            continue
        label = words("accuracy.overall") if name == "overall" else words.name("precision", name)
        ratios = [group.get(key) for key in ("median_abs_error", "p90_abs_error", "bias", "coverage")]
        cells = [
            Cell(text=words.value("percent", ratio), sort=ratio) if ratio is not None else Cell(text=words("none"))
            for ratio in ratios
        ]
        rows.append(
            TableRow(
                cells=(Cell(text=label), count_cell(group["n"]), *cells),
                strong=name == "overall",
            )
        )
    heads = ("runs", "median_error", "p90_error", "bias", "coverage")
    return Table(
        caption=words("table.accuracy_summary"),
        columns=(Column(head=words("column.group")), *(Column(head=words(f"column.{h}"), numeric=True) for h in heads)),
        rows=tuple(rows),
    )


def _table(points: list[Doc], words: Words, *, own: bool) -> Table:
    rows = tuple(
        TableRow(
            cells=(
                Cell(text=str(p["id"]), tone="code"),
                Cell(text=words.name("precision", str(p.get("precision") or ""))),
                Cell(text=words.name("metric", str(p["metric"]))),
                Cell(text=_plain(p["published"], words), sort=p["published"]),
                Cell(
                    text=_plain(p["mid"], words),
                    detail=words("range.joint", low=_plain(p["low"], words), high=_plain(p["high"], words))
                    if p.get("low") and p.get("high")
                    else "",
                    sort=p["mid"],
                ),
                Cell(text=words.value("percent", p["mid"] / p["published"] - 1), sort=p["mid"] / p["published"] - 1),
            )
        )
        for p in points[:MOST_ROWS]
    )
    heads = ("run", "precision", "metric", "published", "predicted", "error")
    return Table(
        caption=words("table.accuracy_own" if own else "table.accuracy"),
        columns=tuple(Column(head=words(f"column.{h}"), numeric=n > 2) for n, h in enumerate(heads)),
        rows=rows,
        notes=(words("note.rows", shown=len(rows), all=len(points)),) if len(points) > len(rows) else (),
    )


def verify(facts: Facts, words: Words) -> Section | None:
    """Predicted against measured on this machine, if the document has `verify`."""
    carried = facts.doc.get("verify") or {}
    cases = [c for c in carried.get("cases", ()) if c.get("measured") and c.get("predicted") is not None]
    if not cases:
        return None
    quantity = {"time": "seconds", "memory": "gib", "energy": "joules"}
    rows = tuple(
        TableRow(
            cells=(
                Cell(text=str(c["name"])),
                Cell(text=words.name("precision", str(c["precision"]))),
                Cell(text=words.name("verify", str(c["metric"]))),
                Cell(text=words.value(quantity.get(c["metric"], "plain"), c["predicted"]), sort=c["predicted"]),
                Cell(text=words.value(quantity.get(c["metric"], "plain"), c["measured"]), sort=c["measured"]),
                Cell(text=words.value("percent", c["error_ratio"]), sort=c["error_ratio"]),
            )
        )
        for c in cases
    )
    heads = ("run", "precision", "metric", "predicted", "measured", "error")
    table = Table(
        caption=words("table.verify"),
        columns=tuple(Column(head=words(f"column.{h}"), numeric=n > 2) for n, h in enumerate(heads)),
        rows=rows,
    )
    lead = words.spans("verify.lead", n=f"{len(cases):,}")
    return Section(id="verify", title=words("verify.title"), lead=lead, blocks=(table,))

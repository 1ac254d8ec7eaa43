"""What training in lower precisions showed, as charts: from `numerics` of the document."""

from __future__ import annotations

from itertools import pairwise

from reports.charts import Mark, ScatterDrawing, TraceDrawing, TraceLine, linear_ticks, percent, polyline, ticks_on
from reports.document.facts import Doc
from reports.plots import (
    HistogramDrawing,
    HistogramPanel,
    IntervalDrawing,
    IntervalRow,
    Span,
    axis_of,
    bars_path,
    even_ticks,
    span_on,
)
from reports.sections.comparison.precisions import axis_labels
from reports.sections.safety.known import signed
from reports.text.clean import clean
from reports.text.language import Words
from reports.view import (
    Block,
    Cell,
    Column,
    HistogramChart,
    IntervalChart,
    Prose,
    ScatterChart,
    Table,
    TableRow,
    TraceChart,
)

OF_ALL = 1e-6
"""Share of the values of a tensor below which an exponent is not drawn."""
SHOWN_FORMATS = ("fp16", "e5m2", "e4m3", "e2m1")
"""BF16 holds every exponent that FP32 does, so that its range says nothing."""


def histograms(shown: Doc, words: Words) -> HistogramChart | None:
    """Exponents of weights, activations and gradients, above the ranges of the narrow formats."""
    rows = [row for row in shown["magnitudes"] if sum(row["counts"])]
    if not rows:
        return None
    kept = [_kept(row) for row in rows]
    low = min(first for first, _ in kept) - 1
    high = max(first + len(counts) for first, counts in kept) + 1
    formats = [form for form in rows[-1]["formats"] if form["format"] in SHOWN_FORMATS]
    values = even_ticks(low, high)
    title, tensor = words("chart.exponents"), words.name("tensor", rows[-1]["tensor"])
    return HistogramChart(
        title=title,
        description=_in_words(
            [(tensor, words("exponents.flushed", format=form["label"], share=_share(form, words))) for form in formats],
            words,
        ),
        drawing=HistogramDrawing(
            panels=tuple(
                HistogramPanel(label=words.name("tensor", row["tensor"]), path=bars_path(counts, first - low))
                for row, (first, counts) in zip(rows, kept, strict=True)
            ),
            exponents=high - low,
            spans=tuple(_span(form, low, high, words) for form in formats),
            ticks=axis_of(values, [f"{value:g}".replace("-", "−") for value in values], low, high),
        ),
        x_label=words("axis.exponent"),
    )


def _in_words(rows: list[tuple[str, str]], words: Words) -> str:
    """A chart for readers who cannot see it, who hear its title before."""
    return words("list.semicolon").join(words("chart.row", label=label, text=text) for label, text in rows)


def _span(form: Doc, low: float, high: float, words: Words) -> Span:
    """A format's range, with the share of the gradients that it loses."""
    label = words("exponents.span", format=clean(form["label"]), share=_share(form, words))
    return span_on(label, form["least_log2"], form["most_log2"], low, high)


def _share(form: Doc, words: Words) -> str:
    ratio = form["flushed_ratio"]
    return words.value("percent", ratio) if ratio >= 1e-4 or not ratio else words("less_than").format("0.01%")


def _kept(row: Doc) -> tuple[int, list[int]]:
    """The first exponent that is drawn, and the counts from there to the last."""
    counts, least = row["counts"], OF_ALL * sum(row["counts"])
    there = [place for place, count in enumerate(counts) if count >= least and count]
    return row["least_exponent"] + there[0], counts[there[0] : there[-1] + 1]


def scale(shown: Doc, words: Words) -> TraceChart | None:
    """The path of the dynamic loss scale."""
    path = shown["scale_path"]
    if path is None or not path["path"]:
        return None
    points = [(float(step), float(log2)) for step, log2 in path["path"]]
    steps = [points[0]]
    for before, after in pairwise(points):
        steps += [(after[0], before[1]), after]
    steps.append((float(max(path["steps"], points[-1][0] + 1)), points[-1][1]))
    x, y = linear_ticks(steps[-1][0]), linear_ticks(max(log2 for _, log2 in steps), 4)
    title = words("chart.scale", precision=words.name("precision", str(shown["scale_precision"])))
    told = words("scale.told", skipped=words.count("steps_of_training", path["skipped"]), steps=f"{path['steps']:,}",
                 interval=f"{path['growth_interval']:,}")  # fmt: skip
    return TraceChart(
        title=title,
        description=told,
        drawing=TraceDrawing(
            traces=(TraceLine(name=told, colour=0, points=polyline(steps, x[-1], y[-1], 3)),),
            x_ticks=ticks_on(x, [f"{value:,.0f}" for value in x]),
            y_ticks=ticks_on(y, [f"2^{value:g}" for value in y]),
        ),
        x_label=words("axis.step"),
        y_label=words("axis.scale"),
    )


def intervals(shown: Doc, words: Words) -> IntervalChart | None:
    """Each precision's difference with its interval, over what counts as equal."""
    pairs = shown["pairs"]
    if not pairs:
        return None
    margin = max(pair["margin"] for pair in pairs)
    reach = 1.1 * max(margin, *(abs(pair[end]) for pair in pairs for end in ("low", "high")))
    rows = []
    for pair in pairs:
        key = "parity.name_emulated" if pair["emulated"] else "parity.name"
        size = max(abs(pair["low"]), abs(pair["high"]))
        text = words("range.from_to", low=signed(pair["low"], size), high=signed(pair["high"], size))
        rows.append(IntervalRow(
            label=words(key, name=words.name("precision", pair["precision"])), text=text, low=_at(pair["low"], reach),
            high=_at(pair["high"], reach), dot=_at(pair["mid"], reach),
        ))  # fmt: skip
    values = even_ticks(-reach, reach, 4)
    baseline = words.name("precision", pairs[0]["baseline"])
    title = words("chart.parity", baseline=baseline, margin=f"{margin:g}")
    return IntervalChart(
        title=title,
        description=_in_words([(row.label, row.text) for row in rows], words),
        drawing=IntervalDrawing(
            rows=tuple(rows), zero=50.0, band=(_at(-margin, reach), _at(margin, reach)),
            ticks=axis_of(values, [signed(value, values[-1]) for value in values], -reach, reach),
        ),
        x_label=words("axis.nats" if pairs[0]["metric"] == "loss" else "axis.accuracy"),
    )  # fmt: skip


def _at(value: float, reach: float) -> float:
    return percent(50.0 * (1.0 + value / reach))


def layers(shown: Doc, words: Words) -> IntervalChart | None:
    """How far each layer alone, lowered, turns the first gradient."""
    rows = [row for row in shown["layers"] if row["gradient_error_ratio"] is not None]
    if not rows:
        return None
    axis = linear_ticks(max(row["gradient_error_ratio"] for row in rows), 4)
    name = words.name("precision", str(shown["lowered_to"]))
    title = words(
        "chart.layers", precision=words("parity.name_emulated", name=name) if shown["lowered_emulated"] else name
    )
    placed = tuple(_layer(row, axis[-1], words) for row in rows)
    return IntervalChart(
        title=title,
        description=_in_words([(row.label, row.text) for row in placed], words),
        drawing=IntervalDrawing(rows=placed, zero=0.0, ticks=ticks_on(axis, [f"{value:.0%}" for value in axis])),
        x_label=words("axis.gradient_error"),
    )


def _layer(row: Doc, top: float, words: Words) -> IntervalRow:
    error = row["gradient_error_ratio"]
    more = words("layers.more", count=row["layers"] - 1) if row["layers"] > 1 else ""
    return IntervalRow(
        label=clean(row["name"]) + more,
        text=words(
            "layers.kept" if row["kept_high"] else "layers.text",
            change=_change(row["loss_change"]),
            error=words.value("percent", error),
        ),
        low=0.0,
        high=percent(100.0 * error / top),
        strong=row["kept_high"],
    )


def _change(value: float | None) -> str:
    return "–" if value is None else signed(value)


def front(shown: Doc, words: Words) -> list[Block]:
    """Policies and schedules: loss against the time of the plan, and the same as a table."""
    points = [point for point in shown["mixtures"] if point["duration_days"] is not None]
    if len(points) < 2:
        return [_no_plan(shown["mixtures"][0], words)] if shown["mixtures"] else []
    title = words("chart.mixtures")
    days = linear_ticks(max(point["duration_days"] for point in points))
    rung = words.shared("days", [point["duration_days"] for point in points])
    changes = [point["loss_change"] for point in points]
    room = 0.08 * ((max(changes) - min(changes)) or 0.01)
    low, high = min(0.0, *changes) - room, max(0.0, *changes) + room
    values = even_ticks(low, high)

    def place(point: Doc) -> tuple[float, float]:
        return percent(100 * point["duration_days"] / days[-1]), percent(
            100 * (point["loss_change"] - low) / (high - low)
        )

    marks = []
    for point in points:
        x, y = place(point)
        marks.append(Mark(
            x=x, y=y, x_low=x, x_high=x, y_low=y, y_high=y, shape="dot" if point["on_front"] else "ring",
            strong=point["recommended"], label=words("chart.row", label=_name(point, words), text=_told(point, words)),
        ))  # fmt: skip
    line = sorted((place(point) for point in points if point["on_front"]), key=lambda at: at[0])
    chart = ScatterChart(
        title=title,
        description=_in_words([(_name(point, words), _told(point, words)) for point in points], words),
        drawing=ScatterDrawing(
            marks=tuple(marks), line=tuple(line), x_ticks=ticks_on(days, axis_labels(days, rung, unit=False)),
            y_ticks=axis_of(values, [signed(value, values[1] - values[0]) for value in values], low, high),
        ),
        x_label=words.head(words.name("metric", "duration_days"), rung), y_label=words("axis.nats"),
        legend=(("dot", words("pareto.on")), ("ring", words("pareto.off"))),
    )  # fmt: skip
    return [chart, _table(points, words)]


def _no_plan(point: Doc, words: Words) -> Prose:
    low, high = (words.name("precision", point[name]) for name in ("precision", "high"))
    return Prose(spans=words.spans("mixture.no_plan", low=low, high=high), tone="note")


def _name(point: Doc, words: Words) -> str:
    return words(
        f"mixture.{point['name']}", low=words.name("precision", point["precision"]),
        high=words.name("precision", point["high"]), share=words.value("percent", point["low_share_ratio"]),
        rest=words.value("percent", 1.0 - point["low_share_ratio"]),
    )  # fmt: skip


def _told(point: Doc, words: Words) -> str:
    change = words("parity.nats", text=signed(point["loss_change"]))
    return words("mixture.told", days=words.value("days", point["duration_days"]), change=change)


def _table(points: list[Doc], words: Words) -> Table:
    rows = tuple(
        TableRow(
            cells=(
                Cell(text=_name(point, words)),
                Cell(text=words.value("days", point["duration_days"]), sort=point["duration_days"]),
                Cell(text=words("parity.nats", text=signed(point["loss_change"])), sort=point["loss_change"]),
                Cell(text=words.count("steps_of_training", point["steps"]), sort=float(point["steps"])),
                Cell(text=words("pareto.on" if point["on_front"] else "pareto.off")),
            ),
            strong=point["recommended"],
        )
        for point in points
    )
    heads = (("mixture", False), ("duration", True), ("loss_change", True), ("steps", True), ("front", False))
    return Table(
        caption=words("table.mixtures"),
        columns=tuple(Column(head=words(f"column.{head}"), numeric=numeric) for head, numeric in heads),
        rows=rows, notes=(words("mixture.note"),), folded=True,
    )  # fmt: skip

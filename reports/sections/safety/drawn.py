"""The results of training in lower precisions as charts, from `numerics` in the document."""

from __future__ import annotations

from itertools import pairwise
from math import floor

from reports.charts import TraceDrawing, TraceLine, linear_ticks, percent, polyline, ticks_on
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
from reports.sections.safety.known import signed, signed_ends
from reports.text.clean import clean
from reports.text.described import rows_told
from reports.text.language import Words
from reports.text.numbers import power_of_two
from reports.view import HistogramChart, IntervalChart, TraceChart

OF_ALL = 1e-6
"""Share of a tensor's values below which an exponent is not drawn."""
FEWEST_STEPS = 5.0
"""Minimum number of steps on the axis of a scale, which needs whole numbers."""
SHOWN_FORMATS = ("fp16", "e5m2", "e4m3", "e2m1")
"""BF16 is left out: it holds every exponent of FP32, so its range is uninformative."""
IN_BLOCKS = "e2m1"
"""The format that recipes scale in small blocks, so that one scale per layer does not help it."""


def histograms(shown: Doc, words: Words) -> HistogramChart | None:
    """Draw exponents of weights, activations and gradients above the ranges of the narrow formats."""
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
        description=rows_told(
            [
                (
                    tensor,
                    words("list.comma").join(part for part in (_flushed(form, words), _scaled(form, words)) if part),
                )
                for form in formats
            ],
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


def _span(form: Doc, low: float, high: float, words: Words) -> Span:
    """Return a format's range, labelled with the share of gradients that it flushes to zero."""
    label = words("exponents.span", format=clean(form["label"]), share=_share(form["flushed_ratio"], words))
    return span_on(label, form["least_log2"], form["most_log2"], low, high, _scaled(form, words))


def _flushed(form: Doc, words: Words) -> str:
    return words("exponents.flushed", format=form["label"], share=_share(form["flushed_ratio"], words))


def _scaled(form: Doc, words: Words) -> str:
    """Describe the share still flushed to zero with the scaling that recipes use; empty if unknown."""
    ratio = form.get("flushed_scaled_ratio")
    if ratio is None:
        return ""
    text = words("exponents.scaled", share=_share(ratio, words))
    return words("exponents.blocks", text=text) if form["format"] == IN_BLOCKS else text


def _share(ratio: float, words: Words) -> str:
    return words.value("percent", ratio) if ratio >= 1e-4 or not ratio else words("less_than").format("0.01%")


def _kept(row: Doc) -> tuple[int, list[int]]:
    """Return the first exponent to draw, and the counts from there to the last."""
    counts, least = row["counts"], OF_ALL * sum(row["counts"])
    kept = [place for place, count in enumerate(counts) if count >= least and count]
    return row["least_exponent"] + kept[0], counts[kept[0] : kept[-1] + 1]


def scale(shown: Doc, words: Words) -> TraceChart | None:
    """Draw the path of the dynamic loss scale: the default path, and the stress test beside it."""
    paths = [shown[name] for name in ("scale_path", "scale_stress") if shown.get(name) and shown[name]["path"]]
    if not paths:
        return None
    bottom = _bottom(paths)
    lines = [[(step, log2 - bottom) for step, log2 in _stairs(path)] for path in paths]
    names = [_path_told(path, words) for path in paths]
    x = linear_ticks(max(FEWEST_STEPS, *(line[-1][0] for line in lines)))
    y = linear_ticks(max(log2 for line in lines for _, log2 in line), 4)
    return TraceChart(
        title=words("chart.scale", precision=words.name("precision", str(shown["scale_precision"]))),
        description=words("list.semicolon").join(names),
        drawing=TraceDrawing(
            traces=tuple(
                TraceLine(name=name, colour=number, points=polyline(line, x[-1], y[-1], 3))
                for number, (name, line) in enumerate(zip(names, lines, strict=True))
            ),
            x_ticks=ticks_on(x, [f"{value:,.0f}" for value in x]),
            y_ticks=ticks_on(y, [power_of_two(value + bottom) for value in y]),
        ),
        x_label=words("axis.step"),
        y_label=words("axis.scale"),
    )


def _bottom(paths: list[Doc]) -> float:
    """Return the bottom of the scale's axis: 2⁰, or a lower multiple of ten if a scale fell further."""
    return 10.0 * floor(min(0.0, *(float(log2) for path in paths for _, log2 in path["path"])) / 10.0)


def _stairs(path: Doc) -> list[tuple[float, float]]:
    """Return points of step and scale as a step function; the last scale holds until the end."""
    points = [(float(step), float(log2)) for step, log2 in path["path"]]
    line = [points[0]]
    for before, after in pairwise(points):
        line += [(after[0], before[1]), after]
    return [*line, (float(max(path["steps"], points[-1][0] + 1)), points[-1][1])]


def _path_told(path: Doc, words: Words) -> str:
    told = words(
        "scale.told", skipped=f"{path['skipped']:,}", steps=words.count("steps_of_training", path["steps"]),
        start=power_of_two(path["path"][0][1]), interval=words.count("steps_of_training", path["growth_interval"]),
    )  # fmt: skip
    return words("scale.usual" if path["name"] == "usual" else "scale.short", told=told)


def _axis(task: str, metric: str) -> str:
    """Return the axis of a difference; the loss of a user's own task may be in any unit."""
    loss = "axis.loss" if task == "own" else "axis.nats"
    return loss if metric == "loss" else "axis.accuracy"


def intervals(shown: Doc, words: Words) -> IntervalChart | None:
    """Draw the difference of each precision on the first task with its interval, over the equivalence margin."""
    pairs = [pair for pair in shown["pairs"] if pair["task"] == shown["task"] and pair["low"] is not None]
    if not pairs:
        return None
    margin = max(pair["margin"] for pair in pairs)
    reach = 1.1 * max(margin, *(abs(pair[end]) for pair in pairs for end in ("low", "high")))
    rows = []
    for pair in pairs:
        key = "parity.name_emulated" if pair["emulated"] else "parity.name"
        low, _, high = signed_ends(pair)
        text = words("range.from_to", low=low, high=high)
        rows.append(IntervalRow(
            label=words(key, name=words.name("precision", pair["precision"])), text=text, low=_at(pair["low"], reach),
            high=_at(pair["high"], reach), dot=_at(pair["mid"], reach),
        ))  # fmt: skip
    values = even_ticks(-reach, reach, 4)
    baseline = words.name("precision", pairs[0]["baseline"])
    title = words("chart.parity", baseline=baseline, margin=f"{margin:g}")
    return IntervalChart(
        title=title,
        description=rows_told([(row.label, row.text) for row in rows], words),
        drawing=IntervalDrawing(
            rows=tuple(rows), zero=50.0, band=(_at(-margin, reach), _at(margin, reach)),
            ticks=axis_of(values, [signed(value, values[-1]) for value in values], -reach, reach),
        ),
        x_label=words(_axis(str(shown["task"]), str(pairs[0]["metric"]))),
    )  # fmt: skip


def _at(value: float, reach: float) -> float:
    return percent(50.0 * (1.0 + value / reach))


def layers(shown: Doc, words: Words) -> IntervalChart | None:
    """Draw how far each layer turns the first gradient when only that layer is lowered, in the document's order."""
    rows = shown["layers"]
    errors = [row["gradient_error_ratio"] for row in rows if row["gradient_error_ratio"] is not None]
    if not errors:
        return None
    axis = linear_ticks(max(errors), 4)
    name = words.name("precision", str(shown["lowered_to"]))
    title = words(
        "chart.layers", precision=words("parity.name_emulated", name=name) if shown["lowered_emulated"] else name
    )
    placed = tuple(_layer(row, axis[-1], words) for row in rows)
    return IntervalChart(
        title=title,
        description=rows_told([(row.label, row.text) for row in placed], words),
        drawing=IntervalDrawing(rows=placed, zero=0.0, ticks=ticks_on(axis, [f"{value:.0%}" for value in axis])),
        x_label=words("axis.gradient_error"),
    )


def _layer(row: Doc, top: float, words: Words) -> IntervalRow:
    error, change, name = row["gradient_error_ratio"], row["loss_change"], clean(row["name"])
    label = words("layers.number", name=name) if name.isdigit() else name
    texts = [words("layers.not_finite") if error is None else words.value("percent", error)]
    if change is not None:
        texts.append(words("layers.loss", change=signed(change)))
    if row["kept_high"]:
        texts.append(words("layers.kept"))
    return IntervalRow(
        label=label + (words("layers.more", count=row["layers"] - 1) if row["layers"] > 1 else ""),
        text=words("list.semicolon").join(texts),
        low=0.0,
        high=100.0 if error is None else percent(100.0 * error / top),
        strong=row["kept_high"],
    )

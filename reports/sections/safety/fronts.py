"""Policies and schedules: loss against the plan's duration, with a front for those that were trained alike."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from math import hypot

from reports.charts import Mark, ScatterDrawing, linear_ticks, percent, ticks_on
from reports.document.facts import Doc
from reports.plots import axis_of, even_ticks
from reports.sections.safety.known import ended_in_nan, signed, signed_ends
from reports.text.described import rows_told
from reports.text.language import Words
from reports.text.numbers import axis_labels
from reports.view import Block, Cell, Column, Prose, ScatterChart, Table, TableRow
from reports.view.cells import figure_cell

KINDS = ("policy", "schedule")
"""Kinds of points; points of one kind share their start and their number of steps, and therefore a front."""
LEAST_DRAWN = 4
"""Minimum number of points for a chart; with fewer (two of them single plans), a table says more."""
PLANS = ("all_high", "all_low")
"""Points that are a single plan and not a mixture."""


def fronts(shown: Doc, words: Words, planned: Collection[str] = ()) -> list[Block]:
    """Return a table each for policies and schedules, under a chart if there are many points; hints without a plan.

    Args:
        shown: a task of the document.
        words: of the language.
        planned: precisions for which the plan has a row that fits.
    """
    blocks: list[Block] = []
    for kind in KINDS:
        points = [point for point in shown["mixtures"] if point["kind"] == kind]
        timed = [point for point in points if point["duration_days"] is not None]
        drawn = [point for point in timed if point["loss_change"] is not None]
        if len(drawn) >= LEAST_DRAWN:
            blocks.append(_chart(kind, drawn, words))
        if timed:
            blocks.append(_table(kind, timed, words, folded=len(drawn) >= LEAST_DRAWN))
    if blocks:
        blocks.append(Prose(spans=words.spans("mixture.note"), tone="note"))
    elif shown["mixtures"]:
        blocks.append(_no_plan(shown["mixtures"][0], words, planned))
    return blocks


def _no_plan(point: Doc, words: Words, planned: Collection[str]) -> Prose:
    needed = [point[name] for name in ("precision", "high")]
    lacking = [name for name in needed if name not in planned]
    low, names = words.name("precision", needed[0]), words.join([words.name("precision", name) for name in lacking])
    return Prose(spans=words.spans("mixture.no_plan", low=low, lacking=names, flag=lacking[0]), tone="note")


def told_apart(points: list[Doc]) -> bool | None:
    """Return whether any two losses differ by more than their joint error; None if no error is known."""
    known = [(point["loss_change"], _half(point["loss_range"])) for point in points if point["loss_range"] is not None]
    if not any(half for _, half in known):
        return None
    return any(abs(a - b) > hypot(x, y) for (a, x), (b, y) in combinations(known, 2))


def _half(interval: Doc) -> float:
    return float(max(interval["high"] - interval["mid"], interval["mid"] - interval["low"]))


def _trained(kind: str, points: list[Doc], words: Words) -> str:
    """Describe the start, the number of steps and the number of runs."""
    steps = words.count("steps_of_training", points[0]["steps"])
    seeds = max(point["seeds"] or 1 for point in points)
    return words(f"mixture.trained_{kind}", steps=steps, runs=words.count("runs_each", seeds))


def _loss_ends(point: Doc) -> tuple[float, float]:
    known = point["loss_range"]
    return (point["loss_change"],) * 2 if known is None else (known["low"], known["high"])


def _chart(kind: str, points: list[Doc], words: Words) -> ScatterChart:
    days = linear_ticks(max(point["duration_days"]["high"] for point in points))
    rung = words.shared("days", [point["duration_days"] for point in points])
    changes = [end for point in points for end in _loss_ends(point)]
    room = 0.08 * ((max(changes) - min(changes)) or 0.01)
    low, high = min(0.0, *changes) - room, max(0.0, *changes) + room
    values = even_ticks(low, high)

    def across(value: float) -> float:
        return percent(100 * value / days[-1])

    def up(value: float) -> float:
        return percent(100 * (value - low) / (high - low))

    marks = []
    for point in points:
        time, (y_low, y_high) = point["duration_days"], _loss_ends(point)
        ends = (time["low"], time["high"]) if point["name"] in PLANS else (time["mid"],) * 2
        marks.append(Mark(
            x=across(time["mid"]), y=up(point["loss_change"]), x_low=across(ends[0]), x_high=across(ends[1]),
            y_low=up(y_low), y_high=up(y_high), shape="dot" if point["on_front"] else "ring",
            strong=point["recommended"], ranged=True,
            label=words("chart.row", label=_name(point, words), text=_told(point, words)),
        ))  # fmt: skip
    return ScatterChart(
        title=words("chart.mixtures", caption=words(f"table.mixtures_{kind}"), how=_trained(kind, points, words)),
        description=rows_told([(_name(point, words), _told(point, words)) for point in points], words),
        drawing=ScatterDrawing(
            marks=tuple(marks), x_ticks=ticks_on(days, axis_labels(days, rung, unit=False)),
            line=tuple(sorted((mark.x, mark.y) for mark in marks if mark.shape == "dot")) if told_apart(points) else (),
            y_ticks=axis_of(values, [signed(value, values[1] - values[0]) for value in values], low, high),
        ),
        x_label=words.head(words.name("metric", "duration_days"), rung), y_label=words("axis.nats"),
        legend=(("dot", words("pareto.on")), ("ring", words("pareto.off"))),
    )  # fmt: skip


def _name(point: Doc, words: Words) -> str:
    return words(
        f"mixture.{point['name']}", low=words.name("precision", point["precision"]),
        high=words.name("precision", point["high"]), share=words.value("percent", point["low_share_ratio"]),
        rest=words.value("percent", 1.0 - point["low_share_ratio"]),
    )  # fmt: skip


def _change(point: Doc, words: Words) -> str:
    """Describe the change of the loss with its interval, or how many runs ended in NaN."""
    change, known = point["loss_change"], point["loss_range"]
    if change is None:
        runs = point["seeds"] or max(point["diverged"], 1)
        return ended_in_nan(max(point["diverged"], 1), runs, words)
    if known is None:
        return words("mixture.no_interval", change=words("parity.nats", text=signed(change)))
    if known["low"] == known["high"]:
        return words("parity.nats", text=signed(change))
    low, mid, high = signed_ends(known)
    return words("parity.nats", text=words("parity.interval", low=low, mid=mid, high=high))


def _change_cell(point: Doc, words: Words) -> Cell:
    """Return the change of the loss for a column, with the interval on a separate line."""
    known = point["loss_range"]
    if known is None or known["low"] == known["high"]:
        return Cell(text=_change(point, words), sort=point["loss_change"])
    low, mid, high = signed_ends(known)
    return Cell(
        text=words("parity.nats", text=mid),
        detail=words("range.from_to", low=low, high=high),
        sort=point["loss_change"],
    )


def _told(point: Doc, words: Words) -> str:
    days = words.figure("days", point["duration_days"])
    assert days is not None
    return words("mixture.told", days=days.full, change=_change(point, words))


def _table(kind: str, points: list[Doc], words: Words, *, folded: bool) -> Table:
    rung = words.shared("days", [point["duration_days"] for point in points])
    rows = tuple(
        TableRow(
            cells=(
                Cell(text=_name(point, words)),
                figure_cell(words.figure("days", point["duration_days"], rung), words),
                _change_cell(point, words),
                Cell(text=words("pareto.on" if point["on_front"] else "pareto.off")),
            ),
            strong=point["recommended"],
        )
        for point in points
    )
    columns = (
        Column(head=words("column.mixture")),
        Column(head=words.head(words.name("metric", "duration_days"), rung), numeric=True),
        Column(head=words("column.loss_change")),
        Column(head=words("column.front")),
    )
    notes = [words("mixture.trained", how=_trained(kind, points, words))]
    apart = told_apart(points)
    if not apart:
        notes.append(words("mixture.unsure" if apart is None else "mixture.alike"))
    if any(point["recommended"] for point in points):
        notes.append(words("mixture.bold"))
    elif kind == "schedule" or not any(point["loss_range"] for point in points if point["name"] == "policy"):
        notes.append(words("mixture.none_recommended"))
    return Table(caption=words(f"table.mixtures_{kind}"), columns=columns, rows=rows, notes=tuple(notes), folded=folded)

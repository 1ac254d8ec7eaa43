"""The requested precision over GPU counts: time, cost and energy, the knee, and the positions of the targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from reports.charts import (
    CurveDrawing,
    CurvePanel,
    Tick,
    end_anchor,
    linear_ticks,
    on_log,
    percent,
    polyline,
    ticks_on,
)
from reports.document.facts import COST, DURATION, ENERGY, QUANTITY, Doc, Facts
from reports.document.units import column_unit
from reports.text.described import described
from reports.text.language import Span, Words, strong
from reports.text.names import pretty_gpu
from reports.text.numbers import Rung, axis_labels
from reports.view import Block, Cell, Column, CurveChart, Section, Table, TableRow
from reports.view.cells import count_cell, figure_cell, none_cell

METRICS = (DURATION, COST, ENERGY)
DRAWN = (DURATION, COST)
TARGETS = {"in_time": "column.in_time", "in_budget": "column.in_budget"}
"""Flags of a point about the targets, with the headers of their columns."""
MARKS = {"chosen": "curve.is_chosen", "knee": "curve.is_knee"}
"""Flags of a point, with their labels."""
LIMITS = {DURATION: ("deadline", "chart.deadline"), COST: ("budget", "chart.budget")}
"""The target of each figure, with the key of the text at its line."""
DIGITS = 3
"""Significant digits of a position: a panel is a hundred pixels high."""
NEAR_LIMIT = 1.5
"""A target is drawn up to this ratio to the highest point; a higher one would squeeze the curve."""


def curve(facts: Facts, words: Words) -> Section | None:
    """Show cost and time over GPU counts as a chart with its table; None for fewer than two points."""
    points = facts.curve
    if len(points) < 2:
        return None
    lead = words.spans("curve.lead", precision=words.name("precision", facts.asked), gpu=pretty_gpu(facts.gpu))
    blocks: tuple[Block, ...] = (_chart(facts, points, words), _table(facts, points, words, folded=True))
    return Section(id="curve", title=words("curve.title"), lead=lead + _knee(points, words), blocks=blocks)


def short_curve(facts: Facts, words: Words) -> Table | None:
    """Compare the plan with points at about half and double its GPUs, and with the knee."""
    points = facts.curve
    around = _around(points)
    if len(around) < 2:
        return None
    around = [point for point in points if point["knee"] or point in around]
    note = "".join(span.text for span in _knee(points, words)).strip()
    return _table(facts, around, words, notes=(note,) if note else ())


def _around(points: Sequence[Doc]) -> list[Doc]:
    """Return the plan, and the points nearest to half and to double its GPUs; empty without a plan."""
    chosen = next((point for point in points if point["chosen"]), None)
    if chosen is None:
        return []
    fewer = [point for point in points if point["gpus"] < chosen["gpus"]]
    more = [point for point in points if point["gpus"] > chosen["gpus"]]
    half = [_nearest(fewer, chosen["gpus"] / 2)] if fewer else []
    return [*half, chosen, *([_nearest(more, chosen["gpus"] * 2)] if more else [])]


def _nearest(points: Sequence[Doc], gpus: float) -> Doc:
    return min(points, key=lambda point: abs(math.log(point["gpus"] / gpus)))


def _knee(points: Sequence[Doc], words: Words) -> tuple[Span, ...]:
    knee = next((number for number, point in enumerate(points) if point["knee"]), None)
    if knee is None:
        return ()
    days = [point["duration_days"]["mid"] for point in points[knee:]]
    faster = all(more < fewer for fewer, more in pairwise(days))
    gpus = strong(words.count("gpu_count", points[knee]["gpus"]))
    return words.spans("curve.knee" if faster else "curve.knee_slower", gpus=gpus) + _beyond(points, knee, words)


def _beyond(points: Sequence[Doc], knee: int, words: Words) -> tuple[Span, ...]:
    """Compare the time and cost of the plan with those at about half its GPUs, if the plan is beyond the knee."""
    around = _around(points[knee:])
    if len(around) < 2 or around[0]["chosen"]:
        return ()
    half, plan = around[:2]
    longer_ratio = plan[DURATION]["mid"] / half[DURATION]["mid"]
    priced = half[COST] and plan[COST] and half[COST]["mid"]
    dearer_ratio = plan[COST]["mid"] / half[COST]["mid"] if priced else longer_ratio * plan["gpus"] / half["gpus"]
    if dearer_ratio <= 1.0 or longer_ratio >= 1.0:
        return ()
    return words.spans(
        "curve.beyond_knee" if priced else "curve.beyond_knee_hours",
        dearer=words.value("change", dearer_ratio - 1.0),
        sooner=words.value("change", 1.0 - longer_ratio),
        fewer=words.count("gpu_count", half["gpus"]),
    )


def _rungs(facts: Facts, points: Sequence[Doc], metrics: tuple[str, ...], words: Words) -> dict[str, Rung]:
    """Return the unit of each figure that any point has."""
    return {
        metric: column_unit(facts, metric, [point[metric] for point in points], words)
        for metric in metrics
        if any(point[metric] for point in points)
    }


def _table(
    facts: Facts, points: Sequence[Doc], words: Words, *, notes: tuple[str, ...] = (), folded: bool = False
) -> Table:
    rungs = _rungs(facts, points, METRICS, words)
    targets = [name for name in TARGETS if any(point[name] is not None for point in points)]
    batches = folded and len({point["global_batch"] for point in points}) > 1
    heads = [Column(head=words("column.gpus"))]
    heads += [Column(head=words(facts.worded("column.batch", "column.batch_images")), numeric=True)] if batches else []
    heads += [Column(head=words.head(words.name("metric", name), rung), numeric=True) for name, rung in rungs.items()]
    confidence = words("percent").format(f"{100 * facts.confidence:.6g}")
    heads += [Column(head=words(TARGETS[name], confidence=confidence)) for name in targets]
    rows = []
    for point in points:
        cells = [_count(point, facts.gpus_allowed, words)]
        cells += [count_cell(point["global_batch"])] if batches else []
        cells += [figure_cell(words.figure(QUANTITY[name], point[name], rung), words) for name, rung in rungs.items()]
        cells += [_meets(point[name], words) for name in targets]
        rows.append(TableRow(cells=tuple(cells), strong=bool(point["chosen"])))
    caption = words("table.curve", precision=words.name("precision", facts.asked), gpu=pretty_gpu(facts.gpu))
    return Table(caption=caption, columns=tuple(heads), rows=tuple(rows), notes=notes, folded=folded, sortable=False)


def _count(point: Doc, allowed: float, words: Words) -> Cell:
    names = [words(key) for name, key in MARKS.items() if point[name]]
    names += [words("curve.is_over_cap")] if point["gpus"] > allowed else []
    return Cell(text=f"{point['gpus']:,}", detail=words("list.comma").join(names), sort=float(point["gpus"]))


def _meets(met: bool | None, words: Words) -> Cell:
    if met is None:
        return none_cell(words)
    return Cell(text=words("yes" if met else "no"), tone="good" if met else "bad")


def _chart(facts: Facts, points: list[Doc], words: Words) -> CurveChart:
    rungs = _rungs(facts, points, DRAWN, words)
    counts = [float(point["gpus"]) for point in points]
    places = [on_log(count, counts) for count in counts]
    panels = [
        _panel(facts, metric, rung, points, places, words, last=number == len(rungs) - 1)
        for number, (metric, rung) in enumerate(rungs.items())
    ]
    knee = next((n for n, point in enumerate(points) if point["knee"]), None)
    chosen = next((n for n, point in enumerate(points) if point["chosen"]), None)
    legend = (
        [] if chosen is None else [("dot", words("curve.dot", gpus=words.count("gpu_count", points[chosen]["gpus"])))]
    )
    legend += (
        [] if knee is None else [("knee", words("curve.line", gpus=words.count("gpu_count", points[knee]["gpus"])))]
    )
    key = "chart.curve" if COST in rungs else "chart.curve_time"
    title = words(key, precision=words.name("precision", facts.asked))
    return CurveChart(
        title=title,
        description=described([_said(point, rungs, words) for point in _around(points) or points], words),
        drawing=CurveDrawing(panels=tuple(panels), knee=None if knee is None else places[knee]),
        x_label=words("column.gpus"),
        legend=tuple(legend),
    )


def _said(point: Doc, rungs: dict[str, Rung], words: Words) -> tuple[str, str]:
    figures = [words.figure(QUANTITY[name], point[name], rung) for name, rung in rungs.items()]
    return f"{point['gpus']:,}", words("list.comma").join(figure.text for figure in figures if figure)


def _panel(
    facts: Facts, metric: str, rung: Rung, points: list[Doc], places: list[float], words: Words, *, last: bool
) -> CurvePanel:
    known = [(x, point) for x, point in zip(places, points, strict=True) if point[metric]]
    limit, text = _limit(facts, metric, words)
    highest = max(point[metric]["high"] for _, point in known)
    drawn = limit is not None and limit <= NEAR_LIMIT * highest
    values = linear_ticks(max(highest, limit) if limit is not None and drawn else highest, 3)
    top = values[-1]

    def along(end: str) -> list[tuple[float, float]]:
        return [(x, point[metric][end]) for x, point in known]

    chosen = next(((x, percent(100 * point[metric]["mid"] / top)) for x, point in known if point["chosen"]), None)
    return CurvePanel(
        label=words.head(words.name("metric", metric), rung),
        band=polyline([*along("low"), *reversed(along("high"))], 100.0, top, DIGITS),
        line=polyline(along("mid"), 100.0, top, DIGITS),
        dot=chosen,
        x_ticks=_count_ticks(points, places) if last else (),
        y_ticks=ticks_on(values, axis_labels(values, rung, unit=False)),
        limit=percent(100 * limit / top) if limit is not None and drawn else None,
        limit_text=text,
        limit_anchor="end" if metric == DURATION else "start",
    )


def _limit(facts: Facts, metric: str, words: Words) -> tuple[float | None, str]:
    """Return the target of a figure, and its label with the value."""
    target, key = LIMITS[metric]
    if facts.probability(target) is None:
        return None, ""
    value = facts.doc.get("deadline_days") if metric == DURATION else facts.given("budget")
    if not value:
        return None, ""
    text = words.duration(float(value)) if metric == DURATION else words.value(QUANTITY[metric], float(value))
    return float(value), words(key, value=text)


def _count_ticks(points: list[Doc], places: list[float]) -> tuple[Tick, ...]:
    """Return the GPU counts whose labels fit on a narrow screen: the ends, the plan, then others."""
    chosen = [n for n, point in enumerate(points) if point["chosen"]]
    shown = spaced(places, [0, len(points) - 1, *chosen])
    return tuple(Tick(at=places[n], label=f"{points[n]['gpus']:,}", anchor=end_anchor(n, len(points))) for n in shown)


def spaced(places: Sequence[float], first: Sequence[int], least: float = 24.0) -> list[int]:
    """Return indices of places (in percent) whose labels do not overlap; indices in `first` take precedence."""
    kept: list[int] = []
    for index in dict.fromkeys([*first, *range(len(places))]):
        if all(abs(places[index] - places[other]) >= least for other in kept):
            kept.append(index)
    return sorted(kept)

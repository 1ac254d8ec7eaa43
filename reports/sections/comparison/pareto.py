"""The Pareto front of an optimize result: nothing on it can be cheaper without being slower."""

from __future__ import annotations

from reports.charts import Mark, ScatterDrawing, linear_ticks, percent, ticks_on
from reports.document.facts import DURATION, Doc, Facts
from reports.document.units import column_unit
from reports.text.described import described
from reports.text.language import Words
from reports.text.names import pretty_gpu
from reports.text.numbers import axis_labels
from reports.view import Cell, Column, ScatterChart, Section, Table, TableRow
from reports.view.cells import count_cell, figure_cell


def pareto(facts: Facts, words: Words) -> Section | None:
    """Days against cost for the candidates of `pareto`; absent if the document has none."""
    points = [p for p in (facts.doc.get("pareto") or {}).get("points", ()) if p["cost_usd"] and p["duration_days"]]
    if not points:
        return None
    front = sorted((p for p in points if p["on_front"]), key=lambda p: float(p["duration_days"]["mid"]))
    lead = words.spans("pareto.lead", count=f"{len(points):,}", front=f"{len(front):,}")
    return Section(
        id="pareto",
        title=words("pareto.title"),
        lead=lead,
        blocks=(_chart(facts, points, front, words), _table(facts, front or points, words)),
    )


def _name(point: Doc, words: Words) -> str:
    return words(
        "pareto.name",
        precision=words.name("precision", point["precision"]),
        gpus=f"{point['gpus']:,}",
        gpu=pretty_gpu(point["gpu"]),
    )


def _chart(facts: Facts, points: list[Doc], front: list[Doc], words: Words) -> ScatterChart:
    days = linear_ticks(max(p["duration_days"]["high"] for p in points))
    cost = linear_ticks(max(p["cost_usd"]["high"] for p in points))
    day_rung = column_unit(facts, DURATION, [p[DURATION] for p in points], words)
    cost_rung = words.shared("money", [p["cost_usd"] for p in points])

    def place(point: Doc, which: str) -> tuple[float, float]:
        x, y = point["duration_days"][which] / days[-1], point["cost_usd"][which] / cost[-1]
        return percent(100 * x), percent(100 * y)

    marks = []
    for point in sorted(points, key=lambda p: bool(p["on_front"])):
        (x, y), (x_low, y_low), (x_high, y_high) = (place(point, which) for which in ("mid", "low", "high"))
        marks.append(
            Mark(x=x, y=y, x_low=x_low, x_high=x_high, y_low=y_low, y_high=y_high,
                 shape="dot" if point["on_front"] else "ring", strong=point["precision"] == facts.asked,
                 label=_label(point, words))
        )  # fmt: skip
    title = words("chart.pareto")
    return ScatterChart(
        title=title,
        description=described([_label_parts(point, words) for point in front], words),
        drawing=ScatterDrawing(
            marks=tuple(marks),
            x_ticks=ticks_on(days, axis_labels(days, day_rung, unit=False)),
            y_ticks=ticks_on(cost, axis_labels(cost, cost_rung, unit=False)),
            line=tuple(place(point, "mid") for point in front),
        ),
        x_label=words.head(words.name("metric", "duration_days"), day_rung),
        y_label=words.head(words.name("metric", "cost_usd"), cost_rung),
        legend=(("dot", words("pareto.on")), ("ring", words("pareto.off"))),
    )


def _label(point: Doc, words: Words) -> str:
    name, text = _label_parts(point, words)
    return words("chart.row", label=name, text=text)


def _label_parts(point: Doc, words: Words) -> tuple[str, str]:
    days, cost = words.figure("days", point["duration_days"]), words.figure("money", point["cost_usd"])
    assert days is not None
    assert cost is not None
    return _name(point, words), words("pareto.point", days=days.text, cost=cost.text)


def _table(facts: Facts, points: list[Doc], words: Words) -> Table:
    kinds = (("duration_days", "days"), ("cost_usd", "money"), ("energy_mwh", "energy"))
    present = [(name, kind) for name, kind in kinds if any(p.get(name) for p in points)]
    rungs = {name: words.shared(kind, [p.get(name) for p in points]) for name, kind in present}
    rungs[DURATION] = column_unit(facts, DURATION, [p[DURATION] for p in points], words)
    heads = [words.head(words.name("metric", n), rungs[n]) for n, _ in present]
    rows = tuple(
        TableRow(
            cells=(
                Cell(text=words.name("precision", p["precision"])),
                Cell(text=pretty_gpu(p["gpu"])),
                count_cell(p["gpus"]),
                *(figure_cell(words.figure(kind, p.get(name), rungs[name]), words) for name, kind in present),
            ),
            strong=p["precision"] == facts.asked and p["gpu"] == facts.gpu,
        )
        for p in points
    )
    return Table(
        caption=words("table.pareto"),
        columns=(
            Column(head=words("column.precision")),
            Column(head=words("column.gpu")),
            Column(head=words("column.gpus"), numeric=True),
            *(Column(head=head, numeric=True) for head in heads),
        ),
        rows=rows,
    )

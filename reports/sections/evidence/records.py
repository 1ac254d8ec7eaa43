"""What a measurement record adds: power and loss over time."""

from __future__ import annotations

from reports.charts import TraceDrawing, TraceLine, linear_ticks, polyline, thin, ticks_on
from reports.document.facts import Doc, Facts
from reports.text.language import Words
from reports.text.numbers import Rung, axis_labels
from reports.view import Block, Cell, Column, Section, Table, TableRow, TraceChart

PLAIN = Rung(at=0, per=1, text="{}", column="")
"""A trace's own unit, as it is."""


def _trace_head(kind: str, own: list[Doc], words: Words) -> str:
    unit = str(own[0].get("unit") or "")
    name = words.name("trace", kind)
    return words("column.unit", name=name, unit=unit) if unit else name


def traces(facts: Facts, words: Words) -> Section | None:
    """Power and loss over time from `traces`; long ones are reduced to the minimum and maximum of each column."""
    carried = [t for t in facts.doc.get("traces") or () if len(t.get("t_s") or ()) > 1]
    blocks: list[Block] = []
    for kind in dict.fromkeys(str(t["kind"]) for t in carried):
        own = [t for t in carried if t["kind"] == kind]
        blocks += [_trace_chart(kind, own, words), _trace_table(kind, own, words)]
    if not blocks:
        return None
    return Section(id="traces", title=words("traces.title"), lead=words.spans("traces.lead"), blocks=tuple(blocks))


def _trace_chart(kind: str, own: list[Doc], words: Words) -> TraceChart:
    x_top = linear_ticks(max(t["t_s"][-1] - t["t_s"][0] for t in own))
    y_top = linear_ticks(max(max(t["value"]) for t in own))
    drawn = []
    for number, t in enumerate(own):
        points = thin([s - t["t_s"][0] for s in t["t_s"]], t["value"])
        drawn.append(TraceLine(name=str(t["name"]), colour=number % 8, points=polyline(points, x_top[-1], y_top[-1])))
    seconds = words.ladder("seconds")[-1]
    title = words("chart.trace", kind=words.name("trace", kind))
    labels = axis_labels(y_top, PLAIN, unit=False)
    return TraceChart(
        title=title,
        description=words("chart.described", said=words.join([t.name for t in drawn])),
        drawing=TraceDrawing(
            traces=tuple(drawn),
            x_ticks=ticks_on(x_top, axis_labels(x_top, seconds, unit=False)),
            y_ticks=ticks_on(y_top, labels),
        ),
        x_label=words.head(words("traces.time"), seconds),
        y_label=_trace_head(kind, own, words),
    )


def _trace_table(kind: str, own: list[Doc], words: Words) -> Table:
    rows = []
    for t in own:
        values = sorted(t["value"])
        figures = (t["t_s"][-1] - t["t_s"][0], values[0], values[len(values) // 2], values[-1])
        cells = [Cell(text=words.value("plain", value), sort=value) for value in figures]
        rows.append(TableRow(cells=(Cell(text=str(t["name"])), *cells)))
    heads = ("trace_seconds", "smallest", "median", "largest")
    return Table(
        caption=words("table.trace", what=_trace_head(kind, own, words)),
        columns=(Column(head=words("column.trace")), *(Column(head=words(f"column.{h}"), numeric=True) for h in heads)),
        rows=tuple(rows),
    )

"""Traces: seconds from the start of each, smallest, middle and largest value."""

from __future__ import annotations

from typing import Any

from reports.document.facts import Facts
from reports.page.build import checked
from reports.sections.evidence.records import traces
from reports.text.language import words_for
from reports.view import Table, TraceChart
from tests.reports import sample

WORDS = words_for("en")


def trace(times: list[float], values: list[float], **more: Any) -> dict[str, Any]:
    return {"name": "block", "kind": "power", "unit": "W", "t_s": times, "value": values} | more


def blocks(*carried: dict[str, Any]) -> tuple[Any, ...]:
    section = traces(Facts(checked(sample.document() | {"traces": list(carried)})), WORDS)
    assert section is not None
    return section.blocks


def test_a_trace_begins_at_zero_and_its_table_has_its_length_and_its_values():
    chart, table = blocks(trace([100.0, 102.0, 104.0], [120.0, 500.0, 400.0]))
    assert isinstance(chart, TraceChart)
    assert isinstance(table, Table)

    # an axis of 4 s and one of 500 W; y grows downwards in SVG
    assert chart.drawing.traces[0].points == "0,76 50,0 100,20"
    assert [cell.sort for cell in table.rows[0].cells[1:]] == [4.0, 120.0, 400.0, 500.0]


def test_each_kind_of_trace_has_axes_of_its_own():
    loss = trace([0, 4], [8.0, 4.0], kind="loss", unit="")
    found = blocks(trace([0, 1], [1.0, 2.0]), loss, trace([0, 2], [3.0, 4.0]))

    assert [len(b.drawing.traces) for b in found if isinstance(b, TraceChart)] == [2, 1]
    assert found[0].drawing.traces[0].points == "0,75 50,50"  # the longest takes 2 s, the highest value is 4
    assert [trace.colour for trace in found[0].drawing.traces] == [0, 1]


def test_a_trace_of_one_reading_is_none():
    assert traces(Facts(checked(sample.document() | {"traces": [trace([0], [1.0])]})), WORDS) is None

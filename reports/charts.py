"""Geometry of the charts: convert numbers to positions in percent, with pure functions and without text or drawing.

Positions along the page's width are percentages, so that one drawing fits a phone and a sheet of paper; the templates
turn them into SVG. Positions are rounded to hundredths of a percent, or to the digits of a polyline, so that the same
plan gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.lazy import dataclass
from reports.text.width import columns_of

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on an axis."""

    at: float
    """Percent from the start of the axis."""
    label: str
    anchor: str = "middle"
    """SVG text-anchor: the labels at both ends stay inside the drawing."""
    tight: str = ""
    """`tight` if the label fits only in a chart of `HALF` pixels or more, `tighter` if only in one of full width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The content of one row of a range chart."""

    label: str
    text: str
    low: float = 0.0
    mid: float = 0.0
    high: float = 0.0
    """In the unit of the metric."""
    strong: bool = False
    """True for the requested precision."""
    at_least: bool = False
    """True for a lower bound, which is drawn hatched."""
    quiet: bool = False
    """True if the bar is shown only as a reference."""
    missing: bool = False
    """True if there is no figure; the text then gives the reason."""
    beyond: bool = False
    """True if the bar is longer than the axis; it is drawn to the axis end and broken off there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRow:
    """A bar with its range, positioned in percent across and pixels down."""

    lines: tuple[str, ...]
    """The label, broken into lines."""
    text: str
    low: float
    mid: float
    high: float
    y: int
    y_value: int
    """Baseline of the value."""
    y_bar: int
    value_below: bool
    """True if the value goes on a separate line under the label."""
    strong: bool
    at_least: bool
    quiet: bool
    missing: bool
    beyond: bool

    @property
    def label(self) -> str:
        """The label on one line."""
        return " ".join(self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeDrawing:
    """Bars on one axis that starts at zero."""

    rows: tuple[RangeRow, ...]
    ticks: tuple[Tick, ...]
    height: int
    """Height of all rows in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a stacked bar."""

    at: float
    width: float
    letter: str
    colour: int
    label: str
    """Name and value."""
    show_letter: bool
    """Whether the letter fits in the segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackRow:
    """A bar composed of parts."""

    label: str
    text: str
    segments: tuple[Segment, ...]
    limit: float | None = None
    """Position of the capacity line."""
    beyond: bool = False
    """True if the bar is longer than the axis; the text says so, and no bar is drawn."""
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StackDrawing:
    """Stacked bars on one axis that starts at zero."""

    rows: tuple[StackRow, ...]
    ticks: tuple[Tick, ...]
    legend: tuple[tuple[str, int, str], ...]
    """Letter, colour number and name of each drawn part."""
    limit_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point of a scatter, with an optional range."""

    x: float
    y: float
    x_low: float
    x_high: float
    y_low: float
    y_high: float
    shape: str
    """`dot` or `ring`."""
    label: str
    """Text of the tooltip."""
    strong: bool = False
    ranged: bool = False
    """Whether the ranges are drawn even if the point is not emphasised."""
    name: str = ""
    """Label written beside the point; empty for no label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterDrawing:
    """Points between two axes; y grows upwards, and positions are in percent from the lower left corner."""

    marks: tuple[Mark, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    line: tuple[tuple[float, float], ...] = ()
    """A line through the drawing: the Pareto front, or the line where predictions equal published values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """A line over time."""

    name: str
    colour: int
    points: str
    """`x,y` pairs for an SVG polyline in a box of 100 by 100, y downwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDrawing:
    """Lines between two axes."""

    traces: tuple[TraceLine, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePanel:
    """One figure plotted over the axis that all panels of a curve share."""

    label: str
    """The figure and its unit."""
    band: str
    """The range as `x,y` pairs of a polygon in a box of 100 by 100, y downwards."""
    line: str
    """The middle of the range, in the same form."""
    dot: tuple[float, float] | None
    """The plan's position, in percent from the lower left corner."""
    x_ticks: tuple[Tick, ...]
    """Empty if a lower panel has them."""
    y_ticks: tuple[Tick, ...]
    limit: float | None = None
    """Position of the target, in percent from the bottom; None without a target, or if it is beyond the axis."""
    limit_text: str = ""
    limit_anchor: str = "end"
    """SVG text-anchor of the target's label, placed at the end where the curve is far from the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveDrawing:
    """Panels stacked vertically."""

    panels: tuple[CurvePanel, ...]
    knee: float | None
    """Position of the knee, in percent from the left."""


def percent(value: float) -> float:
    """Round a position to hundredths of a percent."""
    return round(value, 2)


def nice_step(span: float, most: int) -> float:
    """Return the smallest step of 1, 2, 2.5 or 5 times a power of ten that divides a span into at most `most` parts."""
    if not (span > 0 and math.isfinite(span)):
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0):
        if span / (factor * power) <= most * (1 + 1e-9):
            return factor * power
    return 20.0 * power


def linear_ticks(top: float, most: int = 5) -> tuple[float, ...]:
    """Return round values from zero that cover `top`; the last one is the end of the axis."""
    step = nice_step(top, most)
    count = max(1, math.ceil(top / step * (1 - 1e-8))) if top > 0 else 1
    return tuple(float(f"{step * i:.10g}") for i in range(count + 1))


def end_anchor(index: int, count: int) -> str:
    """Return the text anchor of a tick's label: inwards at both ends."""
    return "start" if index == 0 else "end" if index == count - 1 else "middle"


BEYOND = 1.5
"""References more than this many times the largest other value do not set the scale; their bars are broken off."""


def scale_top(sizes: Sequence[float], references: Sequence[float]) -> float:
    """Return the largest value that the axis must cover: all sizes, and references unless they dwarf the sizes."""
    own = max(sizes, default=0.0)
    others = max(references, default=0.0)
    return own if own and others > BEYOND * own else max(own, others)


NARROW = 280
"""Width of the narrowest chart in pixels."""
HALF = 460
"""Width in pixels of a chart beside a table on a wide screen; `templates/report.css` hides labels below it."""
DIGIT = 6.6
"""Width of one character of a tick's label in pixels."""


def ticks_on(values: Sequence[float], labels: Sequence[str]) -> tuple[Tick, ...]:
    """Return the ticks of a linear axis that begins at zero and ends at the last value.

    The last label includes the unit and extends inwards. Labels that it would overlap in a narrow chart are marked as
    tight.
    """
    top, count = values[-1] or 1.0, len(values)

    def tight(at: float, label: str) -> str:
        needed = DIGIT * (columns_of(labels[-1]) + columns_of(label) / 2 + 1) / (1 - at)
        return "" if needed <= NARROW else "tight" if needed <= HALF else "tighter"

    inner = range(1, count - 1)
    return tuple(
        Tick(
            at=percent(100 * value / top),
            label=label,
            anchor=end_anchor(i, count),
            tight=tight(value / top, label) if i in inner else "",
        )
        for i, (value, label) in enumerate(zip(values, labels, strict=True))
    )


LINE = 36
"""Columns of text that fit in the narrowest chart (280 pixels)."""
LINE_PIXELS = 17


def broken(text: str, width: int = LINE) -> tuple[str, ...]:
    """Wrap a label at spaces into lines of at most `width` columns; split longer words."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}".strip()
        if columns_of(joined) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for c in word:
            if columns_of(lines[-1] + c) > width:
                lines.append("")
            lines[-1] += c
    return tuple(lines)


def place_rows(bars: Sequence[Bar], ticks: tuple[Tick, ...], top: float) -> RangeDrawing:
    """Place bars under each other on an axis from 0 to `top`; all values go below if one lacks room."""
    rows, y = [], 0
    labels = [broken(bar.label) for bar in bars]
    below = any(
        columns_of(lines[-1]) + columns_of(bar.text) + 2 > LINE + 4 for bar, lines in zip(bars, labels, strict=True)
    )
    for bar, lines in zip(bars, labels, strict=True):
        y_value = y + 15 + LINE_PIXELS * (len(lines) - 1 + below)
        rows.append(
            RangeRow(
                lines=lines,
                text=bar.text,
                low=percent(100 * min(bar.low / top, 1)),
                mid=percent(100 * min(bar.mid / top, 1)),
                high=percent(100 * min(bar.high / top, 1)),
                y=y,
                y_value=y_value,
                y_bar=y_value + 6,
                value_below=below,
                strong=bar.strong,
                at_least=bar.at_least,
                quiet=bar.quiet,
                missing=bar.missing,
                beyond=bar.beyond,
            )
        )
        y = y_value + (12 if bar.missing else 26)
    return RangeDrawing(rows=tuple(rows), ticks=ticks, height=y)


def segments_of(parts: Sequence[tuple[int, float, str]], top: float, least_ratio: float = 0.035) -> tuple[Segment, ...]:
    """Place parts (colour number, size, label) end to end on an axis from 0 to `top`, without empty parts."""
    placed, at = [], 0.0
    for number, size, label in parts:
        width = 100 * size / top
        if size > 0:
            placed.append(
                Segment(
                    at=percent(at),
                    width=percent(width),
                    letter=LETTERS[number],
                    colour=number,
                    label=label,
                    show_letter=width >= 100 * least_ratio,
                )
            )
        at += width
    return tuple(placed)


def on_log(value: float, ticks: Sequence[float]) -> float:
    """Return the position of a positive value on a logarithmic axis, in percent, clamped to the axis."""
    low, high = math.log10(ticks[0]), math.log10(ticks[-1])
    return percent(min(100.0, max(0.0, 100 * (math.log10(value) - low) / (high - low))))


def polyline(points: Sequence[tuple[float, float]], x_top: float, y_top: float, digits: int = 4) -> str:
    """Return points as an SVG polyline in a box of 100 by 100 with the origin at the lower left."""
    return " ".join(f"{100 * x / x_top:.{digits}g},{100 - 100 * y / y_top:.{digits}g}" for x, y in points)

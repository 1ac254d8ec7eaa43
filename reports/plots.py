"""Geometry of the charts about numerics: exponents beside number formats, and intervals around zero.

As in `reports.charts`, functions convert numbers to positions in percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.lazy import dataclass
from reports.charts import Tick, end_anchor, nice_step, percent


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPanel:
    """The histogram of one kind of values."""

    label: str
    path: str
    """SVG path of the bars in a box as wide as the number of exponents on the axis and 100 high, y downwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The range of a format on the axis of the histograms."""

    label: str
    low: float
    """Position in percent from the left."""
    high: float
    detail: str = ""
    """Text under the label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramDrawing:
    """Histograms on one axis of exponents, with the ranges of formats below."""

    panels: tuple[HistogramPanel, ...]
    exponents: int
    """Number of exponents on the axis."""
    spans: tuple[Span, ...]
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """One interval, or a bar from zero, with its middle."""

    label: str
    text: str
    low: float
    """Position in percent from the left."""
    high: float
    dot: float | None = None
    """Position of the middle; None for a bar."""
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalDrawing:
    """Intervals stacked vertically on one axis."""

    rows: tuple[IntervalRow, ...]
    ticks: tuple[Tick, ...]
    zero: float
    """Position of zero, in percent from the left."""
    band: tuple[float, float] | None = None
    """Range that counts as equal; None if there is none."""


def bars_path(counts: Sequence[float], first: int) -> str:
    """Return bars of width 1 from `first` on, the largest 100 high, as one path; invisible bars are left out."""
    most = max(counts, default=0.0) or 1.0
    drawn, end = [], None  # adjacent bars form one shape, closed along the baseline
    for place, count in enumerate(counts, start=first):
        tall = round(100.0 * count / most)
        if tall > 0:
            drawn.append("h.1" if place == end else f"M{place} 100" if end is None else f"zM{place} 100")
            drawn.append(f"v{-tall}h.9v{tall}")
            end = place + 1
    return "".join([*drawn, "z"] if drawn else [])


def span_on(label: str, least: float, most: float, low: float, high: float, detail: str = "") -> Span:
    """Return a format's range on an axis from `low` to `high`, clipped to the axis."""

    def at(value: float) -> float:
        return percent(100.0 * (min(max(value, low), high) - low) / (high - low))

    return Span(label=label, low=at(least), high=at(most), detail=detail)


NEARLY = 1e-9
"""Rounding error allowed in a quotient of two round numbers."""


def even_ticks(low: float, high: float, most: int = 5) -> tuple[float, ...]:
    """Return round values within a range, which may include zero."""
    step = nice_step(high - low, most)
    first, last = math.ceil(low / step - NEARLY), math.floor(high / step + NEARLY)
    return tuple(round(step * number, 12) for number in range(first, last + 1))


def axis_of(values: Sequence[float], labels: Sequence[str], low: float, high: float) -> tuple[Tick, ...]:
    """Return the ticks of an axis from `low` to `high`."""
    return tuple(
        Tick(at=percent(100.0 * (value - low) / (high - low)), label=label, anchor=end_anchor(number, len(labels)))
        for number, (value, label) in enumerate(zip(values, labels, strict=True))
    )

"""The content of a report, independent of its format: strings rounded once, in one language, with shapes ready to draw.

A view has a first screen (`Hero`) and sections; a section has a title, a lead and blocks. Every format renders the same
blocks, so a number reads the same in HTML, Markdown and the terminal. A new section needs one file in `sections/` and
a line in `reports.page.sections`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from planner.lazy import dataclass
from reports.text.language import Span, Words
from reports.text.width import columns_of

if TYPE_CHECKING:  # the short answer draws nothing
    from reports.charts import CurveDrawing, RangeDrawing, ScatterDrawing, StackDrawing, TraceDrawing
    from reports.plots import HistogramDrawing, IntervalDrawing


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table."""

    text: str
    detail: str = ""
    """Second piece in a quieter style, such as the range of the value."""
    sort: float | None = None
    """Sort key; None sorts by the text."""
    href: str | None = None
    """An `http(s)` address or a `#anchor` in the page."""
    tone: str = ""
    """`good`, `bad`, `quiet`, `code` or empty."""
    swatch: str = ""
    """Letter of the chart segment to which this row belongs."""
    colour: int | None = None
    """Colour number of that segment."""
    foreign: bool = False
    """True for text from the document that is not in the report's language."""

    @property
    def wide(self) -> bool:
        """Whether the detail has Chinese words, not only the 至 of a range, and so belongs in full-width brackets."""
        return columns_of(self.detail) > len(self.detail) + 1

    @property
    def plain(self) -> str:
        """Text and detail on one line."""
        if not self.detail:
            return self.text
        return f"{self.text}（{self.detail}）" if self.wide else f"{self.text} ({self.detail})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row; the first cell is its header."""

    cells: tuple[Cell, ...]
    strong: bool = False
    """True for the requested precision, or a total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Header of a column."""

    head: str
    numeric: bool = False
    """True for numbers, which are right-aligned and sorted by value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under column headers, with a caption."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    """Lines under the table."""
    wide: bool = True
    """False for a narrow table, which may be placed beside its chart."""
    folded: bool = False
    """True if it repeats the chart above; it is then shown on demand and in print."""
    sortable: bool = True
    """False if the order of the rows matters (items before their total)."""

    @property
    def numeric(self) -> bool:
        """Whether every column but the first holds numbers."""
        return all(column.numeric for column in self.columns[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeChart:
    """Bars from zero, with the range at their end."""

    title: str
    description: str
    """Description of the chart, for readers who cannot see it."""
    drawing: RangeDrawing


@dataclass(frozen=True, slots=True, kw_only=True)
class StackChart:
    """Stacked bars."""

    title: str
    description: str
    drawing: StackDrawing


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterChart:
    """Points between two axes."""

    title: str
    description: str
    drawing: ScatterDrawing
    x_label: str
    y_label: str
    legend: tuple[tuple[str, str], ...] = ()
    """Shape of each mark and its meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceChart:
    """Lines over time."""

    title: str
    description: str
    drawing: TraceDrawing
    x_label: str
    y_label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveChart:
    """Several figures over one axis, with a panel each."""

    title: str
    description: str
    drawing: CurveDrawing
    x_label: str
    legend: tuple[tuple[str, str], ...] = ()
    """`dot` or `knee`, and its meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramChart:
    """Histograms of exponents above the ranges of number formats."""

    title: str
    description: str
    drawing: HistogramDrawing
    x_label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalChart:
    """Intervals around zero, or bars from zero."""

    title: str
    description: str
    drawing: IntervalDrawing
    x_label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """A paragraph."""

    spans: tuple[Span, ...]
    tone: str = ""

    @property
    def plain(self) -> str:
        """The paragraph as text."""
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list of sentences, each with an optional second part."""

    items: tuple[Cell, ...]
    title: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Terms with their meanings."""

    pairs: tuple[tuple[str, str], ...]


Block = (
    Table
    | RangeChart
    | StackChart
    | ScatterChart
    | TraceChart
    | CurveChart
    | HistogramChart
    | IntervalChart
    | Prose
    | Items
    | Pairs
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of the report. A section without data does not exist."""

    id: str
    title: str
    lead: tuple[Span, ...]
    """The main message, in a sentence or two."""
    blocks: tuple[Block, ...]
    group: str = ""
    """Key of the part of the page that starts here (`part.*`), or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus:
    """A change compared with another precision."""

    label: str
    text: str
    span: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One of the three figures of the first screen."""

    label: str
    text: str
    span: str
    budget: str
    """The high end, in a separate sentence."""
    versus: tuple[Versus, ...]
    evidence: str
    """The kinds of evidence behind the figure, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hero:
    """The first screen."""

    headline: tuple[Span, ...]
    budget: tuple[Span, ...]
    """The figure to budget with."""
    setting: tuple[Span, ...]
    """Machines, time, GPU-hours."""
    trust: tuple[Cell, ...]
    """Measured data, date of prices, assumptions, gaps; each with a link to the details."""
    alerts: tuple[str, ...]
    """Facts that a reader must not miss: lower bounds, a precision that does not fit."""
    tiles: tuple[Tile, ...]
    chart: RangeChart | None
    table: Table | None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A whole report, ready for any format."""

    words: Words
    title: str
    subtitle: str
    hero: Hero
    sections: tuple[Section, ...]
    brief: tuple[Block, ...] = ()
    """Blocks that follow the sentences in a short answer; empty for a full report."""
    footer: tuple[str, ...]
    logo: str | None = None
    """A `data:` address of an image."""
    data: dict[str, Any] = field(default_factory=dict)
    """Data for the formats and the page's script: the `document`, the `whatif` part, and the `csv` of a comparison."""
    sliders: tuple[Any, ...] = ()
    """Sliders of the what-if section (`reports.page.whatif.Slider`)."""

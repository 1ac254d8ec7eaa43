"""Range charts: bars of estimates on one axis, drawn and told alike wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.charts import Bar, place_rows, ticks_on
from reports.text.described import described
from reports.text.language import Figure, Words
from reports.view import RangeChart


def range_bar(
    label: str,
    figure: Figure,
    estimate: Mapping[str, Any],
    *,
    strong: bool = False,
    quiet: bool = False,
    beyond: bool = False,
) -> Bar:
    """A bar of an estimate (`low mid high`) with its figure, hatched where that is a lower bound.

    Args:
        label: what it is of.
        figure: the estimate as shown.
        estimate: as in the document.
        strong: of what was asked for.
        quiet: shown only as a reference.
        beyond: longer than the axis.
    """
    return Bar(
        label=label, text=figure.full, low=estimate["low"], mid=estimate["mid"], high=estimate["high"], strong=strong,
        at_least=figure.at_least, quiet=quiet, beyond=beyond,
    )  # fmt: skip


def range_chart(
    title: str, bars: Sequence[Bar], values: Sequence[float], labels: Sequence[str], words: Words
) -> RangeChart:
    """Bars on an axis from zero with these ticks, and the same in words."""
    return RangeChart(
        title=title,
        description=described([(bar.label, bar.text) for bar in bars], words),
        drawing=place_rows(bars, ticks_on(values, labels), values[-1]),
    )

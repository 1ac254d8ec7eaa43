"""Range charts: bars of estimates on one axis, drawn and described the same way everywhere."""

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
    """Return the bar of an estimate (`low mid high`) with its figure, hatched for a lower bound.

    Args:
        label: label of the bar.
        figure: the estimate as displayed.
        estimate: the estimate as in the document.
        strong: whether it belongs to the requested precision or GPU.
        quiet: whether it is shown only as a reference.
        beyond: whether it is longer than the axis.
    """
    return Bar(
        label=label, text=figure.full, low=estimate["low"], mid=estimate["mid"], high=estimate["high"], strong=strong,
        at_least=figure.at_least, quiet=quiet, beyond=beyond,
    )  # fmt: skip


def range_chart(
    title: str, bars: Sequence[Bar], values: Sequence[float], labels: Sequence[str], words: Words
) -> RangeChart:
    """Return bars on an axis that starts at zero and has these ticks, with a description."""
    return RangeChart(
        title=title,
        description=described([(bar.label, bar.text) for bar in bars], words),
        drawing=place_rows(bars, ticks_on(values, labels), values[-1]),
    )

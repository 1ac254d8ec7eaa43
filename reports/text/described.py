"""Descriptions of charts, for readers who cannot see them."""

from __future__ import annotations

from collections.abc import Iterable

from reports.text.language import Words


def described(rows: Iterable[tuple[str, str]], words: Words) -> str:
    """Describe a chart in a complete sentence with the label and the text of each row."""
    return words("chart.described", said=rows_told(rows, words))


def rows_told(rows: Iterable[tuple[str, str]], words: Words) -> str:
    """List the label and the text of each row, for a chart whose title is read before it."""
    return words("list.semicolon").join(words("chart.row", label=label, text=text) for label, text in rows)

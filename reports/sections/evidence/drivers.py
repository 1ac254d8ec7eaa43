"""The inputs that determine the width of the range."""

from __future__ import annotations

from reports.charts import Bar, linear_ticks
from reports.document.facts import Doc, Facts
from reports.text.clean import clean
from reports.text.language import Words
from reports.text.messages import sentence
from reports.text.numbers import grouped
from reports.view import Cell, Column, RangeChart, Section, Table, TableRow
from reports.view.bars import range_chart


def drivers(facts: Facts, words: Words) -> Section | None:
    """Show each input's share of the variance of the requested plan."""
    answer = facts.answer
    shares = answer["uncertainty"] if answer else []
    if not shares:
        return None
    names = words.join([driver_name(share, words) for share in shares[:2]])
    return Section(
        id="drivers",
        title=words("drivers.title"),
        lead=words.spans("drivers.lead", names=names),
        blocks=(_share_chart(shares, words), _share_table(shares, words)),
        group="sure",
    )


def driver_name(driver: Doc, words: Words) -> str:
    """Return the name of an uncertain input: the report's own if the term is known, else the planner's."""
    term = str(driver["term"])
    key = f"driver.{term if words.has(f'driver.{term}') else term.partition('.')[0]}"
    return words(key) if words.has(key) else clean(driver["label"])


def _share_chart(shares: list[Doc], words: Words) -> RangeChart:
    top = linear_ticks(max(float(share["share_ratio"]) for share in shares))
    bars = [
        Bar(label=driver_name(driver, words), text=words.value("percent", share), mid=share, strong=number < 2)
        for number, driver in enumerate(shares)
        for share in [float(driver["share_ratio"])]
    ]
    labels = [words("percent").format(grouped(100 * value, 0)) for value in top]
    return range_chart(words("chart.shares"), bars, top, labels, words)


def _share_table(shares: list[Doc], words: Words) -> Table:
    return Table(
        caption=words("table.shares"),
        columns=(
            Column(head=words("column.input")),
            Column(head=words("column.share"), numeric=True),
            Column(head=words("column.narrow")),
        ),
        rows=tuple(
            TableRow(
                cells=(
                    Cell(text=driver_name(driver, words)),
                    Cell(text=words.value("percent", share), sort=share),
                    _narrowing(driver, words),
                )
            )
            for driver in shares
            for share in [float(driver["share_ratio"])]
        ),
        wide=False,
    )


def _narrowing(share: Doc, words: Words) -> Cell:
    """Return what would narrow the range of an input."""
    if not share["measure_with"]:
        return Cell(text=words("none"))
    narrowing = sentence(share, "measure_with", words.lang)
    return Cell(text=narrowing.text, foreign=narrowing.foreign)

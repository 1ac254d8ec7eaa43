"""The effect of the user's own runs, from `calibration`."""

from __future__ import annotations

from reports.document.facts import Facts
from reports.text.clean import clean
from reports.text.language import Words
from reports.text.messages import sentence
from reports.view import Cell, Column, Section, Table, TableRow


def calibration(facts: Facts, words: Words) -> Section | None:
    """Show how much narrower each range became, and each term that changed."""
    learned = facts.doc.get("calibration")
    if not learned:
        return None
    terms = tuple(
        TableRow(
            cells=(
                Cell(text=sentence(entry, "words", words.lang).text),
                Cell(text=_figure(entry["before"]), sort=entry["before"]),
                Cell(text=_figure(entry["after"]), sort=entry["after"]),
                Cell(text=clean(entry["unit"])),
            )
        )
        for entry in learned["learned"]
    )
    heads = (("learned", False), ("before", True), ("after", True), ("unit_name", False))
    table = Table(
        caption=words("table.calibration"),
        columns=tuple(Column(head=words(f"column.{head}"), numeric=numeric) for head, numeric in heads),
        rows=terms,
    )
    narrower = words.join(
        [
            words("calibration.width", figure=words.name("learned_figure", figure), ratio=f"{ratio:.0%}")
            for figure, ratio in learned["width_ratio"].items()
        ]
    )
    lead = words.spans(
        "calibration.lead", runs=words.count("own_runs", int(learned["runs"])), source=clean(learned["source"]),
        narrower=narrower,
    )  # fmt: skip
    return Section(id="calibration", title=words("calibration.title"), lead=lead, blocks=(table,) if terms else ())


def _figure(value: float) -> str:
    return f"{value:.3g}"

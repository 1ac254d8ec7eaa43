"""All tasks and precisions that were trained, as a table, since the charts cover only the first task."""

from __future__ import annotations

from reports.document.facts import Doc
from reports.sections.safety.known import difference, verdict
from reports.text.clean import clean
from reports.text.language import Words
from reports.view import Cell, Column, Table, TableRow


def trained_table(shown: Doc, words: Words) -> Table | None:
    """Return the pairs of all tasks; None if there are none."""
    pairs = shown["pairs"]
    if not pairs:
        return None
    heads = ("task", "precision", "parity", "verdict", "trained_for")
    return Table(
        caption=words("table.tested"), columns=tuple(Column(head=words(f"column.{head}")) for head in heads),
        rows=tuple(TableRow(cells=_cells(pair, words)) for pair in pairs), folded=True, sortable=False,
    )  # fmt: skip


def _cells(pair: Doc, words: Words) -> tuple[Cell, ...]:
    runs = pair["pairs"] + pair["diverged"]
    known = pair["low"] is not None
    measured = pair | {
        "difference": {end: pair[end] for end in ("low", "mid", "high")} if known else None,
        "seeds": runs,
    }
    trained = (words.count("steps_of_training", pair["steps"]), words.count("pairs_of_runs", runs))
    key = "parity.name_emulated" if pair["emulated"] else "parity.name"
    return (
        Cell(text=words("parity.own_task") if pair["task"] == "own" else clean(pair["task"])),
        Cell(text=words(key, name=words.name("precision", pair["precision"]))),
        Cell(text=difference(measured, words)),
        Cell(text=verdict(measured, words)),
        Cell(text=words("list.comma").join(trained)),
    )

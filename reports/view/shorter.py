"""A page of many GPUs within its size limit: what is told of the GPUs other than the leading one, in less detail."""

from __future__ import annotations

from dataclasses import replace

from reports.view import Block, Prose, RangeChart, Section, Table, View


def shorter(view: View) -> View:
    """Return the view without the tables and sources of each GPU but the leading one, and with a note where they were.

    The chart and the table of the requested precision on every GPU stay. A view of one GPU is returned as it is.
    """
    leading = (view.data.get("whatif") or {}).get("gpu")
    evidence = view.data["document"].get("evidence") or ()
    dropped = {row["what"] for row in evidence}
    dropped -= {row["what"] for row in evidence if row.get("gpu") in (None, leading)}
    if leading is None or not any(section.id == "gpus" for section in view.sections):
        return view

    def shown(section: Section) -> Section:
        if section.id == "gpus":
            blocks = section.blocks[: 1 + isinstance(section.blocks[0], RangeChart)]
        elif section.id == "sources":
            blocks = tuple(kept for block in section.blocks if (kept := _without(block, dropped)) is not None)
        else:
            return section
        return replace(section, blocks=(*blocks, Prose(spans=view.words.spans("note.shorter"), tone="note")))

    return replace(view, sections=tuple(shown(section) for section in view.sections))


def _without(block: Block, dropped: set[str]) -> Block | None:
    """Return a table without the rows of some sources; None if no row is left."""
    if not isinstance(block, Table):
        return block
    rows = tuple(row for row in block.rows if row.cells[0].text not in dropped)
    return replace(block, rows=rows) if rows else None

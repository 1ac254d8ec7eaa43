"""The answer as plain text in aligned columns, readable at 80 columns and without colour."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from reports.text.language import Span, Words
from reports.text.width import columns_of, wrapped
from reports.view import Block, Cell, Column, Items, Pairs, Prose, Section, Table, TableRow, View

LEAST = 40
WIDEST = 160
SHOWN = (
    "views", "inputs", "gpus", "curve", "safety", "limits", "time", "memory", "money", "beside", "layout", "drivers",
    "calibration", "assumptions",
)  # fmt: skip
"""Sections of the whole answer that follow the first screen: the plan itself. The evidence behind it is on the page
and in `mpplan explain`."""
WITH_LEAD = ("safety", "time", "memory", "money", "layout", "drivers", "calibration")
"""Sections whose first paragraph adds to what the tables say."""
AS_ITEMS = ("safety", "drivers")
"""Sections with whole sentences in cells, which columns do not wrap."""
LEAST_NAME = 12
"""Minimum width of the first column, even if the widest other column then leaves too little room."""
FEW_HEAD_LINES = 2
"""Maximum number of header lines in a table that has room to widen its columns."""


def render(view: View, *, width: int | None = None, color: bool | None = None, brief: bool = False) -> str:
    """Return text of at most `width` columns, ending in a line break.

    Args:
        view: what to print.
        width: default: `COLUMNS`, else the terminal's width, else 80.
        color: default: only on a terminal without `NO_COLOR`.
        brief: whether to print the short answer, if the view has one.
    """
    pen = _Pen(_width(width), _color(color), view.words)
    hero = view.hero
    pen.paragraph(hero.headline)
    pen.paragraph(hero.budget)
    if hero.setting:
        pen.paragraph(hero.setting)
    if brief and view.brief:
        for block in view.brief:
            _block(pen, block)
        _trust(pen, view)
        return pen.text()
    _trust(pen, view)
    for alert in hero.alerts:
        pen.paragraph((Span(text=f"! {alert}"),))
    if hero.table is not None and not hero.tiles:  # with an answer, the first part already has this and more
        pen.table(hero.table)
    for section in view.sections:
        if section.id in SHOWN:
            _section(pen, section)
    return pen.text()


def _trust(pen: _Pen, view: View) -> None:
    pen.paragraph((Span(text=" · ".join(part.text for part in view.hero.trust)),), quiet=True)


def _section(pen: _Pen, section: Section) -> None:
    if section.id in WITH_LEAD:
        pen.paragraph(section.lead)
    for block in section.blocks:
        _block(pen, _as_items(block, pen.words) if section.id in AS_ITEMS and isinstance(block, Table) else block)


def _as_items(table: Table, words: Words) -> Items:
    """Convert a table to a list with one item per row, so that lines break between words."""
    texts = [[cell.plain for cell in row.cells if cell.text.strip("–")] for row in table.rows]
    apart = words("list.semicolon")
    lines = (Cell(text=words("list.told", name=row[0], text=apart.join(row[1:]))) for row in texts)
    notes = (Cell(text=note) for note in table.notes)
    return Items(items=(*lines, *notes), title=table.caption)


def _block(pen: _Pen, block: Block) -> None:
    """Append a block as text; charts are omitted, because a table has the same content."""
    if isinstance(block, Table):
        pen.table(block)
    elif isinstance(block, Items):
        pen.items(block)
    elif isinstance(block, Prose):
        pen.paragraph(block.spans, quiet=block.tone == "quiet")
    elif isinstance(block, Pairs):
        pen.items(
            Items(items=tuple(Cell(text=pen.words("list.told", name=term, text=text)) for term, text in block.pairs))
        )


def _width(width: int | None) -> int:
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    columns = width or (shutil.get_terminal_size((80, 24)).columns if known else 80)
    return max(LEAST, min(columns, WIDEST))


def _color(color: bool | None) -> bool:
    if color is not None:
        return color
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def pad(text: str, width: int, *, right: bool) -> str:
    """Pad text to a width."""
    space = " " * max(0, width - columns_of(text))
    return space + text if right else text + space


class _Pen:
    """Collects lines of a given width, with or without colour."""

    def __init__(self, width: int, color: bool, words: Words) -> None:
        self.words = words
        self._width = width
        self._color = color
        self._lines: list[str] = []

    def text(self) -> str:
        return "\n".join(self._lines).strip("\n") + "\n"

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._color and text.strip() else text

    def paragraph(self, spans: tuple[Span, ...], *, quiet: bool = False) -> None:
        """Add a paragraph; figures are bold if there is colour."""
        text = "".join(span.text for span in spans).strip()
        if not text:
            return
        for line in wrapped(text, self._width):
            shown = self._paint(line, "2") if quiet else line
            for span in spans:
                if span.strong and span.text in line:
                    shown = shown.replace(span.text, self._paint(span.text, "1"), 1)
            self._lines.append(shown)
        self._lines.append("")

    def items(self, block: Items) -> None:
        """Add a titled list; the second part of an item is in brackets."""
        if block.title:
            self._lines.append(self._paint(block.title, "1"))
        for item in block.items:
            text = f"{item.text} [{item.detail}]" if item.detail else item.text
            for number, line in enumerate(wrapped(text, self._width - 4)):
                self._lines.append(("  - " if number == 0 else "    ") + line)
        self._lines.append("")

    def table(self, table: Table) -> None:
        """Add a table; columns that do not fit continue in further blocks, each with the first column."""
        rows = [row for row in table.rows if len(row.cells) == len(table.columns)]
        short = [row for row in table.rows if len(row.cells) != len(table.columns)]
        widths = [
            max([_head_width(column), *(columns_of(row.cells[n].plain) for row in rows)])
            for n, column in enumerate(table.columns)
        ]
        widths[0] = min(widths[0], max(LEAST_NAME, self._width - 2 - max(widths[1:], default=0)))
        widths = _with_room_for_heads(table.columns, widths, self._width)
        self._lines += [self._paint(line, "1") for line in wrapped(table.caption, self._width)]
        for number, part in enumerate(_parts(widths, self._width)):
            if number:
                self._lines.append("")
            self._block(table, rows, part, widths)
        for row in short:
            self._reason([cell.plain for cell in row.cells])
        for note in table.notes:
            self._lines += wrapped(note, self._width)
        self._lines.append("")

    def _block(self, table: Table, rows: list[TableRow], part: list[int], widths: list[int]) -> None:
        heads = [_head_lines(table.columns[n], widths[n]) for n in part]
        tall = max(len(head) for head in heads)
        for level in range(tall):
            line = "  ".join(
                pad(([""] * (tall - len(head)) + head)[level], widths[n], right=table.columns[n].numeric)
                for n, head in zip(part, heads, strict=True)
            )
            self._lines.append(self._paint(line.rstrip(), "2"))
        for row in rows:
            name, *more = wrapped(row.cells[0].plain, widths[0])
            texts = [name, *(row.cells[n].plain for n in part[1:])]
            padded = (pad(text, widths[n], right=table.columns[n].numeric) for n, text in zip(part, texts, strict=True))
            for line in ("  ".join(padded), *more):
                self._lines.append(self._paint(line.rstrip(), "1") if row.strong else line.rstrip())

    def _reason(self, texts: list[str]) -> None:
        lines = wrapped(f"{texts[0]}  {': '.join(text for text in texts[1:] if text)}", self._width - 2)
        self._lines += [lines[0], *(f"  {line}" for line in lines[1:])]


def _head_lines(column: Column, width: int) -> list[str]:
    return wrapped(column.head, width)


def _head_width(column: Column) -> int:
    """Return the width of a header, which may wrap between words but not inside one."""
    return max(columns_of(word.strip()) for word in column.head.split(" ")) if column.head else 0


def _with_room_for_heads(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """Widen columns whose headers take many lines, as long as all columns still fit on a line."""
    wider = list(widths)
    for _ in range(width):
        tallest = max(range(len(columns)), key=lambda n: len(_head_lines(columns[n], wider[n])))
        if len(_head_lines(columns[tallest], wider[tallest])) <= FEW_HEAD_LINES:
            break
        wider[tallest] += 1
    return wider if sum(wider) + 2 * (len(wider) - 1) <= width else widths


def _parts(widths: list[int], width: int) -> list[list[int]]:
    """Return groups of columns that fit on a line, each starting with the first column."""
    groups: list[list[int]] = [[0]]
    for n in range(1, len(widths)):
        used = sum(widths[k] + 2 for k in groups[-1])
        if used + widths[n] > width and len(groups[-1]) > 1:
            groups.append([0])
        groups[-1].append(n)
    return groups

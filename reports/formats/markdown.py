"""The report as Markdown for a pull request or a wiki: tables without charts."""

from __future__ import annotations

import re

from reports.text.language import Span, Words
from reports.view import Block, Cell, Items, Pairs, Prose, Section, Table, View

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def escaped(text: str) -> str:
    """Escape text so that Markdown shows it literally, without emphasis, links, HTML, images or table cells."""
    return _SPECIAL.sub(r"\\\1", text).replace("&", "&amp;").replace("://", ":\u2060//")


def render(view: View) -> str:
    """Return GitHub-flavoured Markdown, ending in a line break."""
    hero = view.hero
    parts = [f"# {escaped(view.title)}", _spans(hero.headline), _spans(hero.budget), _spans(hero.setting)]
    parts.append(escaped(" · ".join(part.text for part in hero.trust)))
    parts += [f"> {escaped(alert)}" for alert in hero.alerts]
    if hero.table is not None:
        parts.append(_table(hero.table))
    parts += [_section(section, view.words) for section in view.sections]
    parts.append("---")
    parts += [escaped(line) for line in view.footer]
    return "\n\n".join(part for part in parts if part) + "\n"


def _spans(spans: tuple[Span, ...]) -> str:
    return "".join(f"**{escaped(span.text)}**" if span.strong else escaped(span.text) for span in spans).strip()


def _section(section: Section, words: Words) -> str:
    parts = [f"## {escaped(section.title)}", _spans(section.lead), *(_block(block, words) for block in section.blocks)]
    return "\n\n".join(part for part in parts if part)


def _block(block: Block, words: Words) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Items):
        title = f"**{escaped(block.title)}**\n\n" if block.title else ""
        return title + "\n".join(f"- {_item(item)}" for item in block.items)
    if isinstance(block, Pairs):
        return "\n".join(
            f"- {words('list.told', name=f'**{escaped(term)}**', text=escaped(text))}" for term, text in block.pairs
        )
    if isinstance(block, Prose):
        return _spans(block.spans)
    return ""


def _item(item: Cell) -> str:
    return f"{escaped(item.text)} ({_code(item.detail)})" if item.detail else escaped(item.text)


def _code(text: str) -> str:
    return f"`{text.replace('`', '')}`" if text else ""


def _cell(cell: Cell) -> str:
    if cell.tone == "code":
        return _code(cell.text).replace("|", "\\|")
    text = cell.plain.rstrip()
    label = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(label)) + escaped(label)


def _table(table: Table) -> str:
    heads = [escaped(column.head) for column in table.columns]
    lines = [f"**{escaped(table.caption)}**", "", f"| {' | '.join(heads)} |"]
    lines.append("|" + "|".join(" --: " if column.numeric else " --- " for column in table.columns) + "|")
    for row in table.rows:
        cells = [_cell(cell) for cell in row.cells]
        cells += [""] * (len(heads) - len(cells))
        shown = [f"**{cell}**" if row.strong and cell and n == 0 else cell for n, cell in enumerate(cells)]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join([*lines, *(f"\n{escaped(note)}" for note in table.notes)])

"""What a page holds for download, read as docs/report-schema.md says."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from typing import Any


def unpacked(page: str) -> list[Any]:
    """First keys of the document, its CSV or the columns of it, its other keys."""
    inside = re.search(r'id="packed"[^>]*>([^<]+)<', page)
    assert inside, "nothing is packed into it"
    held: list[Any] = read(inside[1])
    sources = sources_said(page)
    for source in (held[0] | held[2]).get("evidence") or ():
        for column, name in enumerate(("what", "source", "date")):
            if isinstance(source[name], int):
                source[name] = sources[source[name]][column]
    return held


def sources_said(page: str) -> list[list[str]]:
    """The rows of the page's tables of sources, as the texts of their cells."""
    section = re.search(r'<section id="sources".*?</section>', page, re.DOTALL)
    bodies = re.findall(r"<tbody>(.*?)</table>", section[0], re.DOTALL) if section else []
    rows = [row for body in bodies for row in re.split(r"<tr[^>]*>", body)[1:]]
    return [
        [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.split(r"<t[hd][^>]*>", row)[1:]] for row in rows
    ]


def read(text: str) -> Any:
    """The JSON in such a text."""
    names, shaped = json.loads(gzip.decompress(base64.a85decode(text.replace("v", "<"))))
    return opened(shaped, names)


def opened(value: Any, names: list[list[str]]) -> Any:
    """A value whose objects have their names again."""
    if not isinstance(value, list):
        return value
    inner = [opened(held, names) for held in value[1:]]
    return inner if value[0] < 0 else dict(zip(names[value[0]], inner, strict=True))

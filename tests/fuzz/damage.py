"""Damages documents and tables: a few places at a time, so that most of what a reader checks is reached."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

NASTY: tuple[Any, ...] = (
    None, True, 0, -1, 1e-300, 1e308, 10**400, -(10**30), float("nan"), float("inf"), "", " ", "x\ry", "x\ny",
    "\x1b]0;a\x07", "\ud800", "\u202e", "usd", "USD", "=1+1", "a|b", "2,5", '"', "'", "x" * 20_000, "y" * 140_000,
    [], {}, [[]], ["USD"], {"a": 1}, "{planted}", "http://127.0.0.1:9/x", "{base}", "nan", "1e400", "²",
    "3 Years", "2026-13-45", "9999-12-31", "0001-01-01", "Reservation",
)  # fmt: skip
"""Values for any place of a document."""
WORDS = tuple(
    value if isinstance(value, str) else str(value) for value in NASTY if not isinstance(value, list | dict | None)
)
"""Texts for any cell of a table."""


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from _places(part, (*path, key))


def damaged_json(document: Any, draw: random.Random) -> bytes:
    """A document with one to three places changed, dropped or repeated, perhaps cut or with a byte changed."""
    whole = {"": json.loads(json.dumps(document))}
    for _ in range(draw.randint(1, 3)):
        path = ("", *draw.choice(list(_places(whole[""]))))
        holder: Any = whole
        for key in path[:-1]:
            holder = holder[key]
        deed = draw.random()
        if deed < 0.2 and len(path) > 1:
            del holder[path[-1]]
        elif deed < 0.3 and isinstance(holder, list):
            holder.insert(path[-1], holder[path[-1]])
        else:
            holder[path[-1]] = draw.choice(NASTY)
    return damaged_bytes(json.dumps(whole[""]).encode("utf-8", "surrogatepass"), draw, 0.15)


def damaged_bytes(content: bytes, draw: random.Random, ratio: float = 1.0) -> bytes:
    """The content cut, doubled, or with bytes changed, in a share of the calls."""
    if draw.random() >= ratio or not content:
        return content
    at = draw.randrange(len(content))
    other = draw.choice(
        (b"", b"\0", b"\xff", b"\r", b"\n", b'"', b"[" * 50_000, b"9" * 5_000, b"e999999999", b"nan", b",")
    )
    return draw.choice((content[:at], content[:at] + other + content[at + 1 :], content[at:] + content, other))


def damaged_csv(text: str, draw: random.Random) -> bytes:
    """A table with one to three cells or names changed, quoted as they should be or not at all."""
    rows = [line.split(",") for line in text.splitlines()]
    for _ in range(draw.randint(1, 3)):
        row = draw.choice(rows)
        cell = draw.choice(WORDS)
        quoted = '"' + cell.replace('"', '""') + '"'
        row[draw.randrange(len(row))] = quoted if draw.random() < 0.7 else cell
    content = "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")
    return damaged_bytes(content, draw, 0.2)


def damaged_toml(text: str, draw: random.Random) -> bytes:
    """A file of settings with one or two values changed."""
    lines = text.splitlines()
    values = ("nan", "inf", "-1", "1e400", "0x" + "f" * 5000, "9" * 5000, "[" * 3000, "{a=" * 3000, '"x\\u0007"',
              "true", "[]", '"9e305TB"', "2026-13-01", "1979-05-27T07:32:00Z", '"' + "y" * 300 + '"', "0.0", "1e-30",
              "\x00")  # fmt: skip
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(len(lines))
        key, equals, _ = lines[at].partition("=")
        lines[at] = f"{key}{equals} {draw.choice(values)}" if equals else draw.choice(values)
    return damaged_bytes("\n".join(lines).encode(), draw, 0.2)

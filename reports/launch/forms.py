r"""Write settings as YAML, TOML or JSON. Every string is quoted, so that no name can be parsed as anything else.

A JSON string of printable characters is a YAML double-quoted scalar (YAML 1.2, section 1.3) and a TOML basic string
(TOML 1.0); an unprintable character is `\U` and its code point in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from reports.launch.framework import Settings

ABOUT_KEY = "_mpplan"
"""Key under which JSON, which has no comments, holds the lines that name the plan."""


def comment(lines: Iterable[str]) -> str:
    """Format lines as comments of YAML, TOML and shell."""
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def scalar(value: object) -> str:
    """Format a value for both YAML and TOML; unprintable characters are escaped by code point, as both allow."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(mark if mark.isprintable() else f"\\U{ord(mark):08x}" for mark in text)


def to_yaml(settings: Settings, about: Iterable[str]) -> str:
    """Return a YAML document that begins with a comment."""
    return f"{comment(about)}\n" + "".join(f"{line}\n" for line in _yaml(settings, ""))


def _yaml(settings: Mapping[str, object], indent: str) -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _yaml(value, f"{indent}  ")
        elif isinstance(value, str) and "\n" in value:
            yield f"{indent}{name}: |"
            yield from (f"{indent}  {line}".rstrip() for line in value.splitlines())
        elif isinstance(value, list | tuple):
            yield f"{indent}{name}:"
            yield from _items(value, f"{indent}  ")
        else:
            yield f"{indent}{name}: {scalar(value)}"


def _items(values: Iterable[object], indent: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping):
            first, *following = _yaml(value, f"{indent}  ")
            yield f"{indent}- {first.strip()}"
            yield from following
        else:
            yield f"{indent}- {scalar(value)}"


def to_toml(settings: Settings, about: Iterable[str]) -> str:
    """Return a TOML document that begins with a comment; `settings` are tables by dotted name."""
    tables = []
    for table, values in settings.items():
        if not isinstance(values, Mapping):
            raise TypeError(f"{table} is no table")
        tables.append("".join([f"[{table}]\n", *(f"{name} = {scalar(value)}\n" for name, value in values.items())]))
    return f"{comment(about)}\n" + "\n".join(tables)


def to_json(settings: Settings, about: Iterable[str]) -> str:
    """Return a JSON document whose first entry names the plan."""
    return json.dumps({ABOUT_KEY: [line for line in about if line], **settings}, indent=2, ensure_ascii=False) + "\n"

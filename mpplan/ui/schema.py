"""The JSON Schemas of mpplan's documents (draft 2020-12, `mpplan/schemas/`), and validation against them.

The validator supports only the keywords that these schemas use; a test compares its verdicts with the library
`jsonschema`. That library takes half a second for one answer, and half a minute for a thousand plans.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from planner.answer.document import place_of
from planner.errors import InputFileError, Message
from reports.text.clean import clean

Schema = Mapping[str, Any]

FOLDER = Path(__file__).parents[1] / "schemas"
LONGEST_SHOWN = 40
"""Maximum number of characters of a value that an error quotes."""

_EXPECTED = {
    "string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false",
    "array": "a list", "object": "an object", "null": "null",
}  # fmt: skip


def file_of(schema: str) -> Path:
    """Return the schema file of a kind of document, for example `estimate-2.json` for `mpplan.estimate/2`."""
    return FOLDER / f"{schema.removeprefix('mpplan.').replace('/', '-')}.json"


def check_schema(document: Any, schema: str, name: str) -> None:
    """Check a document against its schema, and fill in defaults of keys that were added to the schema later.

    Unknown keys are ignored, since a later version may have added them.

    Args:
        document: parsed; modified in place.
        schema: its kind, for example `mpplan.estimate/2`.
        name: name of the document in errors.

    Raises:
        InputFileError: a value is missing or wrong; the error names the first such key.
    """
    path: list[str | int] = []
    try:
        _check(document, _read(schema), path)
    except _SchemaError as error:
        raise InputFileError(
            f"{name}: {clean(place_of(path))}: {error}", hint=Message.of("hint.write_document_again")
        ) from None


def shown(value: Any) -> str:
    """Format a value for an error: text in quotes and cut, lists and objects by their kind."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list | dict):
        return "an empty list" if value == [] else _EXPECTED["array" if isinstance(value, list) else "object"]
    text = clean(value)
    cut = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
    return f'"{cut}"' if isinstance(value, str) else cut


class _SchemaError(Exception):
    """A value does not match the schema."""


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "array": (list,),
    "object": (dict,), "null": (type(None),),
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class _Rule:
    """One schema with its references resolved."""

    wanted: str = ""
    """The allowed types in words."""
    types: frozenset[type] | None = None
    """The allowed types; None: any."""
    allowed: tuple[Any, ...] | None = None
    """Values of `enum` or `const`; None: any."""
    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    known: dict[str, _Rule] = field(default_factory=dict)
    others: _Rule | None = None
    """Rule for keys that are not `known`; None: they are ignored."""
    required: tuple[str, ...] = ()
    defaults: dict[str, str] = field(default_factory=dict)
    """Defaults as JSON, by key."""
    items: _Rule | None = None
    fewest: int = 0
    nullable: bool = False

    def takes(self, value: Any) -> bool:
        """Return whether a scalar is valid; the contents of lists and objects are checked elsewhere."""
        if self.types is not None and type(value) not in self.types:
            return False
        if self.allowed is not None and value not in self.allowed:
            return False
        return not isinstance(value, int | float) or (self.least <= value <= self.most and value > self.above)


@cache
def _read(schema: str) -> _Rule:
    root = json.loads(file_of(schema).read_text(encoding="utf-8"))
    return _rule(root, {}, root.get("$defs", {}))


def _rule(schema: Schema, done: dict[str, _Rule], definitions: Schema) -> _Rule:
    """Return the rule of a schema; `done` caches definitions, because schemas may be recursive."""
    if "$ref" in schema:
        label = schema["$ref"].removeprefix("#/$defs/")
        if label not in done:
            done[label] = _Rule()
            _fill(done[label], definitions[label], done, definitions)
        return done[label]
    if "anyOf" in schema:  # always a schema or null
        return replace(_rule(schema["anyOf"][0], done, definitions), nullable=True)
    rule = _Rule()
    _fill(rule, schema, done, definitions)
    return rule


def _fill(rule: _Rule, schema: Schema, done: dict[str, _Rule], definitions: Schema) -> None:
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    rule.wanted = " or ".join(_EXPECTED[kind] for kind in kinds)
    rule.types = frozenset(kind for name in kinds for kind in _TYPES[name]) if kinds else None
    rule.allowed = (schema["const"],) if "const" in schema else tuple(schema["enum"]) if "enum" in schema else None
    rule.least, rule.most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    rule.above, rule.fewest = schema.get("exclusiveMinimum", -math.inf), schema.get("minItems", 0)
    rule.known = {name: _rule(inner, done, definitions) for name, inner in schema.get("properties", {}).items()}
    rule.defaults = {
        name: json.dumps(inner["default"]) for name, inner in schema.get("properties", {}).items() if "default" in inner
    }
    rule.required = tuple(schema.get("required", ()))
    others, items = schema.get("additionalProperties"), schema.get("items")
    rule.others = _rule(others, done, definitions) if isinstance(others, dict) else None
    rule.items = _rule(items, done, definitions) if items else None


def _check(value: Any, rule: _Rule, path: list[str | int]) -> None:
    """Check a value against a rule; raise `_SchemaError` with `path` left at the faulty place."""
    if value is None and rule.nullable:
        return
    if not rule.takes(value):
        raise _SchemaError(f"expected {_expected(value, rule)}, found {shown(value)}")
    if type(value) is dict:
        _check_object(value, rule, path)
    elif type(value) is list:
        if len(value) < rule.fewest:
            raise _SchemaError(f"expected at least {rule.fewest}, found {shown(value)}")
        if rule.items is not None:
            _check_each(enumerate(value), lambda _: rule.items, path)


def _check_object(value: dict[str, Any], rule: _Rule, path: list[str | int]) -> None:
    for name in rule.required:
        if name not in value:
            path.append(name)
            raise _SchemaError("missing")
    for name, default in rule.defaults.items():
        if name not in value:
            value[name] = json.loads(default)
    _check_each(value.items(), lambda name: rule.known.get(name, rule.others), path)


def _check_each(
    entries: Iterable[tuple[Any, Any]], rule_of: Callable[[Any], _Rule | None], path: list[str | int]
) -> None:
    for place, inner in entries:
        expected = rule_of(place)
        if expected is None or (type(inner) in _SCALARS and expected.takes(inner)):
            continue
        path.append(place)
        _check(inner, expected, path)
        path.pop()


_SCALARS = frozenset({str, int, float, bool})


def _expected(value: Any, rule: _Rule) -> str:
    """Describe what the rule expects in place of a value."""
    if rule.allowed is not None:
        return f"one of {', '.join(map(str, rule.allowed))}" if len(rule.allowed) > 1 else f"`{rule.allowed[0]}`"
    if rule.types is not None and type(value) not in rule.types:
        return rule.wanted
    bounds = ((rule.least, "at least"), (rule.above, "more than"), (rule.most, "at most"))
    return " and ".join(f"{words} {bound:g}" for bound, words in bounds if math.isfinite(bound))

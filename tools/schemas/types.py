"""JSON Schema of the planner's dataclasses: types, defaults, and the docstring under each field as its description."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from planner.answer.document import RENAMED, plain
from planner.answer.parity import BASES, MEASURED, PUBLISHED
from planner.errors import Message
from planner.used.kernels import PRODUCTS_OF

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
YES: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
AMOUNT: Schema = {"type": "number", "minimum": 0}
NUMBER: Schema = {"type": "number"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
MESSAGE: Schema = {"$ref": "#/$defs/message"}

MESSAGE_DEF: Schema = {
    "description": "A sentence as a key of reports/text/messages with its values; a value may itself be a message.",
    "type": "object",
    "properties": {"key": TEXT, "values": {"type": "object"}},
    "required": ["key", "values"],
    "additionalProperties": False,
}

SHARES = {
    "hfu", "memory_risk", "deadline", "budget", "confidence", "share_ratio", "exposed_ratio",
    "utilisation_ratio",
}  # fmt: skip
"""Fields that hold a share, 0..1."""
SIGNED = {
    "saved_usd", "saved_tco2e", "Saving.low", "Saving.mid", "Saving.high", "Saving.amount", "usd_per_nat",
    "MeasuredParity.difference", "PublishedParity.difference", "rate_gain_ratio", "power_gain_ratio",
    "PairShown.low", "PairShown.mid", "PairShown.high", "LayerShown.loss_change", "MixturePoint.loss_change",
    "MixturePoint.loss_range", "least_log2", "most_log2", "Magnitudes.least_exponent", "ScalePath.path",
}  # fmt: skip
"""Fields that may be negative."""


WORDS = {
    "Parity.basis": BASES, "CostPerNat.basis": (MEASURED, PUBLISHED), "ProductUse.where": PRODUCTS_OF,
}  # fmt: skip
"""Text fields with a fixed set of values, for each of which reports have a sentence."""
FROM_ONE = {"Layout.replicas", "Layout.tp", "Layout.pp", "Layout.cp", "Layout.dp"}
"""Counts that are at least one, because other numbers are divided by them."""


def record(properties: Mapping[str, Schema], *, optional: tuple[str, ...] = (), about: str = "") -> Schema:
    """Return an object with exactly these keys, all but the `optional` ones required."""
    return {
        **({"description": about} if about else {}),
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def array(items: Schema) -> Schema:
    """Return a list."""
    return {"type": "array", "items": items}


def table(values: Schema) -> Schema:
    """Return an object with any keys."""
    return {"type": "object", "additionalProperties": values}


def or_null(schema: Schema) -> Schema:
    """Return a schema that also allows null."""
    return {"anyOf": [schema, {"type": "null"}]}


class Definitions:
    """The `$defs` of one schema, filled as dataclasses are encountered."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {"message": MESSAGE_DEF}

    def of(self, kind: Any, name: str = "") -> Schema:
        """Return the schema of a type; `name` is the field of this type, with its class."""
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            (only,) = (part for part in inner if part is not type(None))
            return or_null(self.of(only, name))
        if origin is tuple:
            return array(self.of(inner[0], name))
        if inspect.isclass(origin) and issubclass(origin, Mapping):
            return table(self.of(inner[1], name))
        if is_dataclass(kind) and kind is not Message:
            return self.reference(kind, signed=name in SIGNED)
        return _of_scalar(kind, name)

    def reference(self, kind: Any, *, signed: bool = False) -> Schema:
        """Return a reference to the definition of a dataclass."""
        label = f"Signed{kind.__name__}" if signed else kind.__name__
        if label not in self.schemas:
            self.schemas[label] = {}  # inserted first, because a line of a bill contains lines
            self.schemas[label] = record_of(kind, self, signed=signed)
        return {"$ref": f"#/$defs/{label}"}


def record_of(kind: Any, definitions: Definitions, *, signed: bool = False) -> Schema:
    """Return the object that a dataclass becomes in a document; a worded field has its message beside it."""
    properties: dict[str, Schema] = {}
    hints, about = get_type_hints(kind), _field_docs(kind)
    for field in fields(kind):
        name = RENAMED.get(field.name, field.name)
        schema = definitions.of(
            hints[field.name], field.name if field.name in SIGNED else f"{kind.__name__}.{field.name}"
        )
        if signed and schema == AMOUNT:
            schema = NUMBER
        text = {"description": about[field.name]} if field.name in about else {}
        properties[name] = text | schema | _default(field)
        if field.type in ("Message", "Message | None"):
            properties[f"{name}_message"] = MESSAGE
    optional = {name for name in properties if name.endswith("_message") or "default" in properties[name]}
    return record(properties, optional=tuple(optional), about=inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0])


def _default(field: Field[Any]) -> Schema:
    if field.default is not MISSING:
        return {"default": plain(field.default)}
    if field.default_factory is not MISSING:
        return {"default": plain(field.default_factory())}
    return {}


def _of_scalar(kind: Any, name: str) -> Schema:
    field = name.rpartition(".")[2]
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if name in WORDS:
        return {"enum": list(WORDS[name])}
    if name in FROM_ONE:
        return COUNT | {"minimum": 1}
    signed = field in SIGNED or name in SIGNED
    if kind is int and signed:
        return {"type": "integer"}
    if kind is float:
        return SHARE if field in SHARES else NUMBER if signed else AMOUNT
    return {bool: YES, int: COUNT, str: TEXT, Message: TEXT, type(None): {"type": "null"}, object: {}}[kind]


@cache
def _field_docs(kind: type) -> dict[str, str]:
    """Return the docstring below each field of a class, on one line."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    docs = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            docs[field.target.id] = " ".join(str(ast.literal_eval(below.value)).split())
    return docs

"""Copy an answer without names, using only its public fields (`reports.document.public`).

Sentences are not searched for names: each is worded again from its message with only the public values.
"""

from __future__ import annotations

import re
from typing import Any

from reports.document.facts import Doc
from reports.document.public import (
    EMPTY,
    HIDDEN,
    LEFT_OUT,
    PARTS,
    PRICE_OF,
    PUBLIC_INPUTS,
    PUBLIC_VALUES,
    SOURCES,
    WORDS,
    WORDS_OF_TRAINING,
)
from reports.text.clean import clean
from reports.text.messages import SIBLING, as_fields, is_message, word

_DATE = re.compile(r"[0-9TZ:./+-]*")
_RECURSIVE = re.compile(r"\.children\b")


def without_names(document: Doc) -> Doc:
    """Return the public part of a cleaned document; the model loses its name but keeps its shape."""
    copy = _Copy(document)
    public: Doc = {name: copy.of(value, name) for name, value in document.items() if name in PARTS - LEFT_OUT}
    public["question"] = {
        name: copy.input(entry) for name, entry in document["question"].items() if _is_public_input(name)
    }
    public["model"] |= {"name": ""}
    public["evidence"] = [copy.source(row) for row in document["evidence"]]
    return _with_warnings(public, copy.sentences(document, "warnings"))


def _is_public_input(name: str) -> bool:
    """Return whether an input is kept: a public input, or the price of one of several GPUs."""
    return name in PUBLIC_INPUTS or name.startswith(PRICE_OF)


def _with_warnings(public: Doc, warnings: list[tuple[str, Any]]) -> Doc:
    """Return the document with those warnings that still contain information."""
    informative = [(text, message) for text, message in warnings if text.strip(f"{HIDDEN} ")]
    others = {name: value for name, value in public.items() if name != f"warnings{SIBLING}"}
    return others | as_fields("warnings", informative)


class _Copy:
    """Copies the public part of the values of one document."""

    def __init__(self, document: Doc) -> None:
        public = [row for row in document["evidence"] if row.get("public") is True]
        self._public_texts = frozenset(str(row["what"]) for row in public)
        self._ids = {str(row["id"]): str(row["id"]) for row in public}

    def of(self, value: Any, path: str) -> Any:
        """Return the public part of a field."""
        if isinstance(value, dict):
            return {name: inner for key, held in value.items() for name, inner in self._field(value, key, held, path)}
        if isinstance(value, list | tuple):
            return [self.of(inner, path) for inner in value]
        if isinstance(value, str):
            return value if _public_word(value, path) else None if path in EMPTY else HIDDEN
        return value

    def _field(self, owner: Doc, key: str, value: Any, path: str) -> list[tuple[str, Any]]:
        """Return a copied field of an object with its message, or nothing if the field is left out."""
        at = _RECURSIVE.sub("", f"{path.replace('same_deadline', 'plans')}.{key}")
        if at in LEFT_OUT or key.endswith(SIBLING):
            return []
        message: Any = owner.get(f"{key}{SIBLING}")
        if is_message(message):
            text, public = self._worded(message)
            return [(key, text), (f"{key}{SIBLING}", public)]
        if key in SOURCES:
            return [(key, self._id(value))]
        return [(key, self.of(value, at))]

    def input(self, entry: Doc) -> Doc:
        """Copy a public input of the question, whose value comes from a list or is a number or a date."""
        value = entry.get("value")
        copied: Doc = self.of({"note": None} | entry, "question")
        message = entry.get(f"value{SIBLING}")
        shown = copied["value"] if is_message(message) else value
        return copied | {"value": shown, "source": entry.get("source")}

    def source(self, row: Doc) -> Doc:
        """Copy a source: unchanged if it is public, else only its kind, date and use."""
        if row.get("public") is True:
            return row
        copied: Doc = self.of(row, "evidence")
        return copied | {"id": self._id(row["id"]), "public": False}

    def sentences(self, owner: Doc, field: str) -> list[tuple[str, Any]]:
        """Return the texts of a list with their messages; texts without a message are left out."""
        return [self._worded(message) for message in owner.get(f"{field}{SIBLING}") or () if is_message(message)]

    def _worded(self, message: Doc) -> tuple[str, Doc | None]:
        """Word a message with its public values in English; it is hidden if it cannot be worded."""
        public = self._message(message)
        try:
            return clean(word(public)), public
        except (KeyError, ValueError, TypeError):  # the document is newer, or a hidden text replaces a required number
            return HIDDEN, None

    def _message(self, message: Doc) -> Doc:
        return {"key": message["key"], "values": {k: self._value(k, v) for k, v in message["values"].items()}}

    def _value(self, name: str, value: Any) -> Any:
        if is_message(value):
            return self._message(value)
        if isinstance(value, list | tuple):
            return [self._value(name, inner) for inner in value]
        if not isinstance(value, str) or not value or name in PUBLIC_VALUES or value in self._public_texts:
            return value
        return HIDDEN

    def _id(self, given: Any) -> Any:
        """Return the id of a source; a source that is not public gets a number, the same each time."""
        if isinstance(given, list | tuple):
            return [self._id(inner) for inner in given]
        if not isinstance(given, str):
            return self.of(given, "")
        return self._ids.setdefault(given, f"source:{len(self._ids) + 1}")


def _public_word(value: str, path: str) -> bool:
    at = path.replace("same_deadline", "plans")
    if at not in WORDS or value not in WORDS_OF_TRAINING.get(at, (value,)):
        return False
    return not at.endswith(".date") or _DATE.fullmatch(value) is not None

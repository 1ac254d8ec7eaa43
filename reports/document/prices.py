"""Copy an answer without prices, using only fields unrelated to money (`reports.document.unpriced`).

Sentences are not searched for prices: each is kept or dropped by the key of its message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reports.document.facts import Doc
from reports.document.public import HIDDEN
from reports.document.unpriced import EMPTIED, FIELDS, FIGURES, INPUTS, MESSAGES, TEXTS, VALUES
from reports.text.language import words_for
from reports.text.messages import SIBLING, as_fields, is_message, with_messages


def without_prices(document: Doc) -> Doc:
    """Return the part of a cleaned document that is unrelated to money."""
    sources = [_source(row) for row in document["evidence"] if _figures(row)]
    copy = _Copy(str(row["what"]) for row in sources)
    views = {name: copy.rows(document.get(name), name) for name in ("plans", "same_deadline", "curve", "parity")}
    savings = [row for row in document["savings"] if row["metric"] in FIGURES]
    worded = {name: [row for row in document.get(name) or () if copy.is_told(row)] for name in WORDED}
    kept = {name: copy.of(value, name) for name, value in document.items() if name in FIELDS}
    return {
        **kept,
        **views,
        "savings": copy.rows(savings, "savings"),
        **{name: copy.rows(rows, name) for name, rows in worded.items()},
        "question": {name: copy.input(entry) for name, entry in document["question"].items() if name in INPUTS},
        "evidence": [copy.of(row, "evidence") for row in sources],
        **copy.warnings(document),
    }


WORDED = ("assumptions", "gaps")
"""Lists whose rows are sentences."""


def _figures(source: Doc) -> list[str]:
    """Return the figures other than money for which a source is used."""
    return [name for name in source["used_in"] if name.partition(".")[0] in FIGURES]


def _source(row: Doc) -> Doc:
    """Return a source with only those of its figures that are kept, and without the provider whose PUE it states."""
    kept = row | {"used_in": _figures(row)}
    if row["id"].startswith("pue:") and row["kind"] == "published" and not row.get("public"):
        return kept | {"id": "pue:provider", "what": str(row["what"]).partition(",")[0], "source": HIDDEN}
    return kept


class _Copy:
    """Copies the parts of one document that are unrelated to money."""

    def __init__(self, source_texts: Iterable[str]) -> None:
        self._source_texts = frozenset(source_texts)
        """Texts of the sources that are kept; a sentence may repeat them."""

    def rows(self, rows: Any, path: str) -> list[Any]:
        """Copy the rows of a list; none if the document has no such list."""
        return [self.of(row, path) for row in rows or ()]

    def of(self, value: Any, path: str) -> Any:
        """Return the part of a field that is kept."""
        if isinstance(value, dict):
            return {name: inner for key, held in value.items() for name, inner in self._field(value, key, held, path)}
        if isinstance(value, list | tuple):
            return [self.of(inner, path) for inner in value if path != UNCERTAINTY or _is_of_equations(inner["term"])]
        if isinstance(value, str):
            return value if path in TEXTS else HIDDEN
        return value

    def _field(self, owner: Doc, key: str, value: Any, path: str) -> list[tuple[str, Any]]:
        """Return a copied field of an object with its message, or nothing if the field is left out."""
        at = f"{path}.{key}".replace("same_deadline", "plans", 1)
        if at in EMPTIED:
            empty = EMPTIED[at]
            return [(key, list(empty) if isinstance(empty, tuple) else empty)]
        if key.endswith(SIBLING) or not _is_kept(at):
            return []
        message = owner.get(f"{key}{SIBLING}")
        if is_message(message):
            return [(key, value), (f"{key}{SIBLING}", message)] if self.is_free(message) else [(key, HIDDEN)]
        return [(key, self.of(value, at))]

    def input(self, entry: Doc) -> Doc:
        """Copy an input of the question: its value, and its note if the note is unrelated to money."""
        worded = {name: value for name, value in entry.items() if name.removesuffix(SIBLING) in ("value", "source")}
        note = entry.get(f"note{SIBLING}")
        if not self.is_free(note):
            return {**worded, "note": None}
        return {**worded, "note": entry.get("note"), f"note{SIBLING}": note}

    def is_told(self, row: Doc) -> bool:
        """Return whether every sentence of a row may be kept."""
        messages = [value for name, value in row.items() if name.endswith(SIBLING)]
        return bool(messages) and all(self.is_free(message) for message in messages)

    def warnings(self, document: Doc) -> Doc:
        """Return the warnings that may be kept, with their messages; warnings without a message are dropped."""
        warnings = with_messages(document, "warnings")
        return as_fields("warnings", [(text, message) for text, message in warnings if self.is_free(message)])

    def is_free(self, message: Any) -> bool:
        """Return whether a message exists whose own words and values are unrelated to money."""
        return (
            is_message(message)
            and message["key"] in MESSAGES
            and all(self._is_free_value(k, v) for k, v in message["values"].items())
        )

    def _is_free_value(self, name: str, value: Any) -> bool:
        if is_message(value):
            return self.is_free(value)
        if isinstance(value, list | tuple):
            return all(self._is_free_value(name, inner) for inner in value)
        return not isinstance(value, str) or not value or name in VALUES or value in self._source_texts


UNCERTAINTY = "plans.uncertainty"


def _is_of_equations(term: str) -> bool:
    """Return whether an uncertain input belongs to the equations; reports have names for these, and none is a price."""
    return words_for("en").has(f"driver.{term}")


def _is_kept(at: str) -> bool:
    """Return whether a field is one of `FIELDS`, lies inside one, or contains one."""
    steps = at.split(".")
    inside = any(".".join(steps[:count]) in FIELDS for count in range(1, len(steps) + 1))
    return inside or any(name.startswith(f"{at}.") for name in FIELDS)

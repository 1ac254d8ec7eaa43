"""Remove `prices` or `names` from a copy of the answer's document, before a report is made from it."""

from __future__ import annotations

from collections.abc import Iterable

from planner.errors import UsageError
from reports.document.facts import Doc
from reports.document.names import without_names
from reports.document.prices import without_prices

PARTS = ("prices", "names")
"""The parts that can be left out."""


def redacted(document: Doc, parts: Iterable[str]) -> Doc:
    """Return a copy of the document without the given parts.

    Raises:
        UsageError: a part is not one of `PARTS`.
    """
    chosen = tuple(dict.fromkeys(parts))
    for part in chosen:
        if part not in PARTS:
            raise UsageError(f"--redact: unknown `{part}`", hint=f"use one of {', '.join(PARTS)}")
    copy = dict(document)
    if "prices" in chosen:
        copy = without_prices(copy)
    if "names" in chosen:
        copy = without_names(copy)
    if chosen:
        copy["command"] = []
        copy["redacted"] = list(dict.fromkeys([*left_out(document), *chosen]))
    return copy


def left_out(document: Doc) -> list[str]:
    """Return the parts that were left out of an answer, according to its document."""
    return [part for part in document.get("redacted") or () if part in PARTS]

"""Exports for finance: one file each, listed here; each makes bytes from an estimate document.

To add one, write `pricing/exports/<name>.py` with `render(document) -> bytes` and add a row to `EXPORTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from planner.errors import UsageError
from pricing.near import listed, near_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One form of a bill."""

    name: str
    suffix: str
    what: str
    """One line for people."""

    def render(self, document: dict[str, Any]) -> bytes:
        """The bill of an `mpplan.estimate/1` document in this form.

        Raises:
            UsageError: the form needs a package that is not installed, or the document has no plan with a cost.
            InputFileError: the document's lines do not sum, or its figures do not fit each other.
        """
        render: Callable[[dict[str, Any]], bytes] = import_module(f"pricing.exports.{self.name}").render
        return render(document)


EXPORTS = (
    Export(name="cost_csv", suffix=".csv", what="every line of every plan, as CSV"),
    Export(name="cost_parquet", suffix=".parquet", what="the same as Parquet, amounts as decimals (needs pyarrow)"),
    Export(
        name="focus_csv", suffix=".csv", what="the asked plan shaped like FOCUS 1.2 billing data, marked as estimate"
    ),
)
"""All forms."""


def find_export(name: str) -> Export:
    """The form of a name.

    Raises:
        UsageError: there is none of that name.
    """
    for export in EXPORTS:
        if export.name == name:
            return export
    names = [export.name for export in EXPORTS]
    raise UsageError(f"unknown export `{name}`", hint=f"use one of {listed(near_names(name, names) or names)}")

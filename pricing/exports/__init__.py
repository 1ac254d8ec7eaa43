"""Exports for finance: one file each, listed here; each makes bytes from an estimate document.

To add one, write `pricing/exports/<module>.py` with `render(document) -> bytes` and add a row to `EXPORTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from planner.errors import UsageError
from planner.rows import near_names
from pricing.base.listing import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One form of a bill."""

    name: str
    """What the user types."""
    module: str
    """File in this folder."""
    suffix: str
    what: str
    """One line for people."""
    of_one_plan: bool = False
    """It holds one plan, which `precision`, `gpu` and `view` choose; else every plan."""
    is_binary: bool = False

    def render(self, document: dict[str, Any], **chosen: str | None) -> bytes:
        """The bill of an `mpplan.estimate/1` document in this form.

        Args:
            document: the answer.
            chosen: `precision`, `gpu` and `view` of the plan, where it holds one.

        Raises:
            UsageError: the form needs a package that is not installed, or the document has no such plan with a cost.
            InputFileError: the document's lines do not sum, or its figures do not fit each other.
        """
        render: Callable[..., bytes] = import_module(f"pricing.exports.{self.module}").render
        return render(document, **chosen)


EXPORTS = (
    Export(name="cost-csv", module="cost_csv", suffix=".csv", what="every line of every plan, as CSV"),
    Export(
        name="focus",
        module="focus_csv",
        suffix=".csv",
        what="the asked plan shaped like FOCUS 1.2 billing data, marked as estimate",
        of_one_plan=True,
    ),
    Export(
        name="parquet",
        module="cost_parquet",
        suffix=".parquet",
        what="every line of every plan as Parquet, amounts as decimals (needs pyarrow)",
        is_binary=True,
    ),
)
"""All forms; the first is the default."""


def find_export(name: str) -> Export:
    """The form of a name.

    Raises:
        UsageError: there is none of that name.
    """
    plain = name.strip().lower().replace("_", "-")
    for export in EXPORTS:
        if plain in (export.name, export.module.replace("_", "-")):
            return export
    names = [export.name for export in EXPORTS]
    raise UsageError(f"--format: unknown `{name}`", hint=f"use one of {listed(near_names(name, names) or names)}")


def export_for(path: str | None) -> Export:
    """The form that a file's name ends in, else the first."""
    ending = "" if path is None else path.lower()
    return next((one for one in reversed(EXPORTS) if one.is_binary and ending.endswith(one.suffix)), EXPORTS[0])

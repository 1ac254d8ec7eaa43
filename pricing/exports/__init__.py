"""Exports for finance: each format is one module here that converts an estimate document to bytes.

To add a format, write `pricing/exports/<module>.py` with `render(document) -> bytes` and add a row to `EXPORTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import PurePath
from typing import Any

from planner.errors import UsageError
from planner.lazy import dataclass
from planner.rows import near_names
from pricing.base.listing import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One format of a bill."""

    name: str
    """Name that the user types."""
    module: str
    """File in this folder."""
    suffix: str
    """File name extension, including the point."""
    what: str
    """Description in one line."""
    of_one_plan: bool = False
    """Whether it holds one plan, chosen by `precision`, `gpu` and `view`, rather than every plan."""
    is_binary: bool = False
    """Whether it can only be written to a file."""

    def render(self, document: dict[str, Any], **chosen: str | None) -> bytes:
        """Return the bill of an `mpplan.estimate/2` document in this format.

        Args:
            document: the answer.
            chosen: `precision`, `gpu` and `view` of the plan, for a format of one plan.

        Raises:
            UsageError: the format needs a package that is not installed, or the document has no such plan with a cost.
            InputFileError: the document's lines do not sum to its total, or its figures are inconsistent.
        """
        render: Callable[..., bytes] = import_module(f"pricing.exports.{self.module}").render
        return render(document, **chosen)


EXPORTS = (
    Export(name="cost-csv", module="cost_csv", suffix=".csv", what="every line of every plan, as CSV"),
    Export(
        name="focus",
        module="focus_csv",
        suffix=".csv",
        what="one plan in the shape of FOCUS 1.2 billing data, marked as an estimate",
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
"""All formats; the first is the default."""


def find_export(name: str) -> Export:
    """Return the format of a name, regardless of case.

    Raises:
        UsageError: there is no format of that name.
    """
    plain = name.strip().lower().replace("_", "-")
    for export in EXPORTS:
        if plain in (export.name, export.module.replace("_", "-")):
            return export
    names = [export.name for export in EXPORTS]
    raise UsageError(f"--format: unknown `{name}`", hint=f"use one of {listed(near_names(name, names) or names)}")


def export_for(path: str | None) -> Export:
    """Return the format for the ending of a file's name; the default format without an ending or without a file.

    Raises:
        UsageError: no format has this ending, so that the content would not be what the name says.
    """
    ending = PurePath(path or "").suffix.lower()
    if not ending:
        return EXPORTS[0]
    for form in EXPORTS:
        if form.suffix == ending:
            return form
    endings = " or ".join(dict.fromkeys(form.suffix for form in EXPORTS))
    names = ", ".join(form.name for form in EXPORTS)
    raise UsageError(
        f"--output: a bill cannot be written as `{ending}`",
        hint=f"end the name in {endings}, or give --format, one of {names}",
    )

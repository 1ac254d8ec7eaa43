"""The plans as a table for spreadsheets.

There is one row per view, GPU and precision, one per point of the curve, and one per precision that a GPU does not
support. A column is a path into a row of the document (`duration_days.low`); its header is the path with underscores.
The page holds only the paths: its script (`table` in `templates/arithmetic.js`) looks them up in the document that
the page also holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from planner.csv_table import csv_table
from reports.view import View

_PLAIN = ("view", "precision", "policy", "gpu", "gpus", "fits", "why_not")
_LAYOUT = ("tp", "pp", "vp", "cp", "ep", "dp", "zero", "micro_batch", "grad_accum", "act_ckpt")
_RANGES = ("duration_days", "gpu_hours", "cost_usd", "energy_mwh", "carbon_tco2e", "tokens_per_s_per_gpu",
           "samples_per_s_per_gpu",            "tflops_per_gpu", "mfu", "goodput_ratio", "gpu_power_w")  # fmt: skip
_ENDS = ("low", "mid", "high", "at_least")
_ITEMS = ("step_s", "memory_gib")
_CHANCES = ("memory_risk", "probability.deadline", "probability.budget")
_FACILITY = (*(f"mean_power_mw.{end}" for end in _ENDS), "peak_power_mw")
_ENERGY = tuple(f"energy_items_mwh.{name}" for name in ("gpu", "host", "network", "pue_overhead"))
_CARBON = (
    "carbon_market_tco2e",
    *(f"{name}.{end}" for name in ("embodied_tco2e", "carbon_with_embodied_tco2e", "sci_kg_per_run") for end in _ENDS),
)
_CURVE = ("global_batch", "chosen", "knee", "in_time", "in_budget")


def render(view: View) -> str:
    """Return CSV with CRLF line ends (RFC 4180); text that looks like a formula is prefixed with a quotation mark."""
    held = view.data.get("csv")
    return held if isinstance(held, str) else table_of(view.data["document"])


def table_of(document: dict[str, Any]) -> str:
    """Return the CSV of a checked document."""
    paths = paths_of(document)
    rows = ([_at(row, path) for path in paths] for row in _rows(document))
    return csv_table([head_of(path) for path in paths], rows, number=_number)


def paths_of(document: dict[str, Any]) -> list[str]:
    """Return the columns of a checked document, as paths into its rows."""
    plans = [*document["plans"], *document["same_deadline"]]
    paths = [*_PLAIN, *(f"layout.{axis}" for axis in _LAYOUT)]
    paths += [f"{name}.{end}" for name in _RANGES for end in _ENDS]
    paths += dict.fromkeys(f"{name}.{leaf}" for name in _ITEMS for plan in plans for leaf in _leaves(plan[name] or {}))
    paths += _FACILITY
    paths += [path for path in (*_ENERGY, *_CARBON, *_CHANCES) if any(_at(plan, path) is not None for plan in plans)]
    return paths + (list(_CURVE) if document.get("curve") else [])


def head_of(path: str) -> str:
    """Return the header of a column."""
    return path.removeprefix("layout.").replace(".", "_")


def _rows(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for view, key in (("same_gpus", "plans"), ("same_deadline", "same_deadline")):
        yield from ({"view": view} | plan for plan in document[key])
    asked = document["question"].get("precision", {}).get("value")
    yield from ({"view": "curve", "precision": asked} | point for point in document.get("curve") or ())
    for entry in document.get("unsupported") or ():
        yield {"view": "", "fits": False, "why_not": entry["reason"]} | entry


def _leaves(items: dict[str, Any]) -> Iterator[str]:
    for name, value in items.items():
        yield from (f"{name}.{leaf}" for leaf in _leaves(value)) if isinstance(value, dict) else (name,)


def _at(row: dict[str, Any], path: str) -> Any:
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


_EXPONENT_BELOW = 1e-6


def _number(value: Any) -> Any:
    """Format a number as ECMAScript does (ECMA-262, Number::toString), since the page's script writes the same file."""
    if not isinstance(value, float):
        return value
    if 0 < abs(value) < _EXPONENT_BELOW:
        return repr(value).replace("e-0", "e-")
    return f"{Decimal(repr(value)):f}".removesuffix(".0")

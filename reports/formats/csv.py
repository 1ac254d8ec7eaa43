"""The plans as a table for spreadsheets: one row per view, GPU and precision; units in the column heads."""

from __future__ import annotations

import csv
import io
from typing import Any

from reports.view import View

_RANGES = ("duration_days", "gpu_hours", "cost_usd", "energy_mwh", "carbon_tco2e", "tokens_per_s_per_gpu",
           "tflops_per_gpu", "mfu", "goodput_ratio", "gpu_power_w")  # fmt: skip
_LAYOUT = ("tp", "pp", "vp", "cp", "ep", "dp", "zero", "micro_batch", "grad_accum", "act_ckpt")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters that a spreadsheet takes for the start of a formula (OWASP, CSV injection)."""


def render(view: View) -> str:
    """CSV with CRLF line ends (RFC 4180); a text that looks like a formula is prefixed with a quote mark."""
    held = view.data.get("csv")
    return held if isinstance(held, str) else table_of(view.data["document"])


def table_of(document: dict[str, Any]) -> str:
    """The CSV of a checked document."""
    rows = [
        _row(name, plan)
        for name, key in (("same_gpus", "plans"), ("same_deadline", "same_deadline"))
        for plan in document[key]
    ]
    rows += [
        {
            "view": "",
            "precision": entry["precision"],
            "gpu": entry.get("gpu"),
            "fits": False,
            "why_not": entry["reason"],
        }
        for entry in document.get("unsupported") or ()
    ]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([_safe(row.get(name)) for name in columns] for row in rows)
    return out.getvalue()


def _row(view: str, plan: dict[str, Any]) -> dict[str, Any]:
    row = {"view": view} | {name: plan.get(name) for name in ("precision", "policy", "gpu", "gpus", "fits", "why_not")}
    row |= {name: (plan["layout"] or {}).get(name) for name in _LAYOUT}
    for name in _RANGES:
        estimate = plan.get(name) or {}
        row |= {f"{name}_{end}": estimate.get(end) for end in ("low", "mid", "high", "at_least")}
    row |= {f"step_s_{name}": size for name, size in (plan["step_s"] or {}).items()}
    memory = plan["memory_gib"] or {}
    row |= {f"memory_gib_{name}": size for name, size in memory.items() if name != "total"}
    row |= {f"memory_gib_total_{end}": size for end, size in (memory.get("total") or {}).items() if end != "at_least"}
    return row


def _safe(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

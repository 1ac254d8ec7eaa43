"""Every line of every plan as CSV: amounts in whole cents that sum at every level."""

from __future__ import annotations

from typing import Any

from planner.csv_table import csv_table
from pricing.exports.audit import require_sound
from pricing.exports.bill_table import BilledPlan, BillRow, billed_plans, plain_decimal

COLUMNS = (
    "view",
    "precision",
    "policy",
    "gpu",
    "gpus",
    "line",
    "parent",
    "label",
    "quantity",
    "unit",
    "unit_price_usd_low",
    "unit_price_usd_mid",
    "unit_price_usd_high",
    "currency",
    "usd_low",
    "usd_mid",
    "usd_high",
    "at_least",
    "is_leaf",
    "energy_kwh_low",
    "energy_kwh_mid",
    "energy_kwh_high",
    "carbon_kg_low",
    "carbon_kg_mid",
    "carbon_kg_high",
    "carbon_market_kg",
    "embodied_kg_low",
    "embodied_kg_mid",
    "embodied_kg_high",
    "sci_kg_low",
    "sci_kg_mid",
    "sci_kg_high",
    "mean_power_mw",
    "peak_power_mw",
    "evidence",
)
"""Columns of the CSV. Energy, power and carbon (location-based, unless the name says otherwise) are only on the row
of the total, so that each column can be summed."""


def render(document: dict[str, Any]) -> bytes:
    """Return the CSV in UTF-8.

    Raises:
        InputFileError: the document's figures are inconsistent.
    """
    require_sound(document)
    rows = [cells(plan, row) for plan in billed_plans(document) for row in plan.rows]
    table = csv_table(COLUMNS, [[row[c] for c in COLUMNS] for row in rows], number=plain_decimal)
    return table.encode("utf-8")


def cells(plan: BilledPlan, row: BillRow) -> dict[str, Any]:
    """Return one row by column; None where a column does not apply."""
    at_root = row.parent is None
    return {
        "view": row.view,
        "precision": row.precision,
        "policy": row.policy,
        "gpu": row.gpu,
        "gpus": row.gpus,
        "line": row.line,
        "parent": row.parent,
        "label": row.label,
        "quantity": row.quantity,
        "unit": row.unit,
        **_ends("unit_price_usd", row.unit_price_usd),
        "currency": "USD",
        "usd_low": row.usd_low,
        "usd_mid": row.usd_mid,
        "usd_high": row.usd_high,
        "at_least": row.at_least,
        "is_leaf": row.is_leaf,
        **_ends("energy_kwh", plan.energy_kwh if at_root else None),
        **_ends("carbon_kg", plan.carbon_kg if at_root else None),
        "carbon_market_kg": plan.carbon_market_kg if at_root else None,
        **_ends("embodied_kg", plan.embodied_kg if at_root else None),
        **_ends("sci_kg", plan.sci_kg if at_root else None),
        "mean_power_mw": plan.mean_power_mw if at_root else None,
        "peak_power_mw": plan.peak_power_mw if at_root else None,
        "evidence": " ".join(row.evidence_ids),
    }


def _ends(name: str, values: tuple[float, float, float] | None) -> dict[str, float | None]:
    low, mid, high = values or (None, None, None)
    return {f"{name}_low": low, f"{name}_mid": mid, f"{name}_high": high}

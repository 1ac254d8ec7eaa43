"""Every line of every plan as CSV: amounts in whole cents that sum at every level."""

from __future__ import annotations

import csv
import io
from typing import Any

from pricing.audit import require_sound
from pricing.bill_table import BilledPlan, BillRow, billed_plans

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
    "evidence",
)
"""Energy and carbon (location-based) stand on the total's row only, so that a column can be summed."""


def render(document: dict[str, Any]) -> bytes:
    """The CSV, UTF-8.

    Raises:
        InputFileError: the document's figures do not fit each other.
    """
    require_sound(document)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for plan in billed_plans(document):
        for row in plan.rows:
            writer.writerow(cells(plan, row))
    return buffer.getvalue().encode("utf-8")


def cells(plan: BilledPlan, row: BillRow) -> dict[str, Any]:
    """One row by column; None where a column does not apply."""
    at_root = row.parent is None
    energy = plan.energy_kwh if at_root else (None, None, None)
    carbon = plan.carbon_kg if at_root else (None, None, None)
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
        "currency": "USD",
        "usd_low": row.usd_low,
        "usd_mid": row.usd_mid,
        "usd_high": row.usd_high,
        "at_least": row.at_least,
        "is_leaf": row.is_leaf,
        "energy_kwh_low": energy[0],
        "energy_kwh_mid": energy[1],
        "energy_kwh_high": energy[2],
        "carbon_kg_low": carbon[0],
        "carbon_kg_mid": carbon[1],
        "carbon_kg_high": carbon[2],
        "evidence": " ".join(row.evidence_ids),
    }

"""A bill in the shape of FinOps FOCUS 1.2 billing data, for tools that read it; each row is marked as an estimate.

FOCUS (FinOps Open Cost and Usage Specification 1.2, CC BY 4.0) describes actual charges and has no columns for ranges,
energy or carbon; these are in `x_` columns, as the specification asks for custom ones. No conformance is claimed.
`BilledCost` is 0, since nothing is billed; the mid of the estimate is the effective cost.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from planner.costs.rounding import LUMP_SUM
from planner.csv_table import csv_table
from planner.errors import InputFileError, Message, UsageError
from pricing.exports.audit import require_sound
from pricing.exports.bill_table import BilledPlan, BillRow, one_plan, plain_decimal

MANDATORY = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
)
CONDITIONAL = (
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedUnitPrice",
    "ListUnitPrice",
    "PricingCategory",
    "RegionId",
    "SkuId",
    "Tags",
)
CUSTOM = (
    "x_IsEstimate",
    "x_CostLow",
    "x_CostHigh",
    "x_CostAtLeast",
    "x_EnergyKwh",
    "x_CarbonKg",
    "x_CarbonMethod",
    "x_CarbonMarketKg",
    "x_EmbodiedKg",
    "x_Precision",
    "x_GpuCount",
)
COLUMNS = MANDATORY + CONDITIONAL + CUSTOM

_SERVICE = {
    "storage": "Storage",
    "storage_run": "Storage",
    "storage_after": "Storage",
    "network": "Networking",
    "egress": "Networking",
    "cpu_hosts": "Compute",
    "electricity": "Other",
}
_UNITS = {"GPU-hour": "GPU-hours", LUMP_SUM: "Units"}
"""Units that have another name in FOCUS."""
_PRICING = {"on-demand": "Standard", "spot": "Dynamic", "1y": "Committed", "3y": "Committed"}
"""Pricing category by commitment; owned machines are `Other`."""


def render(
    document: dict[str, Any], precision: str | None = None, gpu: str | None = None, view: str = "plans"
) -> bytes:
    """Return one plan's lines without children, one row each; energy and carbon are on the first row, to allow summing.

    Raises:
        UsageError: the document has no such plan with a cost, or it runs for thousands of years.
        InputFileError: its figures are inconsistent, or it does not state when it was made.
    """
    require_sound(document)
    plan = one_plan(document, precision, view, gpu)
    rows = [_cells(document, plan, row, first=index == 0) for index, row in enumerate(plan.leaves)]
    table = csv_table(COLUMNS, [[row[c] for c in COLUMNS] for row in rows], line_end="\n", number=plain_decimal)
    return table.encode("utf-8")


def _given(document: dict[str, Any], name: str) -> str:
    value = document.get("question", {}).get(name, {}).get("value")
    return "" if value is None else str(value)


def _terms(document: dict[str, Any], gpu: str) -> tuple[str, str, str]:
    """Return provider, commitment and region of the price: those used for this GPU, else those of the question."""
    prices = (document.get("money") or {}).get("prices") or ()
    used: dict[str, Any] = next((price for price in prices if price["gpu"] == gpu), {})
    commitment = used.get("commitment") or _given(document, "commitment") or "on-demand"
    provider = "own machines" if commitment == "owned" else used.get("provider") or _given(document, "provider")
    return provider or "estimate", commitment, used.get("region") or _given(document, "region")


def _created_at(document: dict[str, Any]) -> str:
    """Return when the answer was made, which is when the charges begin.

    Raises:
        InputFileError: the document does not state it.
    """
    if not document.get("created_at"):
        raise InputFileError(
            "created_at: missing, but the charges are dated from it", hint=Message.of("hint.write_document_again")
        )
    return str(document["created_at"])


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _cells(document: dict[str, Any], plan: BilledPlan, row: BillRow, *, first: bool) -> dict[str, Any]:
    start = datetime.fromisoformat(_created_at(document).replace("Z", "+00:00"))
    start = start.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        end = start + timedelta(days=plan.days_mid)
    except OverflowError:
        what = f"a run of {plan.days_mid:,.0f} days ends after the last date that FOCUS can hold"
        raise UsageError(what, hint="use `--format cost-csv`, which has no dates") from None
    provider, commitment, region = _terms(document, row.gpu)
    once = row.line == "setup_fee"
    alone = row.usd_mid if row.quantity is None else ""  # answers of earlier versions: one unit at the amount
    price = alone if row.unit_price_usd is None else row.unit_price_usd[1]
    units = _UNITS.get(row.unit or "", row.unit or _UNITS[LUMP_SUM])
    consumed = not once and row.quantity is not None and row.unit != LUMP_SUM
    zero = Decimal("0.00")
    return {
        "BilledCost": zero,
        "BillingAccountId": "estimate",
        "BillingAccountName": "mpplan estimate, not a bill",
        "BillingCurrency": "USD",
        "BillingPeriodStart": _time(start),
        "BillingPeriodEnd": _time(end),
        "ChargeCategory": "Purchase" if once else "Usage",
        "ChargeClass": "",
        "ChargeDescription": f"ESTIMATE: {row.label}",
        "ChargePeriodStart": _time(start),
        "ChargePeriodEnd": _time(end),
        "ContractedCost": row.usd_mid,
        "EffectiveCost": row.usd_mid,
        "ListCost": row.usd_mid,
        "InvoiceIssuerName": provider,
        "ProviderName": provider,
        "PublisherName": provider,
        "PricingQuantity": row.quantity if row.quantity is not None else 1,
        "PricingUnit": units,
        "ServiceCategory": _SERVICE.get(row.line, "AI and Machine Learning"),
        "ServiceName": "Model training",
        "ConsumedQuantity": row.quantity if consumed else "",
        "ConsumedUnit": units if consumed else "",
        "ContractedUnitPrice": price,
        "ListUnitPrice": price,
        "PricingCategory": _PRICING.get(commitment, "Other"),
        "RegionId": region,
        "SkuId": row.gpu,
        "Tags": '{"mpplan": "estimate"}',
        "x_IsEstimate": "true",
        "x_CostLow": row.usd_low,
        "x_CostHigh": row.usd_high,
        "x_CostAtLeast": "true" if row.at_least else "false",
        "x_EnergyKwh": plan.energy_kwh[1] if first else 0,
        "x_CarbonKg": plan.carbon_kg[1] if first else 0,
        "x_CarbonMethod": "location-based",
        "x_CarbonMarketKg": "" if plan.carbon_market_kg is None else plan.carbon_market_kg if first else 0,
        "x_EmbodiedKg": "" if plan.embodied_kg is None else plan.embodied_kg[1] if first else 0,
        "x_Precision": row.precision,
        "x_GpuCount": row.gpus,
    }

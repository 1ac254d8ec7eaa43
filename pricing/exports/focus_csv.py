"""A bill in the shape of FinOps FOCUS 1.2 billing data, for tools that read it; each row is marked as an estimate.

FOCUS (FinOps Open Cost and Usage Specification 1.2, CC BY 4.0) describes actual charges and has no columns for ranges,
energy or carbon; these are in `x_` columns, as the specification asks for custom ones. No conformance is claimed.

`BilledCost` is 0, since nothing is billed; the mid of the estimate is the effective cost. List and contracted cost
exclude the discount of a commitment: they are the quantity times the on-demand price, where that is known, so that
their difference from the effective cost is the saving. The unused part of a minimum term is a charge of its own that
consumes nothing. Every row is in the same billing period, from the start of the run to the end of the last charge.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from planner.costs.rounding import LUMP_SUM, product_usd
from planner.csv_table import csv_table
from planner.errors import InputFileError, Message, UsageError
from planner.lazy import dataclass
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
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
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
    "x_Gpu",
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
_UNITS = {"GPU-hour": "GPU-Hours", "host-hour": "Host-Hours", "GB-month": "GB-Months", LUMP_SUM: "Units"}
"""Units that have another name in FOCUS, which capitalises them and counts in plurals."""
_PRICING = {"on-demand": "Standard", "spot": "Dynamic", "1y": "Committed", "3y": "Committed"}
"""Pricing category of the GPUs by commitment; owned machines are `Other`, and all other lines `Standard`."""
_UNUSED = "minimum_term"
"""Line of a minimum that the run does not use."""
_AT_GPU_PRICE = ("gpu_rental", _UNUSED, "failed_work", "experiments")
"""Lines of GPU-hours at the price of the run's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """How the plan's GPUs are bought."""

    provider: str
    commitment: str
    region: str
    list_usd_per_gpu_h: float | None
    """The on-demand price of an hour; None where it is not known, or is the price itself."""
    minimum_days: float
    """Minimum term of an offer; 0 without one."""
    has_minimum: bool
    """Whether an offer has a minimum term or a minimum number of GPUs."""

    @property
    def discount(self) -> str | None:
        """The commitment that the hours are bought under; None where they are not."""
        if self.commitment in ("1y", "3y"):
            return self.commitment
        return "minimum" if self.has_minimum else None


def render(
    document: dict[str, Any], precision: str | None = None, gpu: str | None = None, view: str = "plans"
) -> bytes:
    """Return one plan's lines without children, one row each.

    Energy and carbon of the run are on the row of its electricity, else on the first row, and on no other.

    Raises:
        UsageError: the document has no such plan with a cost, or it runs for thousands of years.
        InputFileError: its figures are inconsistent, or it does not state when it was made.
    """
    require_sound(document)
    plan = one_plan(document, precision, view, gpu)
    terms = _terms(document, plan.total.gpu)
    periods = _periods(document, plan, terms)
    billed = (min(start for start, _ in periods), max(end for _, end in periods))
    metered = next((n for n, row in enumerate(plan.leaves) if row.line == "electricity"), 0)
    rows = [
        _who_and_when(terms, row, billed, period)
        | _how_much(terms, row)
        | _beside(plan, row, metered=number == metered)
        for number, (row, period) in enumerate(zip(plan.leaves, periods, strict=True))
    ]
    table = csv_table(COLUMNS, [[row[c] for c in COLUMNS] for row in rows], number=plain_decimal)
    return table.encode("utf-8")


def _given(document: dict[str, Any], name: str) -> str:
    value = document.get("question", {}).get(name, {}).get("value")
    return "" if value is None else str(value)


def _terms(document: dict[str, Any], gpu: str) -> _Terms:
    """Return the terms that the price of this GPU was found with, else those of the question."""
    money = document.get("money") or {}
    used, offer = (_of_gpu(money.get(name), gpu) for name in ("prices", "quotes"))
    commitment = used.get("commitment") or _given(document, "commitment") or "on-demand"
    provider = "own machines" if commitment == "owned" else used.get("provider") or _given(document, "provider")
    minimum_days = float(offer.get("minimum_term_days") or 0.0)
    return _Terms(
        provider=provider or "estimate",
        commitment=commitment,
        region=used.get("region") or _given(document, "region"),
        list_usd_per_gpu_h=used.get("list_usd_per_gpu_h"),
        minimum_days=minimum_days,
        has_minimum=minimum_days > 0 or int(offer.get("minimum_gpus") or 1) > 1,
    )


def _of_gpu(rows: list[dict[str, Any]] | None, gpu: str) -> dict[str, Any]:
    return next((row for row in rows or () if row["gpu"] == gpu), {})


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


_Period = tuple[datetime, datetime]


def _periods(document: dict[str, Any], plan: BilledPlan, terms: _Terms) -> list[_Period]:
    """Return when each charge begins and ends: with the run, but for fees, minimums and what is kept after it.

    Raises:
        UsageError: one ends after the last day of the calendar.
    """
    start = datetime.fromisoformat(_created_at(document).replace("Z", "+00:00"))
    start = start.replace(hour=0, minute=0, second=0, microsecond=0)
    kept = {row.line: row.quantity or 0.0 for row in plan.leaves if row.line in ("storage_run", "storage_after")}
    try:
        end = start + timedelta(days=plan.days_mid)
        by_line = {"setup_fee": (start, start + timedelta(days=1))}
        by_line[_UNUSED] = (start, max(end, start + timedelta(days=terms.minimum_days)))
        if kept.get("storage_run"):  # the same amount of data, so the months are as their quantities
            days_after = plan.days_mid * kept.get("storage_after", 0.0) / kept["storage_run"]
            by_line["storage_after"] = (end, end + timedelta(days=days_after))
    except OverflowError:
        what = f"a run of {plan.days_mid:,.0f} days ends after the last date that FOCUS can hold"
        raise UsageError(what, hint="use `--format cost-csv`, which has no dates") from None
    return [by_line.get(row.line, (start, end)) for row in plan.leaves]


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _who_and_when(terms: _Terms, row: BillRow, billed: _Period, period: _Period) -> dict[str, Any]:
    """Return the cells of a row that are neither an amount nor a price."""
    gpu_hours = row.line in _AT_GPU_PRICE
    discount = terms.discount if gpu_hours else None
    pricing = "Committed" if discount else _PRICING.get(terms.commitment, "Other")
    return {
        "BillingAccountId": "estimate",
        "BillingAccountName": "mpplan estimate, not a bill",
        "BillingCurrency": "USD",
        "BillingPeriodStart": _time(billed[0]),
        "BillingPeriodEnd": _time(billed[1]),
        "ChargeCategory": "Purchase" if row.line == "setup_fee" else "Usage",
        "ChargeClass": "",
        "ChargeDescription": f"ESTIMATE: {row.label}",
        "ChargePeriodStart": _time(period[0]),
        "ChargePeriodEnd": _time(period[1]),
        "InvoiceIssuerName": terms.provider,
        "ProviderName": terms.provider,
        "PublisherName": terms.provider,
        "ServiceCategory": _SERVICE.get(row.line, "AI and Machine Learning"),
        "ServiceName": "Model training",
        "CommitmentDiscountCategory": "Usage" if discount else "",
        "CommitmentDiscountId": f"estimate:{discount}" if discount else "",
        "CommitmentDiscountStatus": ("Unused" if row.line == _UNUSED else "Used") if discount else "",
        "CommitmentDiscountType": discount or "",
        "PricingCategory": pricing if gpu_hours or row.line.startswith(_OWNED) else "Standard",
        "RegionId": terms.region,
        "SkuId": row.gpu if gpu_hours else row.line,
        "Tags": '{"mpplan": "estimate"}',
    }


_OWNED = ("gpu_owned", "owned_")
"""Beginnings of the names of lines for the user's own machines."""


def _how_much(terms: _Terms, row: BillRow) -> dict[str, Any]:
    """Return the amounts of a row, its quantity and its unit prices."""
    alone = row.usd_mid if row.quantity is None else ""  # answers of earlier versions: one unit at the amount
    price = alone if row.unit_price_usd is None else row.unit_price_usd[1]
    quantity = row.quantity if row.quantity is not None else 1
    units = _UNITS.get(row.unit or "", row.unit or _UNITS[LUMP_SUM])
    consumed = row.line not in ("setup_fee", _UNUSED) and row.quantity is not None and row.unit != LUMP_SUM
    list_price, list_cost = price, row.usd_mid
    known = terms.list_usd_per_gpu_h
    if known is not None and row.line in _AT_GPU_PRICE and row.unit == "GPU-hour":
        list_price, list_cost = known, product_usd(quantity, known)
    contracted = (list_price, list_cost) if terms.discount else (price, row.usd_mid)
    return {
        "BilledCost": Decimal("0.00"),
        "ContractedCost": contracted[1],
        "EffectiveCost": row.usd_mid,
        "ListCost": list_cost,
        "PricingQuantity": quantity,
        "PricingUnit": units,
        "ConsumedQuantity": row.quantity if consumed else "",
        "ConsumedUnit": units if consumed else "",
        "ContractedUnitPrice": contracted[0],
        "ListUnitPrice": list_price,
        "x_CostLow": row.usd_low,
        "x_CostHigh": row.usd_high,
        "x_CostAtLeast": "true" if row.at_least else "false",
    }


def _beside(plan: BilledPlan, row: BillRow, *, metered: bool) -> dict[str, Any]:
    """Return the cells that FOCUS does not have; energy and carbon, if known, only where the row is `metered`."""
    energy, carbon, market, embodied = plan.energy_kwh, plan.carbon_kg, plan.carbon_market_kg, plan.embodied_kg
    return {
        "x_IsEstimate": "true",
        "x_EnergyKwh": energy[1] if metered and energy is not None else "",
        "x_CarbonKg": carbon[1] if metered and carbon is not None else "",
        "x_CarbonMethod": "location-based" if metered and carbon is not None else "",
        "x_CarbonMarketKg": market if metered and market is not None else "",
        "x_EmbodiedKg": embodied[1] if metered and embodied is not None else "",
        "x_Precision": row.precision,
        "x_Gpu": row.gpu,
        "x_GpuCount": row.gpus,
    }

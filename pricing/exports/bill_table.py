"""The cost tree of an estimate document as a table, in whole cents that sum at every level and in every column.

A line is its quantity times its unit price to the cent, and a line above it the sum of its lines. Answers of earlier
versions, whose amounts are not yet in cents, are converted to that form here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from planner.answer.document import DECIMALS, DIGITS
from planner.answer.leading import leading_gpu
from planner.costs.rounding import cents, exact, line_usd
from planner.errors import InputFileError, UsageError
from planner.lazy import dataclass
from planner.question.usual_names import named_among
from planner.units import kg_from_tonnes, kwh_from_mwh

VIEWS = ("plans", "same_deadline")
_ENDS = ("low", "mid", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class BillRow:
    """One line of the bill of one plan."""

    view: str
    """`plans` (same GPUs) or `same_deadline`."""
    precision: str
    policy: str
    gpu: str
    gpus: int
    line: str
    """Id of the line; `total` is the root."""
    parent: str | None
    label: str
    quantity: float | None
    unit: str | None
    unit_price_usd: tuple[float, float, float] | None
    """low, mid, high."""
    usd_low: Decimal
    usd_mid: Decimal
    usd_high: Decimal
    at_least: bool
    """Whether something is missing, so that the amounts are lower bounds."""
    is_leaf: bool
    """Whether it has no child lines."""
    evidence_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledPlan:
    """One plan with its bill."""

    rows: tuple[BillRow, ...]
    """The total first, then its lines, each parent before its children."""
    days_mid: float
    energy_kwh: tuple[float, float, float] | None
    """low, mid, high; None where the power of the machine is unknown."""
    carbon_kg: tuple[float, float, float] | None
    """Location-based; low, mid, high; None where the energy is unknown."""
    carbon_market_kg: float | None
    """Market-based at mid; None where no factor was given."""
    embodied_kg: tuple[float, float, float] | None
    """low, mid, high; None where it was not requested or is not known."""
    sci_kg: tuple[float, float, float] | None
    """SCI score per run; low, mid, high."""
    mean_power_mw: float | None
    peak_power_mw: float | None

    @property
    def total(self) -> BillRow:
        """The root row."""
        return self.rows[0]

    @property
    def leaves(self) -> tuple[BillRow, ...]:
        """The lines without child lines; they sum to the total."""
        return tuple(row for row in self.rows if row.is_leaf)


def billed_plans(document: dict[str, Any]) -> tuple[BilledPlan, ...]:
    """Return every plan of an estimate document that fits and has a cost.

    Raises:
        InputFileError: a plan lacks a part, or its lines do not sum to its total.
    """
    return tuple(
        _billed(plan, view)
        for view in VIEWS
        for plan in document.get(view, ())
        if plan.get("fits") and plan.get("cost_usd")
    )


def unbilled_gpus(document: dict[str, Any]) -> tuple[str, ...]:
    """Return the GPUs with plans that fit but have no cost, which a bill of every plan therefore leaves out."""
    plans = [plan for view in VIEWS for plan in document.get(view, ()) if plan.get("fits")]
    return tuple(dict.fromkeys(plan["gpu"] for plan in plans if not plan.get("cost_usd")))


def one_plan(
    document: dict[str, Any], precision: str | None = None, view: str = "plans", gpu: str | None = None
) -> BilledPlan:
    """Return the bill of one plan: by default that of the answer's main sentence, in the same-GPUs view.

    Raises:
        UsageError: the document has no such plan with a cost.
    """
    question_precision = document.get("question", {}).get("precision", {}).get("value")
    asked = precision or question_precision
    plans = [plan for plan in billed_plans(document) if plan.total.view == view]
    gpu_id = None if gpu is None else named_among("gpu", gpu, [plan.total.gpu for plan in plans]) or gpu
    chosen = [plan for plan in plans if asked in (None, plan.total.precision) and gpu_id in (None, plan.total.gpu)]
    if not chosen:
        have = ", ".join(dict.fromkeys(f"{plan.total.precision} on {plan.total.gpu}" for plan in plans)) or "none"
        on = f" on {gpu}" if gpu else ""
        raise UsageError(f"no plan with a cost in {asked or 'any precision'}{on}", hint=f"the document has {have}")
    leading = leading_gpu(document["plans"], question_precision or chosen[0].total.precision)
    return min(chosen, key=lambda plan: plan.total.gpu != leading)


def plain_decimal(value: object) -> object:
    """Return a cell without digits from floating-point arithmetic, and without an exponent."""
    if not isinstance(value, float):
        return value
    digits = max(DIGITS, DECIMALS + len(f"{abs(value):.0f}"))
    return f"{Decimal(f'{value:.{digits}g}').normalize():f}"


def _billed(plan: dict[str, Any], view: str) -> BilledPlan:
    cost = plan["cost_usd"]
    lines = plan.get("cost_lines") or []
    root = {"id": "total", "label": "Total", "usd": cost, "children": lines}
    market, mean = plan.get("carbon_market_tco2e"), _range(plan.get("mean_power_mw"))
    return BilledPlan(
        rows=tuple(_rows(root, None, plan, view)),
        days_mid=float(plan["duration_days"]["mid"]),
        energy_kwh=_range(plan.get("energy_mwh"), kwh_from_mwh),
        carbon_kg=_range(plan.get("carbon_tco2e"), kg_from_tonnes),
        carbon_market_kg=None if market is None else kg_from_tonnes(float(market)),
        embodied_kg=_range(plan.get("embodied_tco2e"), kg_from_tonnes),
        sci_kg=_range(plan.get("sci_kg_per_run")),
        mean_power_mw=None if mean is None else mean[1],
        peak_power_mw=plan.get("peak_power_mw"),
    )


def _same(value: float) -> float:
    return value


def _range(
    estimate: dict[str, float] | None, convert: Callable[[float], float] = _same
) -> tuple[float, float, float] | None:
    if estimate is None:
        return None
    low, mid, high = (convert(float(estimate[end])) for end in _ENDS)
    return (low, mid, high)


def _rows(line: dict[str, Any], parent: str | None, plan: dict[str, Any], view: str) -> Iterator[BillRow]:
    children = line.get("children") or []
    low, mid, high = _amounts(line)
    yield BillRow(
        view=view,
        precision=plan["precision"],
        policy=plan.get("policy", ""),
        gpu=plan["gpu"],
        gpus=plan["gpus"],
        line=line["id"],
        parent=parent,
        label=line["label"],
        quantity=line.get("quantity"),
        unit=line.get("unit"),
        unit_price_usd=_range(line.get("unit_price_usd")),
        usd_low=low,
        usd_mid=mid,
        usd_high=high,
        at_least=bool(plan["cost_usd"].get("at_least")),
        is_leaf=not children,
        evidence_ids=tuple(line.get("evidence_ids") or ()),
    )
    for child in children:
        yield from _rows(child, line["id"], plan, view)


def _amounts(line: dict[str, Any]) -> list[Decimal]:
    """Return low, mid and high of a line in whole cents: the sums of its child lines, else its own amounts."""
    children = line.get("children") or []
    if not children:
        return _own(line)
    for end in _ENDS:
        _require_sum(line, children, end)
    return [sum(ends, Decimal(0)) for ends in zip(*map(_amounts, children), strict=True)]


def _own(line: dict[str, Any]) -> list[Decimal]:
    low, high = (cents(line["usd"][end]) for end in ("low", "high"))
    price = line.get("unit_price_usd") or {}
    mid = line_usd(line["usd"]["mid"], line.get("quantity"), price.get("mid"))
    return [min(low, mid), mid, max(mid, high)]


def _require_sum(line: dict[str, Any], children: list[dict[str, Any]], end: str) -> None:
    """Refuse a line whose child lines do not sum to it."""
    parts, whole = sum((exact(child["usd"][end]) for child in children), Decimal(0)), exact(line["usd"][end])
    if abs(parts - whole) > max(Decimal("0.01"), abs(whole) * Decimal("1e-9")):
        raise InputFileError(
            f"cost_lines: {line['id']}: the lines' {end} sums to {parts:.2f}, not to {cents(whole)}",
            hint="write the document again with `mpplan estimate --json`",
        )

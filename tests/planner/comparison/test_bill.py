"""The bill of a run: only what grows with its hours is multiplied by them, the rest is counted once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.comparison.basis import Given
from planner.comparison.bill import once_costs, unit_price
from planner.comparison.compare import compare
from planner.comparison.document import to_compare_document
from planner.comparison.planned import Planned, planned_of
from reports.compared.text import to_text
from tests.planner.comparison.runs import log_of
from tests.planner.comparison.test_gap import answer
from tests.planner.runlog.writers import LLAMA_8B, megatron_arguments, megatron_log

HOURS = 10_000.0


def ends(low: float, mid: float, high: float) -> dict[str, float]:
    return {"low": low, "mid": mid, "high": high}


def line(name: str, usd: float, quantity: float, unit: str, price: dict[str, float]) -> dict[str, Any]:
    return {
        "id": name, "label": name, "usd": ends(usd, usd, usd),
        "quantity": quantity, "unit": unit, "unit_price_usd": price, "children": [],
    }  # fmt: skip


RENTAL = line("gpu_rental", 21_000.0, HOURS, "GPU-hour", ends(2.1, 2.1, 2.1))
FEE = line("setup_fee", 25_000.0, 1.0, "lump sum", ends(25_000.0, 25_000.0, 25_000.0))
MINIMUM = line("minimum_term", 42_000.0, 20_000.0, "GPU-hour", ends(2.1, 2.1, 2.1))
STORAGE = line("storage", 900.0, 900.0, "GB-month", ends(1.0, 1.0, 1.0))
POWER = line("electricity", 1_000.0, 10_000.0, "kWh", ends(0.05, 0.1, 0.2))


def billed(*lines: dict[str, Any]) -> Planned:
    """The plan as if its bill were these lines, of 10,000 GPU-hours."""
    total = sum(row["usd"]["mid"] for row in lines)
    planned = planned_of(answer(), None, None)
    plan = {
        **planned.plan,
        "cost_lines": list(lines),
        "cost_usd": ends(total, total, total),
        "gpu_hours": ends(HOURS, HOURS, HOURS),
    }
    return replace(planned, plan=plan)


def test_the_price_of_a_plan_is_what_its_hours_cost():
    planned = planned_of(answer(), None, None)
    price = unit_price(planned, Given())

    assert price is not None
    assert price.mid == pytest.approx(planned.plan["cost_usd"]["mid"] / planned.plan["gpu_hours"]["mid"])
    assert price.low < price.mid < price.high
    assert unit_price(planned, Given(price_usd_per_gpu_h=2.0)).mid == 2.0  # type: ignore[union-attr]
    assert unit_price(None, Given()) is None


def test_a_fee_and_an_unused_minimum_are_no_price_of_an_hour():
    price = unit_price(billed(RENTAL, MINIMUM, FEE, STORAGE), Given())

    assert price is not None
    assert (price.low, price.mid, price.high) == pytest.approx((2.1, 2.1, 2.1))


def test_electricity_grows_with_the_hours_and_widens_their_price():
    price = unit_price(billed(RENTAL, POWER), Given())

    assert price is not None
    assert (price.low, price.mid, price.high) == pytest.approx((2.15, 2.2, 2.3))


def test_an_own_gpu_has_the_price_of_its_items():
    items = [line("owned_server", 8_000.0, HOURS, "GPU-hour", ends(0.5, 0.8, 1.2)),
             line("owned_staff", 1_000.0, HOURS, "GPU-hour", ends(0.1, 0.1, 0.1))]  # fmt: skip
    owned = {**line("gpu_owned", 9_000.0, 0.0, "", {}), "quantity": None, "unit_price_usd": None, "children": items}
    price = unit_price(billed(owned), Given())

    assert price is not None
    assert (price.low, price.mid, price.high) == pytest.approx((0.6, 0.9, 1.3))


def test_what_is_paid_once_is_named_and_a_minimum_is_what_the_run_leaves_of_it():
    planned = billed(RENTAL, MINIMUM, FEE)

    def costs(gpu_hours: float | None) -> dict[str, float]:
        return {cost.id: cost.usd for cost in once_costs(planned, Given(), gpu_hours)}

    assert costs(None) == {"minimum_term": 42_000.0, "setup_fee": 25_000.0}  # as planned
    assert costs(12_000.0) == pytest.approx({"minimum_term": 18_000 * 2.1, "setup_fee": 25_000.0})
    assert costs(40_000.0) == {"setup_fee": 25_000.0}  # all of it is used
    assert once_costs(planned, Given(price_usd_per_gpu_h=2.0), None) == ()
    assert once_costs(None, Given(), None) == ()


@pytest.mark.parametrize("power", [(), (POWER,)])
def test_failed_work_and_experiments_leave_less_of_a_minimum(power):
    base = 21_000.0 + sum(row["usd"]["mid"] for row in power)
    lump = ends(0.0, 0.0, 0.0)
    work = [
        line(name, ratio * base, 1.0, "lump sum", lump) for name, ratio in (("failed_work", 0.1), ("experiments", 0.5))
    ]
    planned = billed(RENTAL, MINIMUM, *power, *work)

    def left(gpu_hours: float) -> float:
        return {cost.id: cost.usd for cost in once_costs(planned, Given(), gpu_hours)}.get("minimum_term", 0.0)

    assert left(HOURS) == pytest.approx(42_000.0)
    assert left(12_000.0) == pytest.approx((20_000 - 1.1 * 2_000) * 2.1)  # experiments precede the run
    assert left(30_000.0) == 0.0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_text_counts_a_fee_once_beside_what_the_hours_cost(lang):
    lines, _ = megatron_log([2.0] * 100, of=1000)
    log = log_of(megatron_arguments(LLAMA_8B), lines)
    comparison = compare(log, billed(RENTAL, FEE), Given())
    text = to_text(to_compare_document(comparison, "0"), lang)

    assert comparison.forecast is not None
    assert comparison.forecast.spent_usd is not None
    assert comparison.forecast.spent_usd.mid == pytest.approx(198 / 3600 * 64 * 2.1)
    assert {"en": "one-off costs  $25,000, counted once", "zh": "一次性费用  25,000 美元，只计一次"}[lang] in text
    assert {"en": "Set-up fee $25,000", "zh": "开通费 25,000 美元"}[lang] in text

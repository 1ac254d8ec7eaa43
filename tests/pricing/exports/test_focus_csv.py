"""A bill in the shape of FOCUS 1.2: its columns, and that it is marked as an estimate and sums to the plan."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

from planner.errors import InputFileError, UsageError
from pricing.exports import focus_csv


def read_csv(data):
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"))))


def test_focus_has_the_21_mandatory_columns_and_customs_start_with_x(document):
    rows = read_csv(focus_csv.render(document))

    assert len(focus_csv.MANDATORY) == 21
    assert list(rows[0]) == list(focus_csv.COLUMNS)
    assert all(name.startswith("x_") for name in focus_csv.CUSTOM)


def test_focus_rows_are_plainly_an_estimate_and_sum_to_the_plan(document):
    rows = read_csv(focus_csv.render(document))

    assert {row["x_IsEstimate"] for row in rows} == {"true"}
    assert all(row["ChargeDescription"].startswith("ESTIMATE: ") for row in rows)
    assert {row["BilledCost"] for row in rows} == {"0.00"}
    assert sum(Decimal(row["EffectiveCost"]) for row in rows) == Decimal("161819.20")
    assert sum(float(row["x_EnergyKwh"]) for row in rows) == pytest.approx(40_000)
    assert sum(float(row["x_CarbonKg"]) for row in rows) == pytest.approx(15_340)


def test_focus_says_when_how_much_and_how_it_is_priced(document):
    row = read_csv(focus_csv.render(document))[0]

    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == ("2026-11-20T00:00:00Z", "2026-12-20T00:00:00Z")
    assert (row["PricingQuantity"], row["PricingUnit"], row["PricingCategory"]) == ("46080", "GPU-hours", "Standard")
    assert (row["x_Precision"], row["SkuId"], row["BillingCurrency"]) == ("fp8", "h100-sxm5-80gb", "USD")


def test_focus_of_spot_is_dynamic_and_of_a_setup_fee_a_purchase(document):
    document["question"]["commitment"]["value"] = "spot"
    document["plans"][0]["cost_lines"][1]["id"] = "setup_fee"
    document["plans"][0]["cost_lines"][1]["children"] = []

    rows = {row["x_Precision"] + row["ChargeCategory"]: row for row in read_csv(focus_csv.render(document))}

    assert rows["fp8Usage"]["PricingCategory"] == "Dynamic"
    assert rows["fp8Purchase"]["EffectiveCost"] == "1000.00"


def test_another_plan_can_be_asked_for(document):
    rows = read_csv(focus_csv.render(document, precision="bf16", view="same_deadline"))

    assert {row["x_Precision"] for row in rows} == {"bf16"}


def test_an_answer_that_does_not_say_when_it_was_made_is_refused(document):
    del document["created_at"]

    with pytest.raises(InputFileError, match="created_at: missing"):
        focus_csv.render(document)


def test_a_run_that_outlasts_the_calendar_is_refused(document):
    document["created_at"] = "9999-12-15T00:00:00+00:00"

    with pytest.raises(UsageError, match="a run of 30 days ends after the last date that FOCUS can hold"):
        focus_csv.render(document)

"""A bill in the shape of FOCUS 1.2: its columns, and that it is marked as an estimate and sums to the plan."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

from planner.errors import InputFileError, UsageError
from pricing.exports import focus_csv

COMMITTED = ("PricingCategory", *(f"CommitmentDiscount{name}" for name in ("Category", "Id", "Status", "Type")))


def line(document, name):
    return next(line for line in document["plans"][0]["cost_lines"] if line["id"] == name)


def used(document, **price):
    """State the unit price of the GPUs, and how it was found."""
    ends = {"low": 3.0, "mid": 3.49, "high": 4.0}
    line(document, "gpu_rental")["unit_price_usd"] = ends
    document["money"] = {"prices": [{"gpu": "h100-sxm5-80gb", "provider": None, "usd_per_gpu_h": ends} | price]}


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
    assert [float(row["x_EnergyKwh"] or 0) for row in rows] == pytest.approx([40_000, 0, 0])
    assert [float(row["x_CarbonKg"] or 0) for row in rows] == pytest.approx([15_340, 0, 0])


def test_the_energy_of_a_run_is_on_the_row_that_bills_it_and_nowhere_else_is_it_zero(document):
    line(document, "beside")["children"][0]["id"] = "electricity"

    rows = read_csv(focus_csv.render(document))

    assert [row["x_EnergyKwh"] for row in rows] == ["", "40000", ""]  # FOCUS: no 0 where there is no value
    assert [row["x_CarbonMethod"] for row in rows] == ["", "location-based", ""]
    assert [row["SkuId"] for row in rows] == ["h100-sxm5-80gb", "electricity", "egress"]


def test_unknown_energy_and_carbon_are_blank_and_have_no_method(document):
    document["plans"][0] |= dict.fromkeys(("energy_mwh", "carbon_tco2e", "sci_kg_per_run", "mean_power_mw"))

    rows = read_csv(focus_csv.render(document))

    assert {row[name] for row in rows for name in ("x_EnergyKwh", "x_CarbonKg", "x_CarbonMethod")} == {""}


def test_focus_says_when_how_much_and_how_it_is_priced(document):
    row = read_csv(focus_csv.render(document))[0]

    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == ("2026-11-20T00:00:00Z", "2026-12-20T00:00:00Z")
    assert (row["PricingQuantity"], row["PricingUnit"], row["PricingCategory"]) == ("46080", "GPU-Hours", "Standard")
    assert (row["x_Precision"], row["SkuId"], row["BillingCurrency"]) == ("fp8", "h100-sxm5-80gb", "USD")


def test_focus_of_spot_is_dynamic_and_of_a_setup_fee_a_purchase(document):
    document["question"]["commitment"]["value"] = "spot"
    document["plans"][0]["cost_lines"][1]["id"] = "setup_fee"
    document["plans"][0]["cost_lines"][1]["children"] = []

    rows = {row["x_Precision"] + row["ChargeCategory"]: row for row in read_csv(focus_csv.render(document))}

    assert rows["fp8Usage"]["PricingCategory"] == "Dynamic"
    assert rows["fp8Purchase"]["EffectiveCost"] == "1000.00"


def test_a_reserved_price_is_compared_with_the_list_price_and_the_rest_of_the_bill_is_standard(document):
    used(document, commitment="1y", list_usd_per_gpu_h=6.0)

    rental, storage, _ = read_csv(focus_csv.render(document))

    assert (rental["ListUnitPrice"], rental["ContractedUnitPrice"]) == ("6", "6")  # neither has the 1y discount
    assert rental["ListCost"] == rental["ContractedCost"] == "276480.00"  # 46,080 x 6
    assert rental["EffectiveCost"] == "160819.20"  # 46,080 x 3.49
    assert [rental[name] for name in COMMITTED] == ["Committed", "Usage", "estimate:1y", "Used", "1y"]
    assert [storage[name] for name in COMMITTED] == ["Standard", "", "", "", ""]
    assert storage["ListCost"] == storage["EffectiveCost"]


def test_without_a_known_list_price_the_reserved_price_is_all_there_is(document):
    used(document, commitment="3y", list_usd_per_gpu_h=None)

    rental = read_csv(focus_csv.render(document))[0]

    assert rental["ListUnitPrice"] == rental["ContractedUnitPrice"] == "3.49"
    assert rental["ListCost"] == rental["ContractedCost"] == rental["EffectiveCost"]


def test_a_negotiated_price_is_contracted_below_the_list_price(document):
    used(document, commitment="on-demand", list_usd_per_gpu_h=4.0)

    rental = read_csv(focus_csv.render(document))[0]

    assert [rental[name] for name in ("ListUnitPrice", "ContractedUnitPrice")] == ["4", "3.49"]
    assert [rental[name] for name in ("ListCost", "ContractedCost")] == ["184320.00", "160819.20"]
    assert rental["PricingCategory"] == "Standard"


def test_what_is_left_of_a_minimum_term_is_unused_until_its_end_and_consumes_nothing(document):
    used(document, commitment="on-demand", list_usd_per_gpu_h=None)
    document["money"]["quotes"] = [{"gpu": "h100-sxm5-80gb", "minimum_term_days": 90.0, "minimum_gpus": 1}]
    document["plans"][0]["cost_lines"][1] |= {
        "id": "minimum_term", "children": [], "quantity": 1000 / 3.49, "unit": "GPU-hour",
        "unit_price_usd": {"low": 3.49, "mid": 3.49, "high": 3.49},
    }  # fmt: skip

    rental, unused = read_csv(focus_csv.render(document))

    assert [row["CommitmentDiscountStatus"] for row in (rental, unused)] == ["Used", "Unused"]
    assert {row["PricingCategory"] for row in (rental, unused)} == {"Committed"}
    assert (rental["ConsumedQuantity"], unused["ConsumedQuantity"], unused["ConsumedUnit"]) == ("46080", "", "")
    assert [row["ChargePeriodEnd"] for row in (rental, unused)] == ["2026-12-20T00:00:00Z", "2027-02-18T00:00:00Z"]
    assert {row["BillingPeriodEnd"] for row in (rental, unused)} == {"2027-02-18T00:00:00Z"}


def test_what_is_kept_after_the_run_is_charged_after_it_and_a_fee_on_its_first_day(document):
    parts = line(document, "beside")["children"]
    parts[0] |= {"id": "storage_run", "quantity": 100.0, "unit": "GB-month"}
    parts[1] |= {"id": "storage_after", "quantity": 200.0, "unit": "GB-month"}
    parts.append(parts[0] | {"id": "setup_fee", "quantity": 1.0, "usd": dict.fromkeys(("low", "mid", "high"), 0.0)})

    rows = {row["SkuId"]: row for row in read_csv(focus_csv.render(document))}

    after, fee = rows["storage_after"], rows["setup_fee"]
    assert (after["ChargePeriodStart"], after["ChargePeriodEnd"]) == ("2026-12-20T00:00:00Z", "2027-02-18T00:00:00Z")
    assert (fee["ChargePeriodStart"], fee["ChargePeriodEnd"]) == ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")
    assert after["PricingUnit"] == "GB-Months"


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

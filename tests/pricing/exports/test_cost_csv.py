"""The bill as CSV: every line of every plan, and columns that can be summed."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

from pricing.exports import cost_csv


def read_csv(data):
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"))))


def test_the_csv_has_every_line_of_every_plan_and_sums_by_column(document):
    rows = read_csv(cost_csv.render(document))

    assert list(rows[0]) == list(cost_csv.COLUMNS)
    assert {(row["view"], row["precision"]) for row in rows} == {
        ("plans", "fp8"), ("plans", "bf16"), ("same_deadline", "fp8"), ("same_deadline", "bf16"),
    }  # fmt: skip
    fp8 = [row for row in rows if (row["view"], row["precision"]) == ("plans", "fp8")]
    leaves = sum(Decimal(row["usd_mid"]) for row in fp8 if row["is_leaf"] == "true")
    assert leaves == Decimal(fp8[0]["usd_mid"]) == Decimal("161819.20")  # 46 080 GPU-hours at 3.49, and 1 000 beside
    assert sum(float(row["energy_kwh_mid"] or 0) for row in fp8) == pytest.approx(40_000)


def test_unknown_energy_and_carbon_are_blank_and_not_zero(document):
    plan = document["plans"][0]
    plan |= dict.fromkeys(("energy_mwh", "carbon_tco2e", "sci_kg_per_run", "mean_power_mw", "peak_power_mw"))

    total = read_csv(cost_csv.render(document))[0]

    assert (total["view"], total["line"], total["usd_mid"]) == ("plans", "total", "161819.20")
    ends = ("low", "mid", "high")
    assert {total[f"{name}_{end}"] for name in ("energy_kwh", "carbon_kg", "sci_kg") for end in ends} == {""}


def test_numbers_have_no_digits_that_only_the_arithmetic_made(document):
    document["plans"][0]["energy_mwh"] = {"low": 32.0, "mid": 48.998743599999994, "high": 48.998743600000003}

    rows = read_csv(cost_csv.render(document))

    assert (rows[0]["energy_kwh_mid"], rows[0]["energy_kwh_high"]) == ("48998.7436", "48998.7436")


def test_lines_of_an_earlier_version_multiply_out_to_the_cent(document):
    plan = document["plans"][0]
    line = {"id": "electricity", "label": "Electricity", "quantity": 4732.337521, "unit": "kWh", "children": []}
    usd = dict.fromkeys(("low", "mid", "high"), 396.0966505077)
    rent = plan["cost_lines"][0]
    plan["cost_lines"] = [rent, line | {"usd": usd, "unit_price_usd": dict.fromkeys(usd, 0.0837)}]
    plan["cost_usd"] = {end: rent["usd"][end] + usd[end] for end in usd} | {"at_least": False}

    rows = read_csv(cost_csv.render(document))

    assert rows[2]["usd_mid"] == "396.10"
    assert Decimal(rows[0]["usd_mid"]) == Decimal(rows[1]["usd_mid"]) + Decimal("396.10")

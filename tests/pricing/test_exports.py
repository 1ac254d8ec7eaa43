"""Every export makes a file that its own readers read, and that sums."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

from planner.errors import InputFileError, UsageError
from pricing.exports import EXPORTS, cost_csv, cost_parquet, export_for, find_export, focus_csv


def read_csv(data):
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"))))


def needs(export):
    if export.is_binary:
        pytest.importorskip("pyarrow")


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.name)
def test_every_export_makes_bytes_and_refuses_a_faulty_document(export, document):
    needs(export)

    assert len(export.render(document)) > 200
    document["plans"][0]["energy_mwh"]["mid"] *= 1000
    document["plans"][0]["energy_mwh"]["high"] *= 1000
    with pytest.raises(InputFileError, match="is a unit wrong"):
        export.render(document)


def test_an_export_is_found_by_its_name_or_by_the_ending_of_a_file():
    assert find_export("focus").module == "focus_csv"
    assert find_export("cost_csv").name == "cost-csv"
    assert [export_for(path).name for path in ("bill.parquet", "bill.csv", None)] == ["parquet", "cost-csv", "cost-csv"]
    with pytest.raises(UsageError) as caught:
        find_export("focuss")
    assert "focus" in caught.value.hint


def test_the_csv_has_every_line_of_every_plan_and_sums_by_column(document):
    rows = read_csv(cost_csv.render(document))

    assert list(rows[0]) == list(cost_csv.COLUMNS)
    assert {(row["view"], row["precision"]) for row in rows} == {
        ("plans", "fp8"), ("plans", "bf16"), ("same_deadline", "fp8"), ("same_deadline", "bf16"),
    }  # fmt: skip
    fp8 = [row for row in rows if (row["view"], row["precision"]) == ("plans", "fp8")]
    leaves = sum(Decimal(row["usd_mid"]) for row in fp8 if row["is_leaf"] == "True")
    assert leaves == Decimal(fp8[0]["usd_mid"]) == Decimal("161819.20")  # 46 080 GPU-hours at 3.49, and 1 000 beside
    assert sum(float(row["energy_kwh_mid"] or 0) for row in fp8) == pytest.approx(40_000)


def test_the_parquet_holds_decimals(document):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    table = pq.read_table(io.BytesIO(cost_parquet.render(document)))

    assert table.schema.field("usd_mid").type == pa.decimal128(18, 2)
    assert table.column_names == list(cost_csv.COLUMNS)
    first = table.slice(0, 1).to_pylist()[0]
    assert first["usd_mid"] == Decimal("161819.20")
    assert first["is_leaf"] is False


def test_without_pyarrow_the_extra_is_named(document, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)

    with pytest.raises(UsageError) as caught:
        find_export("parquet").render(document)
    assert "mpplan[parquet]" in caught.value.hint


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
    assert (row["PricingQuantity"], row["PricingUnit"], row["PricingCategory"]) == ("46080.0", "GPU-hours", "Standard")
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

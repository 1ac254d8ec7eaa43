"""The bill as Parquet, with exact amounts."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest

from planner.errors import UsageError
from pricing.exports import cost_csv, cost_parquet, find_export


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

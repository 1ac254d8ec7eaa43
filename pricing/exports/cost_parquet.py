"""Every line of every plan as Parquet: the columns of `cost_csv`, amounts as decimals."""

from __future__ import annotations

import io
from typing import Any

from planner.errors import UsageError
from pricing.exports.audit import require_sound
from pricing.exports.bill_table import billed_plans
from pricing.exports.cost_csv import COLUMNS, cells

_AMOUNTS = ("usd_low", "usd_mid", "usd_high")
_TEXTS = ("view", "precision", "policy", "gpu", "line", "parent", "label", "unit", "currency", "evidence")
_FLAGS = ("at_least", "is_leaf")


def render(document: dict[str, Any]) -> bytes:
    """Return the Parquet file.

    Raises:
        UsageError: pyarrow is not installed.
        InputFileError: the document's figures are inconsistent.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed", hint="`pip install 'mpplan[parquet]'`, or write CSV"
        ) from None
    require_sound(document)
    rows = [cells(plan, row) for plan in billed_plans(document) for row in plan.rows]
    kinds = {
        **dict.fromkeys(COLUMNS, pa.float64()),
        **dict.fromkeys(_AMOUNTS, pa.decimal128(18, 2)),
        **dict.fromkeys(_TEXTS, pa.string()),
        **dict.fromkeys(_FLAGS, pa.bool_()),
        "gpus": pa.int64(),
    }
    schema = pa.schema([(column, kinds[column]) for column in COLUMNS])
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), buffer)
    return buffer.getvalue()

"""A copy without prices."""

from __future__ import annotations

from reports.document.prices import without_prices
from tests.reports.document.test_redact import secretive


def test_a_copy_without_prices_has_nothing_more_to_take_out() -> None:
    copy = without_prices(secretive())

    assert without_prices(copy) == copy
    assert all(plan["cost_usd"] is None for plan in copy["plans"])

"""A copy without prices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reports.document.prices import without_prices
from tests.reports.document.test_redact import secretive


def test_a_copy_without_prices_has_nothing_more_to_take_out() -> None:
    copy = without_prices(secretive())

    assert without_prices(copy) == copy
    assert all(plan["cost_usd"] is None for plan in copy["plans"])


@pytest.mark.parametrize(("name", "kept"), [("fp8", {"pue", "grid"}), ("LoRA", {"pue", "grid", "lengths", "examples"})])
def test_a_copy_without_prices_keeps_every_assumption_about_energy_and_data(
    ask: Callable[[str], dict[str, Any]], name: str, kept: set[str]
) -> None:
    document = ask(name)
    stated = {row["id"] for row in document["assumptions"]}

    assert kept & stated <= {row["id"] for row in without_prices(document)["assumptions"]}
    assert {"pue", "grid"} <= kept & stated

"""Nothing of the developer's own price book reaches a test, and every test knows what day it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pricing.book import PriceRow

TODAY = date(2026, 11, 20)


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty user data folder; `mpplan/` inside it is the program's."""
    home = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    return home / "mpplan"


@pytest.fixture
def today() -> date:
    """The day of the tests."""
    return TODAY


@pytest.fixture(scope="session")
def row() -> Callable[..., PriceRow]:
    """Makes rows."""
    return make_row


def make_row(price: str = "2.50", **changes: Any) -> PriceRow:
    """A row of `acme` for an H100, dated 2026-10-01, with changes."""
    fields: dict[str, Any] = {
        "id": "t1",
        "gpu": "h100-sxm5-80gb",
        "provider": "acme",
        "region": "",
        "instance": "",
        "gpus_per_instance": 8,
        "commitment": "on-demand",
        "price_per_gpu_h": Decimal(price),
        "currency": "USD",
        "seller": "provider",
        "date_earliest": date(2026, 10, 1),
        "date_latest": date(2026, 10, 1),
        "date_basis": "test",
        "source": "test",
    }
    day = changes.pop("day", None)
    if day is not None:
        fields |= {"date_earliest": date.fromisoformat(day), "date_latest": date.fromisoformat(day)}
    return PriceRow(**(fields | changes))

"""Azure Retail Prices: recorded pages, served by a local server, become prices per GPU-hour."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from planner.hardware.catalogue import load_gpus
from pricing.sources import Fetched
from pricing.sources import azure as azure_source
from pricing.sources.azure import AZURE, machines
from pricing.sources.web import FetchError

PAGES = json.loads((Path(__file__).parents[1] / "recorded" / "azure_pages.json").read_text(encoding="utf-8"))
RECORDED = json.dumps({"Items": [item for page in PAGES for item in page["Items"]]})


def test_azure_prices_are_per_gpu_hour_in_every_commitment(today):
    answered = AZURE.read(Fetched(source="azure", text=RECORDED), today)

    assert {(row.region, row.commitment): row.price_per_gpu_h for row in answered.rows} == {
        ("eastus", "on-demand"): Decimal("12.29"),  # 98.32 / 8
        ("eastus", "spot"): Decimal("4.916"),
        ("eastus", "1y"): Decimal("7.8657"),  # 551 228 USD for a year / 8 760 h / 8
        ("eastus", "3y"): Decimal("5.3748"),  # 1 130 000 USD for three
        ("westeurope", "on-demand"): Decimal("15.3625"),
    }
    assert answered.skipped == {"Windows, or low priority": 2, "not in force yet": 1, "type DevTestConsumption": 1}


@pytest.mark.parametrize(("currency", "kept"), [("USD", 0), ("JPY", 1)])
def test_azure_prices_are_held_against_the_limit_only_in_dollars(today, currency, kept):
    [item] = [item for item in json.loads(RECORDED)["Items"] if item["retailPrice"] == 98.32][:1]
    text = json.dumps({"Items": [item | {"retailPrice": 15_000, "currencyCode": currency}]})

    answered = AZURE.read(Fetched(source="azure", text=text), today)

    assert [row.price_per_gpu_h for row in answered.rows] == [Decimal(1875)] * kept


def test_azure_machines_are_of_catalogue_gpus():
    assert all(gpu in load_gpus() and gpus >= 1 for gpu, gpus in machines().values())


def test_azure_pages_are_followed_to_the_last(server, today, monkeypatch):
    monkeypatch.setattr(azure_source, "machines", lambda: {"Standard_ND96isr_H100_v5": ("h100-sxm5-80gb", 8)})
    base = ""

    def answer(path):
        page = PAGES[1] if "page=2" in path else PAGES[0]
        return 200, json.dumps(page).replace("{base}", base).encode()

    base = server(answer)
    answered = AZURE.read(AZURE.fetch(base), today)

    assert len(answered.rows) == 5


def test_azure_pages_that_never_end_are_given_up(server, monkeypatch):
    monkeypatch.setattr(azure_source, "MOST_PAGES", 3)
    base = ""
    base = server(lambda path: (200, json.dumps({"Items": [], "NextPageLink": base}).encode()))

    with pytest.raises(FetchError, match="more than 3 pages"):
        AZURE.fetch(base)

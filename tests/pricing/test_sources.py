"""Every live source keeps the interface: valid rows from its recording, and an error for an invalid answer."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from planner.hardware.catalogue import load_gpus
from pricing.sources import SOURCES, Fetched
from pricing.sources.web import FetchError

RECORDED = Path(__file__).parent / "recorded"
PAGES = json.loads((RECORDED / "azure_pages.json").read_text(encoding="utf-8"))
RECORDINGS = {
    "azure": json.dumps({"Items": [item for page in PAGES for item in page["Items"]]}),
    "gpuhunt": (RECORDED / "gpuhunt_items.json").read_text(encoding="utf-8"),
}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_every_source_makes_valid_rows_of_its_recording(source, today):
    rows = source.read(Fetched(source=source.name, text=RECORDINGS[source.name]), today).rows

    assert rows
    for row in rows:
        assert row.gpu in load_gpus()
        assert Decimal("0.05") < row.price_per_gpu_h < 50
        assert (row.date_earliest, row.date_latest) == (today, today)
        assert row.source


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@pytest.mark.parametrize("garbage", ["", "<html>busy</html>", "[1, 2]", '{"Items": [{"x": 1}]}', '[{"price": "?"}]'])
def test_every_source_says_so_when_its_answer_is_garbage(source, garbage, today):
    with pytest.raises(FetchError, match=source.name):
        source.read(Fetched(source=source.name, text=garbage), today)

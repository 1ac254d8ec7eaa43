"""Live sources: every member keeps the interface; recorded answers and a local server stand for the network."""

from __future__ import annotations

import gc
import json
import logging
from decimal import Decimal
from pathlib import Path

import pytest

from planner.hardware.catalogue import load_gpus
from pricing.sources import SOURCES, Fetched
from pricing.sources import azure as azure_source
from pricing.sources.azure import AZURE, machines
from pricing.sources.base import FetchError, cheapest, get_json
from pricing.sources.gpuhunt_catalog import GPUHUNT, read

RECORDED = Path(__file__).parent / "recorded"
PAGES = json.loads((RECORDED / "azure_pages.json").read_text(encoding="utf-8"))
GPUHUNT_ITEMS = [
    {"provider": "aws", "instance_name": "p5.48xlarge", "location": "us-east-1", "price": 55.04, "gpu_count": 8,
     "gpu_name": "H100", "gpu_memory": 80.0, "spot": False},
    {"provider": "gcp", "instance_name": "a3-highgpu-8g", "location": "us-central1-a", "price": 88.0, "gpu_count": 8,
     "gpu_name": "H100", "gpu_memory": 80.0, "spot": False},
    {"provider": "gcp", "instance_name": "a3-highgpu-8g", "location": "us-central1-b", "price": 84.0, "gpu_count": 8,
     "gpu_name": "H100", "gpu_memory": 80.0, "spot": False},
    {"provider": "lambdalabs", "instance_name": "gpu_1x_a10", "location": "us-east-1", "price": 1.29, "gpu_count": 1,
     "gpu_name": "A10", "gpu_memory": 24.0, "spot": True},
    {"provider": "runpod", "instance_name": "x", "location": "any", "price": 0.0, "gpu_count": 1,
     "gpu_name": "L4", "gpu_memory": 24.0, "spot": False},
    {"provider": "vultr", "instance_name": "y", "location": "any", "price": 9.0, "gpu_count": 1,
     "gpu_name": "H100", "gpu_memory": 80.0, "spot": False},
]  # fmt: skip
RECORDINGS = {
    "azure": json.dumps({"Items": [item for page in PAGES for item in page["Items"]]}),
    "gpuhunt": json.dumps(GPUHUNT_ITEMS),
}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_every_source_makes_valid_rows_of_its_recording(source, today):
    rows = source.read(Fetched(source=source.name, text=RECORDINGS[source.name]), today).rows

    assert rows
    for one in rows:
        assert one.gpu in load_gpus()
        assert Decimal("0.05") < one.price_per_gpu_h < 50
        assert (one.date_earliest, one.date_latest) == (today, today)
        assert one.source


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@pytest.mark.parametrize("garbage", ["", "<html>busy</html>", "[1, 2]", '{"Items": [{"x": 1}]}', '[{"price": "?"}]'])
def test_every_source_says_so_when_its_answer_is_garbage(source, garbage, today):
    with pytest.raises(FetchError, match=source.name):
        source.read(Fetched(source=source.name, text=garbage), today)


def test_azure_prices_are_per_gpu_hour_in_every_commitment(today):
    found = AZURE.read(Fetched(source="azure", text=RECORDINGS["azure"]), today)

    assert {(row.region, row.commitment): row.price_per_gpu_h for row in found.rows} == {
        ("eastus", "on-demand"): Decimal("12.29"),  # 98.32 / 8
        ("eastus", "spot"): Decimal("4.916"),
        ("eastus", "1y"): Decimal("7.8657"),  # 551 228 USD for a year / 8 760 h / 8
        ("eastus", "3y"): Decimal("5.3748"),  # 1 130 000 USD for three
        ("westeurope", "on-demand"): Decimal("15.3625"),
    }
    assert found.skipped == {"Windows, or low priority": 2, "not in force yet": 1, "type DevTestConsumption": 1}


def test_azure_machines_are_of_catalogue_gpus():
    assert all(gpu in load_gpus() and gpus >= 1 for gpu, gpus in machines().values())


def test_azure_pages_are_followed_to_the_last(server, today, monkeypatch):
    monkeypatch.setattr(azure_source, "machines", lambda: {"Standard_ND96isr_H100_v5": ("h100-sxm5-80gb", 8)})
    base = ""

    def answer(path):
        page = PAGES[1] if "page=2" in path else PAGES[0]
        return 200, json.dumps(page).replace("{base}", base).encode()

    base = server(answer)
    found = AZURE.read(AZURE.fetch(base), today)

    assert len(found.rows) == 5


def test_azure_pages_that_never_end_are_given_up(server, monkeypatch):
    monkeypatch.setattr(azure_source, "MOST_PAGES", 3)
    base = ""
    base = server(lambda path: (200, json.dumps({"Items": [], "NextPageLink": base}).encode()))

    with pytest.raises(FetchError, match="more than 3 pages"):
        AZURE.fetch(base)


def test_a_server_that_stumbles_twice_is_asked_three_times(server):
    asked = []

    def answer(path):
        asked.append(path)
        return (503, b"busy") if len(asked) < 3 else (200, b'{"ok": 1}')

    assert get_json(server(answer)) == {"ok": 1}
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("status", "body", "times", "said"),
    [(500, b"", 3, "HTTP 500"), (404, b"", 1, "HTTP 404"), (429, b"", 3, "HTTP 429"), (200, b"<html>", 3, "not JSON")],
)
def test_a_server_that_fails_is_given_up_after_bounded_tries(server, status, body, times, said):
    asked = []

    def answer(path):
        asked.append(path)
        return status, body

    with pytest.raises(FetchError, match=said):
        get_json(server(answer))
    assert len(asked) == times


def test_a_server_that_is_not_there_is_said():
    with pytest.raises(FetchError, match=r"127\.0\.0\.1:9/prices"):
        get_json("http://127.0.0.1:9/prices?key=secret")


def test_the_query_of_an_address_is_kept_out_of_messages():
    with pytest.raises(FetchError) as caught:
        get_json("http://127.0.0.1:9/prices?key=secret")

    assert "secret" not in str(caught.value)


def test_an_answer_without_end_is_cut(server, monkeypatch):
    monkeypatch.setattr("pricing.sources.base.LARGEST_ANSWER_BYTES", 10)

    with pytest.raises(FetchError, match="more than"):
        get_json(server(lambda _: (200, b'{"a": "' + b"x" * 100 + b'"}')))


def test_gpuhunt_items_are_per_gpu_with_zones_folded_into_regions(today):
    found = read(Fetched(source="gpuhunt", text=RECORDINGS["gpuhunt"]), today)

    assert {(row.provider, row.region, row.commitment): row.price_per_gpu_h for row in found.rows} == {
        ("aws", "us-east-1", "on-demand"): Decimal("6.88"),
        ("gcp", "us-central1", "on-demand"): Decimal("10.5"),  # the cheaper zone: 84 / 8
        ("lambda", "us-east-1", "spot"): Decimal("1.29"),
    }
    assert found.skipped == {
        "a price of 0, or not plausible": 1,
        "H100: not in the catalogue, or its variant not stated": 1,
    }


def test_without_gpuhunt_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gpuhunt", None)

    with pytest.raises(FetchError, match=r"pip install 'mpplan\[prices\]'"):
        GPUHUNT.fetch("")


CATALOGUE = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,cpu_arch,"
    "provider_data\n"
    "p5.48xlarge,us-east-1,55.04,192,2048,8,H100,80,False,,nvidia,,x86,{}\n"
    "m7i.large,us-east-1,0.1,2,8,0,,,False,,,,x86,{}\n"
)


leaves_files_open = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
"""gpuhunt closes neither catalogues nor failed connections; each test collects them itself, where that is ignored."""


@leaves_files_open
def test_gpuhunt_itself_reads_a_local_folder_of_catalogues(tmp_path, monkeypatch, today):
    pytest.importorskip("gpuhunt")
    (tmp_path / "aws.csv").write_text(CATALOGUE, encoding="utf-8")
    monkeypatch.setenv("GPUHUNT_CATALOG_DIR", str(tmp_path))

    rows = GPUHUNT.read(GPUHUNT.fetch(""), today).rows

    gc.collect()
    assert [(row.provider, row.gpu, str(row.price_per_gpu_h)) for row in rows] == [("aws", "h100-sxm5-80gb", "6.88")]


@leaves_files_open
def test_gpuhunt_itself_is_quiet_and_bounded_where_its_mirror_is_down(server, caplog):
    pytest.importorskip("gpuhunt")
    caplog.set_level(logging.DEBUG)

    with pytest.raises(FetchError, match="gpuhunt: Failed to load"):
        GPUHUNT.fetch(server(lambda _: (500, b"")))
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    gc.collect()


def test_the_cheapest_of_several_zones_is_kept(row):
    rows = [row("3", id="a", region="x"), row("2", id="b", region="X"), row("9", id="c", region="y")]

    assert [one.id for one in cheapest(rows)] == ["b", "c"]

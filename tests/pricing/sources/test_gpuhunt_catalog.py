"""gpuhunt: recorded offers, and gpuhunt itself on a local folder and against a server that is down."""

from __future__ import annotations

import gc
import logging
from decimal import Decimal
from pathlib import Path

import pytest

from pricing.sources import Fetched
from pricing.sources.gpuhunt_catalog import GPUHUNT, read
from pricing.sources.web import FetchError

RECORDED = (Path(__file__).parents[1] / "recorded" / "gpuhunt_items.json").read_text(encoding="utf-8")

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


def test_gpuhunt_items_are_per_gpu_with_zones_folded_into_regions(today):
    answered = read(Fetched(source="gpuhunt", text=RECORDED), today)

    assert {(row.provider, row.region, row.commitment): row.price_per_gpu_h for row in answered.rows} == {
        ("aws", "us-east-1", "on-demand"): Decimal("6.88"),
        ("gcp", "us-central1", "on-demand"): Decimal("10.5"),  # the cheaper zone: 84 / 8
        ("lambda", "us-east-1", "spot"): Decimal("1.29"),
    }
    assert answered.skipped == {
        "a price of 0, or not plausible": 1,
        "H100: not in the catalogue, or its variant not stated": 1,
    }


def test_without_gpuhunt_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gpuhunt", None)

    with pytest.raises(FetchError, match=r"pip install 'mpplan\[prices\]'"):
        GPUHUNT.fetch("")


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

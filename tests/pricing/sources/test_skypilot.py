"""SkyPilot catalogues: per GPU, per region, with the traps of these files."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from planner.errors import InputFileError
from pricing.sources.own_csv import read_frame
from pricing.sources.skypilot import provider_in_path, read_skypilot

HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n"
)
LINES = (
    "p5.48xlarge,H100,8,192,2048,\"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]}\",55.04,19.0,us-east-1,us-east-1a\n"
    "p5.48xlarge,H100,8,192,2048,,55.04,10.1808,us-east-1,us-east-1b\n"
    "p5.48xlarge,H100,8,192,2048,,60.0,60.0,eu-west-2,eu-west-2a\n"  # spot at list price: no discount
    "p5e.48xlarge,H200,8,192,2048,,,20.0,us-east-2,us-east-2a\n"  # capacity blocks only
    "g6.xlarge,L4,1,4,16,,0.8048,0.00,us-east-1,us-east-1a\n"  # spot 0: unknown
    "gr6f.4xlarge,L4,0.5,16,128,,0.7,0.2,us-east-1,us-east-1a\n"
    "m7i.large,,,2,8,,0.1,0.03,us-east-1,us-east-1a\n"
    "g3.4xlarge,M60,1,16,122,,1.14,0.4,us-east-1,us-east-1a\n"
)


@pytest.fixture
def read(tmp_path, today):
    def make(text, provider="aws"):
        path = tmp_path / "vms.csv"
        path.write_text(text, encoding="utf-8")
        return read_skypilot(read_frame(path.read_bytes(), path.name), "vms.csv", provider, today, "vms.csv sha256:0")

    return make


def test_prices_are_of_one_gpu_in_the_cheapest_zone_of_a_region(read):
    rows = {(row.gpu, row.region, row.commitment): row.price_per_gpu_h for row in read(HEADER + LINES).rows}

    assert rows == {
        ("h100-sxm5-80gb", "us-east-1", "on-demand"): Decimal("6.88"),
        ("h100-sxm5-80gb", "us-east-1", "spot"): Decimal("1.2726"),
        ("h100-sxm5-80gb", "eu-west-2", "on-demand"): Decimal("7.5"),
        ("h200-sxm-141gb", "us-east-2", "spot"): Decimal("2.5"),
        ("l4", "us-east-1", "on-demand"): Decimal("0.8048"),
    }


def test_what_is_left_out_is_counted_by_reason(read):
    assert read(HEADER + LINES).skipped == {
        "no GPU": 1,
        "part of a GPU, or no count": 1,
        "GPU not in the catalogue, or its variant not stated (M60)": 1,
        "spot price not below on-demand: no discount": 1,
    }


def test_memory_tells_two_parts_of_one_name_apart_even_in_the_wrong_unit(read):
    lines = (
        "a,A100-SXM,1,1,1,\"{'SizeInMiB': 80}\",1.0,,any,\n"  # RunPod writes GiB into SizeInMiB
        "b,A100-SXM,1,1,1,\"{'SizeInMiB': 40960}\",0.9,,any,\n"
    )

    assert [row.gpu for row in read(HEADER + lines, "acme").rows] == ["a100-sxm4-40gb", "a100-sxm4-80gb"]


def test_a_price_of_a_whole_cluster_is_left_out(read):
    imported = read(HEADER + "p5.48xlarge,H100,8,1,1,,9999,,us-east-1,\n")

    assert imported.rows == ()
    assert imported.skipped == {"more than 200 USD per GPU-hour": 1}


def test_hosts_of_a_marketplace_are_marked(read):
    assert read(HEADER + "8x-H100_SXM,H100-SXM,8,1,1,,14.4,0.00,any,\n", "vast").rows[0].seller == "marketplace"


def test_another_file_is_refused(read):
    with pytest.raises(InputFileError, match=r"vms.csv:1: AcceleratorName: expected a column"):
        read("InstanceType,Price\np5,1\n")


def test_the_provider_stands_in_the_path():
    assert provider_in_path(Path("x/catalogs/v9/aws/vms.csv")) == "aws"
    assert provider_in_path(Path("vms.csv")) is None

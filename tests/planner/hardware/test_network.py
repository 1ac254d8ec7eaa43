"""Networks in the words of published runs, which need only contain a rate."""

from __future__ import annotations

import csv

import pytest

from planner.hardware.network import FABRICS, NETWORKS, describe_network
from planner.rows import CATALOG


@pytest.mark.parametrize(
    ("words", "node", "gb_per_s"),
    [
        ("8x200Gb HDR IB per DGX A100 (Selene)", 8, 25.0),
        ("4x100Gb Omni-Path per node", 4, 12.5),
        ("4x100Gb Omni-Path per node", 8, 6.25),
        ("Jean Zay V100: 4 GPUs/node, 4x100Gb Omni-Path", 4, 12.5),
        ("400 Gb/s RDMA per GPU", 8, 50.0),
        ("400Gb/s CX-7 per GPU", 8, 50.0),
        ("1600 Gb/s RoCE per node", 8, 25.0),
        ("8x50GB/s IB", 8, 50.0),
        ("2x200Gb/s InfiniBand per GPU", 8, 50.0),  # ports of each GPU, not of its node
        ("2x NDR per GPU", 8, 100.0),
        ("Slingshot-11, 4x200Gb per node", 8, 12.5),
        ("HDR IB (Selene)", 8, 25.0),
        # lists of parts: neither NVLink, storage nor management is what ranks train over
        ("accelerator: NVLINK Gen4 900 GB/s + NVSWITCH Gen3; host: Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: "
         "8x ConnectX-7 IB NDR 400Gb/s, Management: 100Gb/s Ether", 8, 50.0),
        ("accelerator: 12xNVLink 25GB/s + 6xNVSwitch; host: 8x ConnectX-7 IB NDR 400Gb/Sec", 8, 50.0),
        ("accelerator: NVLink 3.0 600GB/s; host: 2x ConnectX-6 IB HDR 200Gb/Sec", 4, 12.5),
        ("accelerator: NVLINK 3.0, NVSWITCH 2.0 600GB/s; host: Compute: 4 x Mellanox Technologies MT28908 Family "
         "[ConnectX-6] HDR 200 Gb/Sec +  Management: 1 x Mellanox T", 8, 12.5),
        ("accelerator: N/A; host: 2x Cornelis Networks Omni-Path HFI Adapter 100 Series 100Gb/Sec", 4, 6.25),
        ("accelerator: PCIe Gen4; host: BF3 200Gbps for NS and 2xBF3 400Gbps for EW", 4, 25.0),
        ("accelerator: NVLINK 3.0, NVSWITCH 2.0 600GB/s; host: 1x Ethernet 40Gb/Sec, 8x ConnectX-6 IB HDR 200Gb/Sec",
         8, 25.0),
        # cut off after the compute ports: their generation is that of the storage ports
        ("accelerator: NVLINK 2.0, NVSWITCH 1.0 300GB/s; host: Storage: 2x ConnectX-5 IB EDR 100Gb/Sec, Management: "
         "1x ConnectX-5 Ethernet 100Gb/Sec, Compute: 8x ConnectX", 16, 6.25),
    ],
)  # fmt: skip
def test_a_description_of_a_cluster_becomes_a_rate_per_gpu(words, node, gb_per_s):
    assert describe_network(words, node).bytes_per_s == pytest.approx(gb_per_s * 1e9)


@pytest.mark.parametrize(
    "words",
    [
        "NVL72",
        "",
        "accelerator: 8x 4th Gen NVLink, 900GB/s; host: Infiniband, Ethernet",
        "accelerator: NVLINK Gen4 900 GB/s + NVSWITCH Gen3; host: ROCE2; Data bandwidth for GPU-PCIe: 504 GB/s; "
        "PCIe-NIC: 500 GB/s",
        "accelerator: NVLINK 3.0, 200GB/s; host:",
        "accelerator: N/A; host: N/A",
    ],
)
def test_a_description_without_a_rate_gives_none(words):
    assert describe_network(words, 8).bytes_per_s is None


CELLS = {
    "": None,
    "1600 Gb/s RoCE per node": 25.0,
    "400 Gb/s RDMA per GPU": 50.0,
    "400Gb/s CX-7 per GPU": 50.0,
    "4x100Gb EFA per p4d node": 6.25,
    "4x100Gb Omni-Path per node": 6.25,
    "4x100Gb RoCE per node": 6.25,
    "8x200Gb HDR IB per DGX A100 (Selene)": 25.0,
    "8x200Gb HDR IB per node (Selene)": 25.0,
    "8x400Gb IB per node (Eos class)": 50.0,
    "8x50GB/s IB": 50.0,
    "Azure NDm A100 v4: 8x200Gb HDR IB": 25.0,
    "HDR IB (Selene)": 25.0,
    "Jean Zay V100: 4 GPUs/node, 4x100Gb Omni-Path": 6.25,
    "NVL72": None,
    "Slingshot-11, 4x200Gb per node": 12.5,
}
"""Cells of the published runs, on nodes of eight GPUs: GB/s per GPU, None where the cell gives no rate."""


def test_the_network_cells_of_the_published_runs_are_read_as_before():
    with (CATALOG / "published_runs.csv").open(encoding="utf-8", newline="") as file:
        cells = {row["network"] for row in csv.DictReader(file)}

    assert set(CELLS) <= cells
    for words, gb_per_s in CELLS.items():
        rate = describe_network(words, 8).bytes_per_s
        assert (None if rate is None else rate / 1e9) == gb_per_s


def test_every_named_network_has_its_own_name_a_rate_and_a_source():
    assert len({row.name for row in NETWORKS}) == len(NETWORKS)
    for row in NETWORKS:
        assert describe_network(row.name, 8).bytes_per_s == row.gbit_per_s * 1e9 / 8
        assert row.source


def test_no_published_run_has_a_network_between_servers_as_fast_as_nvlink():
    with (CATALOG / "published_runs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    rates = [describe_network(row["network"], int(row["gpus_per_node"] or 8)).bytes_per_s for row in rows]

    assert max(rate for rate in rates if rate is not None) == 50e9  # 400 Gb/s per GPU


@pytest.mark.parametrize(
    ("words", "fabric"),
    [
        ("AWS EFA, 3200 Gb/s per node", "efa"),
        ("8x200Gb HDR IB per DGX A100 (Selene)", "infiniband"),
        ("Compute: 8x NVIDIA ConnectX-7 IB NDR 400Gb/s, Management: 100Gb/s Ether", "infiniband"),
        ("Compute: 8x NVIDIA Quantum-2 400Gb/s InfiniBand", "infiniband"),
        ("8x Mellanox HDR100 100 Gb / Sec", "infiniband"),
        ("1600 Gb/s RoCE per node", "roce"),
        ("host: ROCE2", "roce"),
        ("Slingshot-11, 4x200Gb per node", "slingshot"),
        ("4x100Gb Omni-Path per node", "omni-path"),
        ("400 Gb/s RDMA per GPU", ""),
        ("NVL72", ""),
        ("accelerator: 8x 4th Gen NVLink, 900GB/s; host: Infiniband, Ethernet", "infiniband"),
        ("accelerator: NVLINK 3.0 600GB/s; host: Storage: 2x ConnectX-6 IB HDR 200Gb/sec, Compute: 8x ConnectX",
         "infiniband"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_description_names_its_kind_of_network_or_none(words, fabric):
    assert describe_network(words, 8).fabric == fabric


def test_every_named_network_is_of_a_known_kind():
    assert all(describe_network(row.name, 8).fabric in FABRICS for row in NETWORKS)

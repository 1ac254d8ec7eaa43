"""Machines: what the catalogue gives, what the user says, what is assumed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.hardware.catalogue import find_gpu, load_gpus
from planner.hardware.cluster import DEFAULT_NIC_BYTES_PER_S, make_cluster
from planner.hardware.network import Network


@pytest.mark.parametrize(
    ("gpu", "node", "domain"),
    [
        ("h100-sxm5-80gb", 8, 8),
        ("gb200-nvl72-186gb", 4, 72),
        ("l40s", 8, 1),
        ("a100-pcie-80gb", 4, 2),
        ("v100-sxm3-32gb", 16, 16),
    ],
)
def test_the_nvlink_domain_is_the_node_or_the_rack(gpu, node, domain):
    machines = make_cluster(find_gpu(gpu))

    assert (machines.gpus_per_node, machines.nvlink_domain) == (node, domain)


def test_half_a_node_is_half_a_domain():
    machines = make_cluster(find_gpu("h100-sxm5-80gb"), gpus_per_node=4)

    assert machines.nvlink_domain == 4


def test_a_network_that_nobody_states_is_assumed_and_said_so():
    unknown = next(gpu for gpu in load_gpus().values() if gpu.nic_bytes_per_s is None)
    assumed = make_cluster(unknown)
    stated = make_cluster(unknown, network=Network(bytes_per_s=50e9, fabric="efa"))

    assert assumed.nic_assumed
    assert assumed.nic_bytes_per_s == DEFAULT_NIC_BYTES_PER_S == 12.5e9  # 100 Gbit/s
    assert not stated.nic_assumed
    assert stated.nic_bytes_per_s == 50e9


def test_the_catalogue_s_network_is_per_gpu():
    assert make_cluster(find_gpu("h100-sxm5-80gb")).nic_bytes_per_s == 50e9  # 400 Gbit/s


def test_the_limit_of_a_gpu_is_the_one_that_is_set_and_never_above_the_datasheet_s():
    h100 = find_gpu("h100-sxm5-80gb")  # 700 W

    assert [make_cluster(h100, power_limit_w=set_w).limit_w for set_w in (None, 500.0, 900.0)] == [700.0, 500.0, 700.0]


@pytest.mark.parametrize(
    ("gpu", "per_node", "desktop"),
    [
        ("rtx-4090", 1, True), ("rtx-4090", 2, True), ("rtx-4090", 8, False), ("h100-sxm5-80gb", 1, False),
        ("h100-sxm5-80gb", 8, False), ("gh200-96gb", 1, False),
    ],
)  # fmt: skip
def test_one_or_two_cards_lie_in_a_desktop_and_what_is_sold_as_a_server_never_does(gpu, per_node, desktop):
    assert make_cluster(find_gpu(gpu), gpus_per_node=per_node).is_desktop is desktop


@pytest.mark.parametrize(
    ("cards", "in_one"),
    [(1, 1), (2, 2), (3, 3), (7, 7), (8, 8), (10, 5), (11, 8), (12, 6), (13, 8), (14, 7), (16, 8), (17, 8), (26, 8)],
)
def test_cards_lie_in_equal_machines_or_in_full_ones_of_which_the_last_is_part_full(cards, in_one):
    machines = make_cluster(find_gpu("rtx-4090"), gpus_per_node=1, sized_by_number=True)

    assert machines.holding(cards).gpus_per_node == in_one
    assert replace(machines, sized_by_number=False).holding(cards) == replace(machines, sized_by_number=False)

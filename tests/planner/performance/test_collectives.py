"""Times of collectives against nccl-tests' bus factors and the measured tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.hardware.catalogue import load_gpus
from planner.hardware.interconnect import load_interconnect
from planner.kernels.collectives import collective_surfaces
from planner.parallelism.layout import Layouts
from planner.performance.collectives import all_reduce_s, all_to_all_s, gather_s, place, place_on, scatter_s, send_s
from planner.performance.step import step_times
from tests.planner.build import ROUNDING, cluster, layout, mid_rates, plain_rates, recipe


def group(size: int, domain: int = 8, stride: int = 1):
    return place(np.array([size]), np.array([stride]), domain)


@pytest.mark.parametrize(
    ("size", "stride", "domain", "inside"),
    [(8, 1, 8, 8), (8, 2, 8, 4), (4, 8, 8, 1), (64, 1, 8, 8), (64, 1, 72, 64), (16, 4, 72, 16), (2, 16, 8, 1)],
)
def test_ranks_inside_a_domain_follow_from_size_and_stride(size, stride, domain, inside):
    placed = group(size, domain, stride)

    assert int(placed.inside[0]) == inside
    assert bool(placed.crosses[0]) == (inside < size)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_inside_a_node_the_bus_bandwidth_is_the_link_s_with_the_factors_of_nccl_tests(ranks):
    # doc/PERFORMANCE.md: busbw = algbw x 2(n-1)/n for all-reduce, x (n-1)/n for the others
    size, rate = 1e9, 400e9
    rates = plain_rates(nvlink_bytes_per_s=rate)

    assert size / float(all_reduce_s(size, group(ranks), rates)[0]) * 2 * (ranks - 1) / ranks == pytest.approx(rate)
    assert size / float(gather_s(size, group(ranks), rates)[0]) * (ranks - 1) / ranks == pytest.approx(rate)
    assert size / float(all_to_all_s(size, group(ranks), rates)[0]) * (ranks - 1) / ranks == pytest.approx(rate)


def test_between_nodes_every_gpu_s_nic_carries_its_share_of_what_enters_the_node():
    rates = plain_rates(nvlink_bytes_per_s=1e15, nic_bytes_per_s=50e9)
    size = 8e9

    # 4 nodes of 8: three quarters of the buffer enter a node, through 8 NICs
    assert float(gather_s(size, group(32), rates)[0]) == pytest.approx(size * 0.75 / (8 * 50e9))
    assert float(all_reduce_s(size, group(32), rates)[0]) == pytest.approx(2 * size * 0.75 / (8 * 50e9))
    # all-to-all: three quarters of what a rank sends leaves through its own NIC
    assert float(all_to_all_s(size, group(32), rates)[0]) == pytest.approx(size * 0.75 / 50e9)


def test_a_group_that_does_not_fill_its_nodes_waits_for_the_node_with_the_fewest_nics():
    rates = plain_rates(nvlink_bytes_per_s=1e15, nic_bytes_per_s=50e9)
    size = 8e9

    # 12 ranks on nodes of 8: at best 6 on each; half of the buffer enters a node, through 6 NICs
    assert float(gather_s(size, group(12), rates)[0]) == pytest.approx(size / 2 / (6 * 50e9))
    assert float(all_reduce_s(size, group(12), rates)[0]) == pytest.approx(size / (6 * 50e9))
    assert float(all_to_all_s(size, group(12), rates)[0]) == pytest.approx(size / 2 / 50e9)
    # 9 ranks: at best 5 and 4; five ninths of the buffer enter the smaller node, through 4 NICs
    assert float(gather_s(size, group(9), rates)[0]) == pytest.approx(size * 5 / 9 / (4 * 50e9))
    # 128 ranks on racks of 72: 64 on each
    assert float(gather_s(size, group(128, 72), rates)[0]) == pytest.approx(size / 2 / (64 * 50e9))


def test_a_group_in_one_node_without_nvlink_goes_over_pcie_and_never_waits_for_the_network():
    rates = plain_rates(nvlink_bytes_per_s=20e9, nic_bytes_per_s=1e9)  # the link of a node without NVLink is PCIe
    cards = cluster("l40s", gpus_per_node=8)
    inside, outside = place_on(cards, np.array([8])), place_on(cards, np.array([16]))

    assert float(gather_s(8e9, inside, rates)[0]) == pytest.approx(8e9 * 7 / 8 / 20e9)
    assert float(send_s(8e9, inside.crosses, rates)[0]) == pytest.approx(8e9 / 20e9)
    assert float(gather_s(8e9, outside, rates)[0]) == pytest.approx(8e9 / 2 / (8 * 1e9))


def test_cards_that_nvlink_joins_in_pairs_reach_the_others_of_their_node_over_pcie():
    rates = plain_rates(nvlink_bytes_per_s=300e9, pcie_bytes_per_s=20e9, nic_bytes_per_s=1e9, nvls_gain_ratio=2.0)
    cards = cluster("h100-pcie-80gb", gpus_per_node=4)
    pair, whole = place_on(cards, np.array([2])), place_on(cards, np.array([4]))

    assert float(gather_s(8e9, pair, rates)[0]) == pytest.approx(8e9 / 2 / 300e9)
    assert float(gather_s(8e9, whole, rates)[0]) == pytest.approx(8e9 * 3 / 4 / 20e9)  # the slowest edge of the ring
    assert float(all_reduce_s(8e9, whole, rates)[0]) == pytest.approx(2 * 8e9 * 3 / 4 / 20e9)
    assert float(all_to_all_s(8e9, whole, rates)[0]) == pytest.approx(8e9 / 2 / 20e9)
    assert float(send_s(8e9, whole.crosses, rates, bridged=True)[0]) == pytest.approx(8e9 / 20e9)


def test_where_each_pair_of_gpus_has_its_own_link_a_small_group_has_few_of_them():
    rates = plain_rates(nvlink_bytes_per_s=7 * 50e9)
    mesh = cluster("mi300x-192gb")
    pair, four, node = (place_on(mesh, np.array([ranks])) for ranks in (2, 4, 8))

    assert float(gather_s(8e9, pair, rates)[0]) == pytest.approx(8e9 / 2 / 50e9)  # one link of seven
    assert float(all_reduce_s(8e9, four, rates)[0]) == pytest.approx(2 * 8e9 * 3 / 4 / 150e9)
    assert float(all_to_all_s(8e9, four, rates)[0]) == pytest.approx(8e9 / 4 / 50e9)  # a quarter to each peer
    assert float(gather_s(8e9, node, rates)[0]) == pytest.approx(8e9 * 7 / 8 / 350e9)
    assert float(send_s(8e9, pair.crosses, rates, link_share=pair.peer_share)[0]) == pytest.approx(8e9 / 50e9)
    # behind a switch, two GPUs have all of their links
    switched = place_on(cluster("h100-sxm5-80gb"), np.array([2]))
    assert float(gather_s(8e9, switched, rates)[0]) == pytest.approx(8e9 / 2 / 350e9)


def test_all_reduce_over_two_pairs_of_a100_reaches_what_a_healthy_machine_does():
    row = load_interconnect()["ic178"]
    cards = cluster("a100-pcie-80gb", gpus_per_node=4)
    rates, size = mid_rates(recipe(), cards), row.message_bytes
    seconds = float(np.ravel(all_reduce_s(size, place_on(cards, np.array([4])), rates))[0])

    assert size / seconds * 2 * 3 / 4 == pytest.approx(row.bus_bytes_per_s, rel=0.2)


@pytest.mark.parametrize("gpu", sorted(load_gpus()))
def test_what_runs_in_one_node_does_not_depend_on_the_network(gpu):
    training, machines = recipe(sequence_parallel=False), cluster(gpu, gpus_per_node=8)
    splits = [{"dp": 8, "zero": 3}, {"dp": 4, "tp": 2}, {"pp": 4, "dp": 2}, {"tp": 8}, {"cp": 2, "dp": 4, "zero": 1}]
    at = Layouts.of(*(layout(**split) for split in splits))

    def step_s(**network: float):
        rates = plain_rates(nvlink_bytes_per_s=1e9, pcie_bytes_per_s=1e9, **network)
        return step_times(training, machines, at, rates).total

    slow = step_s(nic_bytes_per_s=1e3, nic_latency_s=1.0, node_hop_s=1.0, node_doubling_s=1.0)
    assert list(slow) == pytest.approx(list(step_s(nic_bytes_per_s=1e15)))
    assert len(slow) == len(splits)


def test_tokens_that_share_a_node_cross_the_network_once():
    rates = plain_rates(nvlink_bytes_per_s=1e15, nic_bytes_per_s=50e9)

    whole, shared = (float(all_to_all_s(1e9, group(32), rates, copies)[0]) for copies in (1.0, 0.5))
    assert shared == pytest.approx(whole / 2)


@pytest.mark.parametrize(("forwards", "share"), [(False, 7 / 16), (True, 7 / 8)])
def test_what_one_gpu_of_a_node_copies_to_the_others_moves_over_their_links_again(forwards, share):
    rates = plain_rates(nvlink_bytes_per_s=200e9, nic_bytes_per_s=1e15)

    # Of 16 ranks on two nodes, half of the bytes end on either node, 7/8 of them on another GPU than the first there.
    assert float(all_to_all_s(1e9, group(16), rates, 0.25, forwards=forwards)[0]) == pytest.approx(1e9 * share / 200e9)


def test_the_switch_reduces_within_each_of_two_nodes_as_their_measured_rate_shows():
    # interconnect.csv ic127: 487 GB/s on the bus over 2 x 8 H100, where a ring stays below 0.82 of 450 (ic041)
    rates = plain_rates(nvlink_bytes_per_s=367e9, nic_bytes_per_s=50e9, nvls_gain_ratio=1.3)
    seconds = float(all_reduce_s(17179869184.0, group(16), rates)[0])

    assert 17179869184.0 / seconds * 2 * 15 / 16 == pytest.approx(487e9, rel=0.05)


def test_in_switch_reduction_helps_all_reduce_in_a_node_of_more_than_four_only():
    rates = plain_rates(nvlink_bytes_per_s=400e9, nvls_gain_ratio=1.3)
    ring = plain_rates(nvlink_bytes_per_s=400e9, nvls_gain_ratio=1.0)

    gains = {n: float(all_reduce_s(1e9, group(n), ring)[0] / all_reduce_s(1e9, group(n), rates)[0]) for n in (4, 8)}
    assert gains == {4: 1.0, 8: pytest.approx(1.3)}
    assert float(gather_s(1e9, group(8), rates)[0]) == float(gather_s(1e9, group(8), ring)[0])


def test_latency_is_fixed_plus_hops_and_stops_growing_at_64_hops():
    rates = plain_rates(
        nvlink_latency_s=10e-6, nic_latency_s=30e-6, hop_latency_s=1e-6, nvlink_bytes_per_s=1e12, nic_bytes_per_s=1e12
    )

    assert float(gather_s(0.0, group(8), rates)[0]) == pytest.approx(10e-6 + 7e-6)
    assert float(all_reduce_s(0.0, group(8), rates)[0]) == pytest.approx(10e-6 + 14e-6)
    assert float(gather_s(0.0, group(64), rates)[0]) == pytest.approx(30e-6 + 63e-6)
    assert float(gather_s(0.0, group(4096), rates)[0]) == pytest.approx(30e-6 + 64e-6)


def test_each_further_node_takes_as_long_as_the_one_before():
    rates = plain_rates(node_hop_s=250e-6, nvlink_bytes_per_s=1e12, nic_bytes_per_s=1e12)

    assert float(gather_s(0.0, group(8), rates)[0]) == 0.0
    assert float(gather_s(0.0, group(64), rates)[0]) == pytest.approx(7 * 250e-6)
    assert float(all_reduce_s(0.0, group(64), rates)[0]) == pytest.approx(7 * 250e-6)
    assert float(all_to_all_s(0.0, group(64), rates)[0]) == 0.0


def test_each_doubling_of_the_nodes_takes_as_long_as_the_one_before():
    rates = plain_rates(node_doubling_s=250e-6, nvlink_bytes_per_s=1e12, nic_bytes_per_s=1e12)

    for collective in (gather_s, all_reduce_s):
        assert float(collective(0.0, group(8), rates)[0]) == 0.0
        assert float(collective(0.0, group(16), rates)[0]) == pytest.approx(250e-6)
        assert float(collective(0.0, group(64), rates)[0]) == pytest.approx(3 * 250e-6)
    assert float(all_to_all_s(0.0, group(64), rates)[0]) == 0.0


def test_small_messages_on_a_stream_take_their_share_of_what_further_nodes_add():
    rates = plain_rates(node_doubling_s=1e-3, node_latency_bytes=1e6, nvlink_bytes_per_s=1e30, nic_bytes_per_s=1e30)

    for collective in (gather_s, scatter_s, all_reduce_s):
        streamed = [float(collective(size, group(16), rates, 1.0)[0]) for size in (1e5, 1e6, 1e8)]
        assert streamed == pytest.approx([1e-4, 1e-3, 1e-3])
        assert float(collective(1e6, group(16), rates, 10.0)[0]) == pytest.approx(10 * 1e-4)
        assert float(collective(1e5, group(16), rates)[0]) == pytest.approx(1e-3)  # compute waits for it


def test_every_message_waits_anew_and_the_bytes_pass_once():
    rates = plain_rates(node_doubling_s=1e-3, nvlink_bytes_per_s=1e12, nic_bytes_per_s=1e9)

    for collective, factor in ((gather_s, 1), (all_reduce_s, 2)):
        whole, parts = (float(collective(1e9, group(16), rates, messages)[0]) for messages in (1, 33))
        assert whole == pytest.approx(factor * 1e9 * 8 / 16 / (8 * 1e9) + 1e-3)
        assert parts == pytest.approx(whole + 32e-3)


def test_one_rank_has_nobody_to_talk_to():
    rates = plain_rates(nvlink_latency_s=1.0, nic_latency_s=1.0, hop_latency_s=1.0)

    assert [float(f(1e9, group(1), rates)[0]) for f in (gather_s, all_reduce_s, all_to_all_s)] == [0, 0, 0]


def test_a_message_to_the_next_stage_takes_the_link_it_crosses():
    rates = plain_rates(nvlink_bytes_per_s=400e9, nic_bytes_per_s=50e9, nvlink_latency_s=1e-5, nic_latency_s=3e-5)

    inside, outside = (float(send_s(1e9, np.array([crosses]), rates)[0]) for crosses in (False, True))
    assert inside == pytest.approx(1e9 / 400e9 + 1e-5)
    assert outside == pytest.approx(1e9 / 50e9 + 3e-5)


@given(
    size=st.floats(1, 1e11), more=st.floats(1, 1e11), ranks=st.sampled_from((1, 2, 4, 8, 16, 64, 1024)),
    stride=st.sampled_from((1, 2, 4, 8)),
)  # fmt: skip
def test_more_bytes_never_take_less_time(size, more, ranks, stride):
    rates = mid_rates(recipe(), cluster())
    where = group(ranks, 8, stride)

    for collective in (gather_s, all_reduce_s, all_to_all_s):
        assert float(collective(size, where, rates)[0]) <= float(collective(size + more, where, rates)[0]) * ROUNDING


@pytest.mark.parametrize(
    "row",
    [
        row
        for row in load_interconnect().values()
        if row.kind == "measured"
        and row.collective in ("all_reduce", "all_gather", "reduce_scatter")
        and row.bus_bytes_per_s
        and row.nodes == 1
        and (row.message_bytes or 0) >= 8 << 30
        and row.gpu_id in ("a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm-180gb")
    ],
    ids=lambda row: f"{row.gpu_id} {row.collective} {row.message_bytes / 2**30:.0f}GiB {row.id}",
)
def test_large_messages_in_a_node_come_within_a_fifth_of_the_measured_tables(row):
    # nothing above 512 MiB is in the surfaces but the slope there
    if row.collective == "all_reduce" and row.gpus > 4 and (row.algorithm or "").startswith("Ring"):
        pytest.skip("the switch was told not to reduce")
    where = group(row.gpus)
    factor, collective = {"all_reduce": (2, all_reduce_s), "all_gather": (1, gather_s)}.get(
        row.collective, (1, scatter_s)
    )

    taken_s = float(collective(row.message_bytes, where, alone(row.gpu_id))[0])
    bus = row.message_bytes / taken_s * factor * (row.gpus - 1) / row.gpus
    assert bus / row.bus_bytes_per_s == pytest.approx(1, abs=0.2)


def alone(gpu: str):
    """Rates under which collectives run as they were measured: nothing beside them."""
    surfaces = collective_surfaces(load_gpus()[gpu])
    assert surfaces is not None
    return mid_rates(recipe(), cluster(gpu)).replaced(nvlink_bytes_per_s=surfaces.large_bytes_per_s)


@pytest.mark.parametrize(
    ("collective", "gpus", "mib", "microseconds"),
    [
        (all_reduce_s, 8, 16, 124), (gather_s, 8, 16, 70), (scatter_s, 8, 16, 71), (all_to_all_s, 8, 16, 75),
        (all_reduce_s, 2, 1, 15), (gather_s, 4, 256, 659),
    ],
)  # fmt: skip
def test_collectives_in_a_node_take_what_was_measured_at_their_size_and_group(collective, gpus, mib, microseconds):
    # nccl_one_node: h100_sxm, median over NCCL 2.23, 2.27.3 and 2.29.2, half and int8
    seconds = float(collective(mib * 2.0**20, group(gpus), alone("h100-sxm5-80gb"))[0])

    assert seconds == pytest.approx(microseconds * 1e-6, rel=0.06)


def test_many_small_messages_take_each_its_own_time():
    rates = alone("h100-sxm5-80gb")
    one_message_s, sixteen_messages_s = (
        float(gather_s(size, group(8), rates, count)[0]) for size, count in ((2.0**20, 1), (2.0**24, 16))
    )

    assert sixteen_messages_s == pytest.approx(16 * one_message_s)


def test_layouts_of_groups_inside_and_across_nodes_take_each_what_they_take_alone():
    rates, sizes = mid_rates(recipe(), cluster()), np.array([1e6, 2e8, 3e8, 4e8])
    ranks = np.array([8, 16, 1, 4])

    together = all_reduce_s(sizes, place(ranks, 1, 8), rates)
    for taken_s, size, count in zip(together, sizes, ranks, strict=True):
        assert taken_s == pytest.approx(float(all_reduce_s(size, group(int(count)), rates)[0]))


def test_a_slower_link_stretches_every_collective_alike():
    rates = alone("h100-sxm5-80gb")
    half = rates.replaced(nvlink_bytes_per_s=rates.nvlink_bytes_per_s / 2)

    for collective in (gather_s, scatter_s, all_reduce_s, all_to_all_s):
        assert float(collective(1e8, group(8), half)[0]) == pytest.approx(
            2 * float(collective(1e8, group(8), rates)[0])
        )


def test_a_domain_of_a_rack_adds_hops_to_the_largest_group_that_was_measured():
    rates = alone("gb200-186gb")
    small, large = (float(gather_s(2.0**27, group(size, 72), rates)[0]) for size in (8, 64))

    grown = 2.0**27 * (63 / 64 - 7 / 8) / (2.0**27 * 7 / 8) * small
    assert large == pytest.approx(small + grown + 56 * rates.hop_latency_s)

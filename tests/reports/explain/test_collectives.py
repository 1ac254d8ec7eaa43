from __future__ import annotations

import pytest

from planner.performance.transfers import CARRIED
from planner.rates.ladder import resolve_rates
from planner.used.collectives import collectives_used
from reports.explain.collectives import CONTENTS, OPERATIONS, collective_nodes
from tests.planner.build import cluster, layouts, recipe

ROW = {
    "item": "tp_comm", "operation": "reduce_scatter", "carries": "activations", "gpus": 8, "domains": 1,
    "message_bytes": 134217728.0, "per_step": 4096.0, "message_s": 4.4e-4, "bus_gb_per_s": 266.8,
    "exposed_ratio": 0.3, "share_ratio": 0.5, "evidence": "kernels:collectives:h100-sxm5-80gb",
}  # fmt: skip


def plan(*rows: dict[str, object], **step: float):
    return {"collectives": list(rows), "step_s": {"tp_comm": 2.0, "dp_comm": 0.4} | step}


def test_a_collective_shows_its_size_group_number_time_rate_and_source():
    (node, _) = collective_nodes(plan(ROW, ROW | {"operation": "all_gather"}), "tp_comm")

    assert node.label == "Reduce-scatter of activations, 128 MiB among 8 GPUs of an NVLink domain"
    assert (node.value, node.unit) == (1.0, "s")
    assert node.note == "4,096 per step, 440 µs each, bus bandwidth 267 GB/s; 30% not hidden behind compute"
    assert node.evidence == ("kernels:collectives:h100-sxm5-80gb",)


def test_what_slows_compute_beside_the_messages_is_a_line_of_its_own():
    gradients = ROW | {"item": "dp_comm", "carries": "gradients", "gpus": 64, "domains": 8, "share_ratio": 0.75}
    first, beside = collective_nodes(plan(gradients), "dp_comm")

    assert first.label.endswith("among 64 GPUs of 8 NVLink domains")
    assert beside.value == pytest.approx(0.1)
    assert beside.label.startswith("Slowdown of overlapped compute")


@pytest.mark.parametrize(
    ("gpus", "nodes", "group", "item", "ending"),
    [(8, 1, 8, "tp_comm", "among 8 GPUs over PCIe"), (64, 8, 8, "tp_comm", "among 8 GPUs over PCIe"),
     (64, 8, 16, "tp_comm", "among 16 GPUs without NVLink"), (64, 8, 8, "dp_comm", "among 8 GPUs without NVLink")],
)  # fmt: skip
def test_cards_without_nvlink_are_joined_by_pcie_in_their_machine(gpus, nodes, group, item, ending):
    cards = plan(ROW | {"item": item, "gpus": group, "domains": group, "share_ratio": 1.0})
    (node,) = collective_nodes(cards | {"gpu": "rtx-4090", "gpus": gpus, "nodes": nodes}, item)

    assert node.label.endswith(ending)


@pytest.mark.parametrize(("exposed", "words"), [(0.0, "all hidden behind compute"), (1.0, "none of it hidden")])
def test_all_and_none_are_said_in_words(exposed, words):
    (node,) = collective_nodes(plan(ROW | {"exposed_ratio": exposed, "share_ratio": 1.0}), "tp_comm")

    assert words in node.note


def test_an_item_that_is_hidden_whole_has_no_rest():
    (node,) = collective_nodes(plan(ROW | {"share_ratio": 0.0}, tp_comm=0.0), "tp_comm")

    assert node.value == 0


def test_an_older_answer_lists_none():
    assert collective_nodes({"step_s": {"tp_comm": 1.0}}, "tp_comm") == ()


def test_there_are_words_for_all_that_is_sent():
    training = recipe("mixtral-8x7b", sequence_parallel=False)
    rows = collectives_used(training, cluster(), layouts(tp=2, pp=2, dp=16, ep=8), resolve_rates(cluster(), training))

    assert {row.operation for row in rows} <= set(OPERATIONS)
    assert set(CARRIED) == set(CONTENTS)

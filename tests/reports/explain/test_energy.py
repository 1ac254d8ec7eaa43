"""The energy of hosts, switches and the building as products that a reader can check."""

import pytest

from reports.explain.derivation import Node, made_of
from reports.explain.energy import (
    building_node,
    constant_power_node,
    gpu_node,
    mean_power_node,
    peak_power_node,
    power_node,
)

ITEMS = {"gpu": 180.0, "host": 92.0, "network": 8.0, "pue_overhead": 70.0}


def test_gpus_are_gpu_hours_times_the_watts_of_training_times_what_standing_still_leaves():
    hours, power = Node(label="GPU-hours", value=360_000.0), Node(label="Power of a GPU", value=540.0, unit="W")
    node = gpu_node(180.0, hours, power)

    assert node.children[2].value == pytest.approx(180e6 / (360_000 * 540))
    assert made_of(node.children, node.how) == pytest.approx(180.0)
    assert gpu_node(0.0, hours, Node(label="Power of a GPU", value=None)).children == ()


def test_hosts_are_gpu_hours_times_watts():
    node = constant_power_node("host", "hosts", 92.0, 360_000.0, ("parameter:host_power_ratio",))

    assert node.children[1].value == pytest.approx(255.6, rel=1e-3)  # 92 MWh over 360,000 h
    assert made_of(node.children, node.how) == pytest.approx(92.0)


def test_the_building_adds_what_the_pue_has_above_one():
    node = building_node("building (PUE)", ITEMS, 1.25, "given", ())

    assert [child.value for child in node.children] == [280.0, 0.25]
    assert made_of(node.children, node.how) == pytest.approx(70.0)


def test_an_answer_of_an_earlier_version_keeps_a_remainder():
    node = building_node("building (PUE)", ITEMS | {"pue_overhead": 74.6}, 1.25, "", ())

    assert node.children[-1].value == pytest.approx(74.6 / 70.0)
    assert made_of(node.children, node.how) == pytest.approx(74.6)


@pytest.mark.parametrize("pue", [1.0, None])
def test_a_pue_of_one_adds_nothing(pue):
    node = building_node("building (PUE)", ITEMS | {"pue_overhead": 0.0}, pue, "", ())

    assert (node.value, made_of(node.children, node.how)) == (0.0, 0.0)


PLAN = {"gpus": 64, "peak_power_mw": 0.0972, "mean_power_mw": {"low": 0.049, "mid": 0.065, "high": 0.086}}
ENERGY, DAYS = Node(label="Energy", value=3.12, unit="MWh"), Node(label="Time", value=2.0, unit="days")


def test_mean_power_is_energy_over_hours():
    node = mean_power_node(PLAN, ENERGY, DAYS)

    assert (node.low, node.value, node.high) == (0.049, 0.065, 0.086)
    assert made_of(node.children, node.how) == pytest.approx(3.12 / 48)


def test_peak_power_is_that_of_each_gpu_with_all_that_goes_with_it():
    node = peak_power_node(PLAN, ("parameter:host_power_ratio",))

    assert node.children[1].value == pytest.approx(1518.75)  # W, of a GPU of 700 W
    assert made_of(node.children, node.how) == pytest.approx(0.0972)


def test_a_gpu_whose_power_nobody_knows_has_neither():
    plan = {"gpus": 1, "peak_power_mw": None, "mean_power_mw": None, "gpu_power_w": None}

    assert power_node(plan, ()).value is None
    assert mean_power_node(plan, ENERGY, DAYS).value is None
    assert peak_power_node(plan, ()).value is None

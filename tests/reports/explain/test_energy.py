"""The energy of hosts, switches and the building as products that a reader can check."""

import pytest

from reports.explain.derivation import made_of
from reports.explain.energy import beside_node, building_node

ITEMS = {"gpu": 180.0, "host": 92.0, "network": 8.0, "pue_overhead": 70.0}


def test_hosts_are_gpu_hours_times_watts():
    node = beside_node("host", "hosts", 92.0, 360_000.0, ("parameter:host_power_ratio",))

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

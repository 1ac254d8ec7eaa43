from __future__ import annotations

import pytest

from reports.explain.derivation import Node, made_of, remainder


def test_children_multiply_each_to_its_power_or_add_up():
    parts = [Node(label="a", value=6.0), Node(label="b", value=3.0, power=-1), Node(label="c", value=2.0)]

    assert made_of(parts, "product") == pytest.approx(4.0)
    assert made_of(parts, "sum") == pytest.approx(11.0)


def test_nothing_is_left_over_where_the_arithmetic_comes_out():
    assert remainder("rest", 12.0, [Node(label="a", value=3.0), Node(label="b", value=4.0)], "product") is None


def test_what_is_left_over_is_a_node_of_its_own():
    parts = [Node(label="a", value=3.0), Node(label="b", value=4.0)]
    factor, term = remainder("rest", 15.0, parts, "product"), remainder("rest", 15.0, parts, "sum")

    assert factor is not None
    assert term is not None
    assert (factor.value, term.value) == (pytest.approx(1.25), pytest.approx(8.0))
    assert "differs from that of its parts" in factor.note


def test_an_unknown_part_leaves_no_remainder():
    assert remainder("rest", 1.0, [Node(label="a", value=None)], "product") is None

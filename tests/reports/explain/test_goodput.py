"""The goodput as a node: one figure, or a product that multiplies out."""

from __future__ import annotations

from math import prod

import pytest

from reports.explain.goodput import goodput_node

STATED = {"low": 0.7, "mid": 0.8, "high": 0.9}


def test_without_a_measurement_it_is_one_figure():
    node = goodput_node({"goodput_ratio": STATED}, ("parameter:restart_s",))

    assert (node.value, node.children, node.evidence) == (0.8, (), ("parameter:restart_s",))


def test_with_skipped_steps_it_is_a_product_each_factor_with_its_sources():
    plan = {"goodput_ratio": STATED, "skipped_step_ratio": 0.2}
    node = goodput_node(plan, ("parameter:restart_s", "numerics:char-lm/loss-scaling/fp16"), power=-1)
    others, useful = node.children

    assert (useful.value, others.value) == (pytest.approx(0.8), pytest.approx(1.0))
    assert prod(child.value for child in node.children) == pytest.approx(0.8, rel=1e-12)
    assert (node.how, node.power) == ("product", -1)
    assert (others.evidence, useful.evidence) == (("parameter:restart_s",), ("numerics:char-lm/loss-scaling/fp16",))

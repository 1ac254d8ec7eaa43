"""The answer's nouns."""

from __future__ import annotations

from dataclasses import fields

from planner.answer.plan import LOWER_IS_BETTER, MEMORY_ITEMS, METRICS, STEP_ITEMS, Plan
from planner.errors import Message
from planner.performance.memory import MemoryItems
from planner.performance.step import StepTimes


def test_the_items_are_those_of_the_arithmetic():
    assert tuple(f.name for f in fields(MemoryItems)) == MEMORY_ITEMS
    assert tuple(f.name for f in fields(StepTimes)) == STEP_ITEMS


def test_every_metric_is_a_field_of_a_plan_and_savings_are_of_metrics():
    names = {f.name for f in fields(Plan)}

    assert set(METRICS) <= names
    assert set(LOWER_IS_BETTER) <= set(METRICS)


def test_a_plan_without_figures_has_none_and_not_zero():
    bare = Plan(
        precision="bf16", policy="bf16", gpu="t4", gpus=1, nodes=1, layout=None, fits=False,
        why_not=Message.of("why.too_big", over_gib=2.0),
        memory_gib=None, memory_capacity_gib=16.0, step_s=None,
    )  # fmt: skip

    assert all(getattr(bare, name) is None for name in METRICS)

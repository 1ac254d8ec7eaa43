"""What two layouts set differently."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.parallelism.layout import Layout
from planner.planning.advice.settings import differences
from planner.training.recipe import ACT_CKPT
from reports.text.messages import word

PLAN = Layout(
    tp=2, pp=16, vp=1, cp=1, ep=1, dp=8, zero=1, micro_batch=1, grad_accum=32, act_ckpt="none"
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "new", "old"),
    [
        ({"vp": 5}, ["VP5"], ["VP1"]),
        ({"zero": 3, "micro_batch": 2, "grad_accum": 16}, ["ZeRO-3", "micro-batch 2"], ["ZeRO-1", "micro-batch 1"]),
        ({"grad_accum": 64}, ["a global batch of 512"], ["a global batch of 256"]),
        ({"act_ckpt": "full"}, ["full checkpointing"], ["no checkpointing"]),
        ({}, [], []),
    ],
)
def test_only_what_differs_is_named(changes, new, old):
    settings = differences(replace(PLAN, **changes), PLAN)

    assert [[word(setting) for setting in side] for side in settings] == [new, old]


@pytest.mark.parametrize("way", ACT_CKPT[1:])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_way_to_checkpoint_has_words(way, lang):
    ((setting,), _) = differences(replace(PLAN, act_ckpt=way), PLAN)

    assert word(setting, lang)

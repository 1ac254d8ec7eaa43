"""Recipes that are too slow on a CPU to be worth the time: a CPU without matrix units for BF16 emulates it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from probes.device.clock import Clock
from probes.device.device import Device
from probes.models import shapes
from probes.precisions import recipe_by_id
from probes.precisions.interface import PrecisionRecipe
from probes.session.group import trial_of
from probes.timing.trial import ProbePlan
from probes.workloads.block import BlockCase, block_point

SLOW_RATIO = 3.0
"""Multiple of FP32's time beyond which a recipe is left out, unless it is requested by name."""
CASE = BlockCase(shape=shapes.TINY, layers=1, seq_len=256)
SAMPLES = 3


def too_slow(plan: ProbePlan, clock: Clock, among: Iterable[PrecisionRecipe]) -> dict[str, float]:
    """Return, by id, the ratio to FP32's time for one small layer, of recipes where it exceeds `SLOW_RATIO`."""
    fp32_s = _seconds(plan, clock, recipe_by_id("fp32"))
    ratios = {recipe.id: _seconds(plan, clock, recipe) / fp32_s for recipe in among if recipe.id != "fp32"}
    return {name: ratio for name, ratio in ratios.items() if ratio > SLOW_RATIO}


def _seconds(plan: ProbePlan, clock: Clock, recipe: PrecisionRecipe) -> float:
    """Return the least time of a few runs of a layer, forward and backward."""
    device: Device = plan.device
    point = replace(block_point(CASE, recipe), memory=False)
    return min(clock.batch(trial_of(point, device), samples=SAMPLES, iterations=1).samples_s)

"""The batches near one that a layout on a number of GPUs divides."""

from __future__ import annotations

import pytest

from planner.parallelism.batches import batches_near
from planner.parallelism.search import FixedLayout, enumerate_layouts
from tests.planner.build import cluster, recipe


@pytest.mark.parametrize(
    ("fixed", "gpus"),
    [
        (FixedLayout(tp=8, pp=4), 512),
        (FixedLayout(tp=8, pp=4, vp=2), 512),
        (FixedLayout(pp=4, micro_batch=3), 96),
        (FixedLayout(tp=1, pp=1, micro_batch=8), 256),
    ],
)
@pytest.mark.parametrize("batch", [1000, 250, 31])
def test_a_batch_near_has_a_layout_and_none_between_has_one(fixed, gpus, batch):
    near = batches_near(recipe(global_batch=batch), cluster(), fixed, gpus)
    assert near is not None

    def divides(size: int) -> bool:
        if fixed.micro_batch and size % fixed.micro_batch:
            return False
        return len(enumerate_layouts(recipe(global_batch=size), cluster(), fixed, gpus=gpus)) > 0

    fewer, more = near
    assert divides(fewer)
    assert divides(more)
    assert fewer <= more
    assert not any(divides(size) for size in range(fewer + 1, more))
    assert near == (batch, batch) or not divides(batch)

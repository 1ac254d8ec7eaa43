"""Tasks that FP32 trains and one that it does not; batches that are the same and that are not."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from probes.numerics.session.trial import breakdown, first_broken_step, same_batch  # noqa: E402
from probes.numerics.tasks.interface import Job, Task  # noqa: E402
from tests.probes.numerics.planted import PLACE, task_of  # noqa: E402


def breaking_at(step: int) -> Task:
    def make(_seed: int, _size: str, _device: object) -> Job:
        return Job(
            model=torch.nn.Linear(1, 1), batch=lambda number: torch.full((1, 1), math.nan if number >= step else 1.0),
            loss=lambda model, x: model(x).sum(), optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
        )  # fmt: skip

    return Task(id="breaks", what="breaks", metrics=("loss",), make=make, steps={"small": 9, "large": 9})


def test_losses_that_end_or_explode_show_that_nothing_was_trained_and_noisy_ones_do_not():
    assert breakdown([2.3, 2.1, math.nan, 1.0]) == "no finite loss from step 2"
    assert breakdown([2.3, 9.0, 4e7]) == "the loss grows from 2.3 to 4e+07 in 2 steps"
    assert breakdown([2.3, 9.0, 2.0]) is None
    assert breakdown([1e-6, 1e-3, 0.5]) is None
    assert breakdown([]) is None


def test_the_first_step_without_a_finite_loss_is_named():
    assert first_broken_step(task_of(1.0), PLACE) is None
    assert first_broken_step(breaking_at(0), PLACE) == 0
    assert first_broken_step(breaking_at(2), PLACE) == 2


def test_batches_are_compared_inside_what_holds_them():
    x = torch.arange(4.0)
    assert same_batch({"x": (x, [x.clone()])}, {"x": (x.clone(), [x])})
    assert not same_batch({"x": x}, {"x": x + 1})
    assert not same_batch((x, x), (x,))
    assert not same_batch(x, x[:2])
    assert same_batch(("text", 3), ("text", 3))

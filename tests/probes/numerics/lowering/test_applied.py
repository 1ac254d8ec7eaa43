"""What a precision reached, of models whose answer is known."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from probes.numerics.lowering.applied import Applied  # noqa: E402
from probes.numerics.lowering.applied import applied as counted  # noqa: E402
from probes.numerics.lowering.recipes import lower_by_id  # noqa: E402
from probes.numerics.tasks.interface import Job, Task  # noqa: E402
from probes.numerics.training import Run  # noqa: E402
from tests.probes.numerics.planted import PLACE  # noqa: E402


class Raw(nn.Module):
    """Two products without a layer that torch knows."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(8, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[rows, 8]` to `[rows, 4]`."""
        return torch.relu(x @ self.a.t()) @ self.b


class Protected(nn.Module):
    """A layer that turns autocast off for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[rows, 8]` to the same."""
        with torch.autocast("cpu", enabled=False):
            return self.inner(x.float())


def applied(model: nn.Module, recipe_id: str) -> Applied:
    def make(_seed: int, _size: str, _device: object) -> Job:
        return Job(
            model=model, batch=lambda _step: torch.randn(16, 8),
            loss=lambda network, x: network(x).float().square().mean(), optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
        )  # fmt: skip

    task = Task(id="t", what="t", metrics=("loss",), make=make, steps={"small": 1, "large": 1})
    run, recipe = Run(task, 0, PLACE), lower_by_id(recipe_id)
    run.lower(recipe)
    return counted(run.job.model, run.switches, recipe, lambda: run.loss(run.job.batch(0)))


def three_layers() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 2))


def test_autocast_lowers_every_product_and_a_scaled_recipe_all_but_the_last_layer():
    assert applied(three_layers(), "bf16") == Applied(lowered_matrices=3, matrices=3, why_not_applied=None)
    assert applied(three_layers(), "fp8") == Applied(lowered_matrices=2, matrices=3, why_not_applied=None)


def test_raw_products_are_reached_by_autocast_and_by_no_scaled_recipe():
    assert applied(Raw(), "fp16") == Applied(lowered_matrices=2, matrices=2, why_not_applied=None)
    for recipe in ("fp8", "mxfp8", "nvfp4"):
        nothing = applied(Raw(), recipe)
        assert (nothing.lowered_matrices, nothing.matrices) == (0, 2)
        assert "the recipe lowers nn.Linear" in str(nothing.why_not_applied)


def test_a_model_that_turns_autocast_off_is_not_reached():
    model = nn.Sequential(Protected())

    assert applied(model, "bf16") == Applied(
        lowered_matrices=0,
        matrices=1,
        why_not_applied="no matrix product ran in bfloat16: autocast reaches none of them",
    )
    assert applied(nn.Sequential(Protected(), nn.Linear(8, 2)), "bf16").lowered_matrices == 1
    # a switch counts as lowered only what came out in the type
    task = Task(id="t", what="t", metrics=("loss",), steps={"small": 1, "large": 1}, make=lambda *_: Job(
        model=nn.Sequential(Protected()), batch=lambda _step: torch.randn(16, 8),
        loss=lambda network, x: network(x).float().square().mean(), optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
    ))  # fmt: skip
    run = Run(task, 0, PLACE)
    run.lower(lower_by_id("bf16"))
    assert run.train(1).lowered_layers == 0


def test_what_is_float64_is_passed_over():
    model = three_layers().double()
    with pytest.raises(RuntimeError):
        applied(model, "bf16")  # its batches are FP32 here; `own_task` refuses such a model before
    model = nn.Sequential(nn.Embedding(4, 8, dtype=torch.float64), nn.Linear(8, 2, dtype=torch.float64))
    run_on = torch.zeros(3, dtype=torch.long)

    def make(_seed: int, _size: str, _device: object) -> Job:
        return Job(
            model=model, batch=lambda _step: run_on, loss=lambda network, x: network(x).square().mean(),
            optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
        )  # fmt: skip

    run = Run(Task(id="t", what="t", metrics=("loss",), make=make, steps={"small": 1, "large": 1}), 0, PLACE)
    recipe = lower_by_id("bf16")
    run.lower(recipe)
    nothing = counted(run.job.model, run.switches, recipe, lambda: run.loss(run.job.batch(0)))
    assert nothing.why_not_applied is not None

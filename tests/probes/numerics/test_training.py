"""Runs: equal seeds give equal runs, a state is gone on from, and steps that overflow are skipped."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from probes.numerics.lowering.recipes import lower_by_id
from probes.numerics.tasks import find_task, texts

torch = pytest.importorskip("torch")

from probes.device.device import open_device  # noqa: E402
from probes.numerics.tasks.interface import Job, Task  # noqa: E402
from probes.numerics.training import Place, Run, dynamic_scaler, finite_gradients  # noqa: E402 - it needs torch
from tests.probes.fake_cuda.installed import fake_cuda  # noqa: E402
from tests.probes.numerics.planted import PLACE, task_of  # noqa: E402


def test_equal_seeds_give_equal_runs_and_others_do_not():
    task = find_task("char-lm")

    first, second, other = (Run(task, seed, PLACE).train(3) for seed in (0, 0, 1))

    assert first.losses == second.losses
    assert first.figures == second.figures
    assert first.losses != other.losses
    assert first.complete


def test_a_run_goes_on_from_a_state_as_if_nothing_had_been_between():
    run = Run(find_task("char-lm"), 0, PLACE)
    run.train(2)
    state = run.state()
    expected = run.train(3).losses

    run.lower(lower_by_id("nvfp4"))
    run.train(2)
    run.restore(state)

    assert run.train(3).losses == expected


def test_training_makes_the_loss_fall_in_every_precision():
    for name in (None, "bf16", "fp8", "nvfp4"):
        run = Run(find_task("char-lm"), 0, PLACE)
        run.lower(None if name is None else lower_by_id(name))
        losses = run.train(25).losses
        assert losses[-1] < losses[0] - 0.5, name


def test_a_deadline_ends_a_run_with_what_it_has():
    trained = Run(find_task("char-lm"), 0, PLACE).train(10_000, time.monotonic() + 0.5)

    assert 0 < len(trained.losses) < 10_000
    assert not trained.complete
    assert math.isfinite(trained.figures["loss"])


def test_a_step_that_overflows_leaves_the_weights_and_halves_the_scale():
    run = Run(task_of(gradient=1.0), 0, PLACE)
    run.lower(lower_by_id("fp16"))
    run.scaler = dynamic_scaler("cpu", init=2.0**16)
    before = run.job.model.weight.detach().clone()

    _, step = run.one_step()

    assert step.skipped
    assert torch.equal(run.job.model.weight, before)
    assert run.scaler.get_scale() == 2.0**15
    _, step = run.one_step()
    assert not step.skipped
    assert not torch.equal(run.job.model.weight, before)


def test_a_gradient_that_is_not_finite_is_seen():
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.tensor([1.0, float("nan"), 2.0])

    assert not finite_gradients([parameter])
    parameter.grad = torch.ones(3)
    assert finite_gradients([parameter])


def with_dropout() -> Task:
    def make(seed: int, _size: str, _device: object) -> Job:
        torch.manual_seed(seed)
        x = torch.randn(64, 16)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Dropout(0.3), torch.nn.Linear(32, 1))
        return Job(
            model=model, batch=lambda _step: x, loss=lambda network, rows: network(rows).square().mean(),
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.01),
        )  # fmt: skip

    return Task(id="dropout", what="a network with dropout", metrics=("loss",), make=make, steps={"small": 50})


def test_dropout_drops_the_same_from_the_same_start():
    run = Run(with_dropout(), 0, PLACE)
    run.train(3)
    start = run.state()

    losses = []
    for _ in range(3):
        run.restore(start)
        losses.append(run.train(10).losses)

    assert losses[0] == losses[1] == losses[2]
    assert run.train(10).losses != losses[0]


def test_a_gpu_drops_the_same_from_the_same_start():
    with fake_cuda(whole_models=False):
        device = open_device("cuda")
        place = Place(device=device.torch, kind=device.kind, capability=device.capability, size="small")
        run = Run(with_dropout(), 0, place)
        start = run.state()
        first = run.train(5).losses
        run.restore(start)

        assert run.train(5).losses == first
    assert start["device_generator"] is not None


def test_a_model_of_nan_has_no_accuracy():
    class Broken(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight * math.nan

    x = torch.ones(4, 3)

    def evaluate(model: torch.nn.Module) -> dict[str, float]:
        with torch.no_grad():
            y = model(x)
        return {"loss": float(y.sum()), "accuracy": float((y.argmax(-1) == 0).float().mean())}

    job = Job(
        model=Broken(), batch=lambda _step: x, loss=lambda model, rows: model(rows).sum(), held_out=evaluate,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    )  # fmt: skip
    task = Task(id="nan", what="NaN", metrics=("loss", "accuracy"), make=lambda *_: job, steps={"small": 5})

    figures = Run(task, 0, PLACE).train(3).figures

    assert evaluate(job.model)["accuracy"] == 1.0  # argmax of NaN is the first class
    assert all(math.isnan(figures[name]) for name in ("loss", "accuracy"))


ON_HOPPER = {"bf16": "real", "fp16": "real", "fp8": "real", "fp8-rowwise": "real", "mxfp8": "emulated"}


@pytest.mark.parametrize(("name", "mode"), ON_HOPPER.items())
def test_a_gpu_trains_in_what_it_has_on_its_own_kernels(name, mode):
    """On a stand-in for CUDA that refuses operands which the real `_scaled_mm` refuses."""
    with fake_cuda(whole_models=False):
        device = open_device("cuda")
        place = Place(device=device.torch, kind=device.kind, capability=device.capability, size="small")
        recipe = lower_by_id(name)
        run = Run(find_task("char-lm"), 0, place)
        run.lower(recipe)
        run.scaler = dynamic_scaler("cuda", init=2.0**10) if recipe.loss_scaling else None

        trained = run.train(4)

    assert place.mode_of(recipe)[0] == mode
    counts = [(trained.real_layers, trained.lowered_layers)]
    assert place.ran(recipe, counts)["mode"] == mode
    assert counts == [({"real": counts[0][1], "emulated": 0}[mode], 9 if recipe.autocast else 8)]
    assert trained.losses[-1] < trained.losses[0]


@pytest.mark.skipif(not hasattr(torch.nn.functional, "scaled_mm"), reason="scales per block need torch 2.10")
@pytest.mark.parametrize(("name", "capability"), [("fp8-blockwise", (9, 0)), ("nvfp4", (10, 0))])
def test_layers_that_are_wide_enough_train_with_scales_per_block_on_its_own_kernels(monkeypatch, name, capability):
    monkeypatch.setitem(texts._SIZES, "small", replace(texts._SIZES["small"], width=128))
    with fake_cuda(whole_models=False):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
        place = Place(device=open_device("cuda").torch, kind="cuda", capability=capability, size="small")
        recipe = lower_by_id(name)
        losses = []
        for real in (True, False):
            run = Run(find_task("char-lm"), 0, place)
            run.lower(recipe)
            if not real:
                run.switches._real = frozenset()
            trained = run.train(2)
            losses.append(trained.losses)
            assert (trained.real_layers, trained.lowered_layers) == (8 * real, 8)

    assert losses[0] == pytest.approx(losses[1], rel=2e-3)
    assert losses[0] != losses[1]


@pytest.mark.parametrize(("task", "mode", "lowered"), [("digits-cnn", "emulated", 3), ("char-moe", "mixed", 20)])
def test_a_gpu_that_has_fp8_is_not_said_to_run_layers_that_were_emulated(task, mode, lowered):
    """Convolutions have no FP8 kernel here, and an expert gets a number of rows that is seldom a multiple of 16."""
    with fake_cuda(whole_models=False):
        device = open_device("cuda")
        place = Place(device=device.torch, kind=device.kind, capability=device.capability, size="small")
        recipe = lower_by_id("fp8")
        run = Run(find_task(task), 0, place)
        run.lower(recipe)

        trained = run.train(4)

    how = place.ran(recipe, [(trained.real_layers, trained.lowered_layers)])
    real = how["real_layers"]  # of experts as many as the routing, which differs by build of PyTorch, makes it
    assert (how["mode"], how["lowered_layers"], 0 < real < lowered) == (mode, lowered, mode == "mixed")
    assert how["why_emulated"].startswith(f"{lowered - real} of {lowered} layers")

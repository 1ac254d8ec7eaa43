"""Tasks of the user's own: what a factory may return, and what is said where it returns something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import UsageError
from probes.numerics.tasks.own import own_task

torch = pytest.importorskip("torch")

from probes.numerics.tasks.own import moved  # noqa: E402
from probes.numerics.training import Run  # noqa: E402 - it needs torch
from tests.probes.numerics.planted import PLACE  # noqa: E402

MODULE = """
import torch

def data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, generator=generator)
    return [(x[i : i + 16], x[i : i + 16].sum(1, keepdim=True)) for i in range(0, 64, 16)]

def loss(model, batch):
    return torch.nn.functional.mse_loss(model(batch[0]), batch[1])

def listed():
    return torch.nn.Linear(8, 1), data(), loss

def drawn(seed):
    def batch(step):
        x = torch.randn(16, 8, generator=torch.Generator().manual_seed(1000 * seed + step))
        return x, x.sum(1, keepdim=True)
    return torch.nn.Linear(8, 1), batch, loss, lambda parameters: torch.optim.SGD(parameters, lr=0.1)

def loaded():
    pairs = torch.utils.data.TensorDataset(*(torch.cat(part) for part in zip(*data())))
    return torch.nn.Linear(8, 1), torch.utils.data.DataLoader(pairs, batch_size=16), loss

def empty():
    return torch.nn.Linear(8, 1), [], loss

def number():
    return 3

def raises():
    raise RuntimeError("no data here")

def no_loss():
    return torch.nn.Linear(8, 1), data(), "mse"

text = "not a function"
"""


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numerics_own_task.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("factory", ["listed", "drawn", "loaded"])
def test_a_factory_of_any_allowed_form_is_trained(factory):
    run = Run(own_task(f"numerics_own_task:{factory}"), 0, PLACE)
    if factory != "drawn":
        run.optimizer = torch.optim.SGD(run.parameters, lr=0.1)

    trained = run.train(30)

    assert trained.losses[-1] < 0.5 * trained.losses[0]
    assert trained.figures["loss"] == pytest.approx(sum(trained.losses[-6:]) / 6)


def test_batches_of_a_list_come_round_again_and_seeds_reach_a_factory_that_takes_them():
    job = own_task("numerics_own_task:listed").make(0, "small", torch.device("cpu"))
    first, second = (own_task("numerics_own_task:drawn").make(seed, "small", torch.device("cpu")) for seed in (0, 1))

    assert torch.equal(job.batch(1)[0], job.batch(5)[0])
    assert not torch.equal(first.batch(0)[0], second.batch(0)[0])
    assert torch.equal(first.batch(7)[0], first.batch(7)[0])


@pytest.mark.parametrize(
    ("factory", "message"),
    [("number", "returned `int`"), ("raises", "failed: RuntimeError: no data here"), ("no_loss", "is not callable"),
     ("empty", "returned no batch")],
)  # fmt: skip
def test_what_a_factory_must_return_is_said(factory, message):
    task = own_task(f"numerics_own_task:{factory}")

    with pytest.raises(UsageError, match=message) as refused:
        task.make(0, "small", torch.device("cpu")).batch(0)
    assert "return (model, batches, loss)" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("name", "message"),
    [("numerics_own_task:nope", "has no function `nope`"), ("numerics_own_task:text", "has no function"),
     ("no_such_module_here:make", "cannot import"), (":make", "is not `module:factory`"), ("m:", "is not")],
)  # fmt: skip
def test_a_name_that_leads_nowhere_is_refused(name, message):
    with pytest.raises(UsageError, match=message):
        own_task(name)


def test_tensors_are_moved_wherever_they_are():
    batch = {"x": torch.ones(1), "rest": [torch.zeros(2), (torch.ones(1), "text")]}

    batch_on_meta = moved(batch, torch.device("meta"))

    assert (
        batch_on_meta["x"].device.type
        == batch_on_meta["rest"][0].device.type
        == batch_on_meta["rest"][1][0].device.type
        == "meta"
    )
    assert batch_on_meta["rest"][1][1] == "text"

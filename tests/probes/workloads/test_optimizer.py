"""Optimizers: bytes of state per parameter, and what is missing for one."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from probes.workloads.optimizer import OPTIMIZERS, OptimizerCase, OptimizerStep, _OptimizerTrial  # noqa: E402
from tests.probes.build import CPU, H200, plan  # noqa: E402

BY_ID = {case.id: case for case in OPTIMIZERS}
STEP_COUNT_BYTES = 4
"""AdamW counts its steps in one FP32 number per tensor."""


@pytest.mark.parametrize(
    ("name", "moments_bytes", "counted"),
    [
        ("adamw", 8, True),  # two moments in FP32
        ("adamw-bf16", 4, True),  # two moments in BF16
        ("sgd-momentum", 4, False),  # one momentum in FP32
    ],
)
def test_the_state_per_parameter_is_that_of_the_moments(name: str, moments_bytes: int, counted: bool) -> None:
    trial = _OptimizerTrial(BY_ID[name], count=3, size=64, device=CPU)
    trial.step(lambda phase: None)

    per_param = trial.outcome().optimizer_state_bytes_per_param
    assert per_param == moments_bytes + (STEP_COUNT_BYTES / 64**2 if counted else 0)
    # parameters and gradients are held as well
    element = 2 if name == "adamw-bf16" else 4
    assert trial.held_bytes == 3 * 64**2 * (2 * element + per_param)


COMPILED = ("adamw-8bit",)
"""Compiling takes half a minute."""
ON_CPU = [
    pytest.param(case, marks=[pytest.mark.long] if case.id in COMPILED else [], id=case.id)
    for case in OPTIMIZERS
    if "cpu" in case.devices
]


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")  # of the compiler
@pytest.mark.parametrize("case", ON_CPU)
def test_every_optimizer_of_a_cpu_updates_each_of_its_parameters(case: OptimizerCase) -> None:
    if case.missing() is not None:
        pytest.skip(str(case.missing()))
    trial = _OptimizerTrial(case, count=2, size=64, device=CPU)
    before = [tensor.detach().clone() for tensor in trial.tensors]
    trial.step(lambda phase: None)

    for tensor, was in zip(trial.tensors, before, strict=True):
        assert torch.isfinite(tensor).all()
        assert (tensor != was).any()


def test_half_a_billion_parameters_come_in_square_matrices() -> None:
    points = [point for group in OptimizerStep().groups(plan(H200)) for point in group.points]

    assert {point.counts.params for point in points} == {2**29}
    assert {point.counts.params for g in OptimizerStep().groups(plan(CPU)) for point in g.points} == {2**23}


def test_what_is_missing_is_named() -> None:
    assert BY_ID["adamw"].missing() is None
    assert replace(BY_ID["adamw"], needs="torch.optim.NoSuch").missing() == "this version lacks torch.optim.NoSuch"
    assert replace(BY_ID["adamw"], needs="no_such.Thing").missing() == "needs no_such, which is not installed"

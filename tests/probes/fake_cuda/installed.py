"""The fake GPU in place of a real one: for a test, or for a process that ends with it."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import pkgutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import _disable_current_modes

import probes
from probes.device.clock import Runs, no_mark
from probes.device.device import Device
from probes.memory.side_process import SideTracker, TrackedCase, serve, track_case
from probes.memory.tracker import Tracked
from probes.models.cases import LLAMAS
from probes.timing.device_gate import DeviceGate
from probes.timing.trial import Point
from tests.probes.fake_cuda.board import Board
from tests.probes.fake_cuda.driver import FakeGpu, functions_of
from tests.probes.fake_cuda.nccl import replace_nccl
from tests.probes.fake_cuda.nvml import FakeNvml
from tests.probes.fake_cuda.scaled_mm import checked_block_scaled_mm, checked_scaled_mm
from tests.probes.fake_cuda.small import SMALL_LLAMAS, FaultyPoints, SmallBuild, small_model
from tests.probes.fake_cuda.traced import traced
from tests.probes.fake_cuda.virtual_time import VirtualTime

IDLE_BYTES = 2**12
REAL_TIME = ("probes.process.", "probes.ranks.")
USED = (
    "transformers.models.bert.modeling_bert",
    "transformers.models.llama.modeling_llama",
    "transformers.models.resnet.modeling_resnet",
    "torchao.float8",
)
"""Modules that a run imports, where they are: `transformers` sets its names anew when it loads a model, which would
undo what is put in their place."""
HOST_SHARE = 0.2
"""Of a step's time, what the host takes to launch it."""
TRACKING_LIMIT_S = 900.0
"""Of real time, for a result of the process that tracks memory: the minutes of the fake GPU are over before a busy
machine has imported all that the process needs."""
MOST_COPIES = 24
"""Of the operands of a product: more than one graph holds steps, so that a step runs two products."""


def serve_small(pipe: Connection, device: Device, seed: int, cases: Sequence[TrackedCase]) -> None:
    """`probes.memory.side_process.serve` in a process of its own, of models as small as those of the fake GPU."""
    with traced(), fake_cuda(counts=False), pytest.MonkeyPatch.context() as patch:
        patch.setattr("probes.memory.side_process.track_case", _track_small)
        serve(pipe, device, seed, cases)


def _track_small(case: TrackedCase, device: Device, seed: int) -> Tracked:
    return track_case(replace(case, model=small_model(case.model)), device, seed)


@contextmanager
def fake_cuda(
    faulty: FaultyPoints | None = None, board: Board | None = None, *, counts: bool = True, whole_models: bool = True
) -> Iterator[FakeGpu]:
    """An H200 in this process, until the block ends; where a board is given, that one of the machine's.

    Args:
        faulty: points that something happens to.
        board: the one of several; None: the only one.
        counts: whether its memory is counted; a process that runs nothing on it asks for none.
        whole_models: whether models of `transformers` run on it; importing them takes longer than torch does.
    """
    gpu = FakeGpu(VirtualTime(), board)
    memory = gpu.memory if counts else nullcontext()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), memory:
        warnings.filterwarnings("ignore", module=r"torch|torchao|transformers")
        if whole_models:
            _import_used()
        _replace_time(patch, gpu.clock)
        _replace_torch(patch, gpu)
        _replace_nvml(patch, FakeNvml(gpu))
        replace_nccl(patch, gpu)
        _replace_builds(patch, gpu, faulty or FaultyPoints())
        if whole_models:
            _make_resnets_small(patch)
        patch.setenv("HF_HUB_OFFLINE", "1")
        gc.freeze()  # else each collection after a group goes through all of torch; a test run leaves all out anyway
        yield gpu


def _import_used() -> None:
    for name in USED:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)


def _modules() -> list[Any]:
    names = [module.name for module in pkgutil.walk_packages(probes.__path__, "probes.")]
    return [importlib.import_module(name) for name in names]


def _replace_time(patch: pytest.MonkeyPatch, clock: VirtualTime) -> None:
    """Every module that measures reads the virtual time, its threads wait on it; processes wait really."""
    stand_in = clock.time_module()
    for module in _modules():
        if module.__name__.startswith(REAL_TIME):
            continue
        if getattr(module, "time", None) is time:
            patch.setattr(module, "time", stand_in)
    patch.setattr("probes.sensors.sampler.threading", clock.threading_module())
    patch.setattr("probes.device.clock.launched_s", partial(_launched_s, clock))
    defaults = vars(importlib.import_module("probes.sensors.nvml").NvmlSensor)["__init__"]
    patch.setattr(defaults, "__defaults__", (*defaults.__defaults__[:-1], stand_in.monotonic))


def _launched_s(clock: VirtualTime, trial: Runs) -> float:
    """Here the host waits for all that it launches; on a GPU it takes a part of that time."""
    began_s = clock.now_s
    trial.step(no_mark)
    return HOST_SHARE * (clock.now_s - began_s)


def _replace_torch(patch: pytest.MonkeyPatch, gpu: FakeGpu) -> None:
    for name, stand_in in functions_of(gpu).items():
        patch.setattr(torch.cuda, name, stand_in, raising=False)
    # a PyTorch that was built with CUDA would ask the driver, for which there is no stand-in
    patch.setattr(torch.accelerator, "current_accelerator", lambda *_, **__: None)
    patch.setattr(torch, "_scaled_mm", checked_scaled_mm)
    patch.setattr(torch.nn.functional, "scaled_mm", checked_block_scaled_mm, raising=False)
    patch.setattr(torch, "compile", lambda function, **_: function)
    patch.setattr(torch.nn.Module, "compile", lambda module, **_: None)
    patch.setattr(torch, "autocast", _class_on_cpu(torch.autocast))
    patch.setattr(torch.amp, "GradScaler", _class_on_cpu(torch.amp.GradScaler))
    for name in ("get_autocast_dtype", "is_autocast_enabled"):
        patch.setattr(torch, name, _on_cpu(getattr(torch, name)))
    patch.setattr(torch.Tensor, "is_cuda", property(lambda _: True))
    patch.setattr(torch.backends.cuda, "is_built", lambda: False)
    attention = importlib.import_module("probes.models.parallel.gathered_attention")
    patch.setattr(attention, "causal_lower_right", _outside_of_modes(attention.causal_lower_right))
    patch.setattr(Device, "torch", property(lambda _: torch.device("cpu")))


def _class_on_cpu(base: Any) -> Any:
    """A class of a kind of device, made for the one that the tensors really are on."""

    def init(self: Any, kind: str = "cuda", *arguments: Any, **settings: Any) -> None:
        base.__init__(self, "cpu", *arguments, **settings)

    return type(base.__name__, (base,), {"__init__": init})


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a kind of device, asked for the one that the tensors really are on."""
    return lambda kind="cuda", *arguments, **settings: function("cpu", *arguments, **settings)


def _outside_of_modes(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a tensor of a class of its own, which the allocator must not see."""

    def call(*arguments: Any) -> Any:
        with _disable_current_modes():
            return function(*arguments)

    return call


def _replace_nvml(patch: pytest.MonkeyPatch, nvml: FakeNvml) -> None:
    """NVML, and a host whose load cannot be read: that of the machine under test has nothing to do with the fake."""
    patch.setattr(vars(DeviceGate)["__init__"], "__defaults__", (lambda: None,))
    patch.setattr("probes.sensors.nvml.load_nvml", lambda: nvml)


class _SmallBuilds:
    """Stands for the field `build` of every point."""

    def __init__(self, field: Any, gpu: FakeGpu, faulty: FaultyPoints) -> None:
        self._field, self._gpu, self._faulty = field, gpu, faulty

    def __get__(self, point: Point | None, _owner: type | None = None) -> Any:
        if point is None:
            return self
        build = self._field.__get__(point)
        return build if isinstance(build, SmallBuild) else SmallBuild(point, build, self._gpu, self._faulty)

    def __set__(self, point: Point, build: Callable[[Device], Any]) -> None:
        self._field.__set__(point, build)


def _replace_builds(patch: pytest.MonkeyPatch, gpu: FakeGpu, faulty: FaultyPoints) -> None:
    patch.setattr(Point, "build", _SmallBuilds(vars(Point)["build"], gpu, faulty))
    patch.setattr("probes.memory.side_process.serve", serve_small)
    patch.setattr(vars(SideTracker)["__init__"], "__defaults__", (TRACKING_LIMIT_S,))
    for name, shape in SMALL_LLAMAS.items():
        patch.setitem(LLAMAS, name, shape)
    patch.setattr("probes.workloads.idle.HELD_BYTES", IDLE_BYTES)
    patch.setattr("probes.workloads.gemm.MOST_COPIES", MOST_COPIES)


def _make_resnets_small(patch: pytest.MonkeyPatch) -> None:
    sizes = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 16, 32, 32], "embedding_size": 16}
    patch.setattr("transformers.ResNetConfig", partial(importlib.import_module("transformers").ResNetConfig, **sizes))

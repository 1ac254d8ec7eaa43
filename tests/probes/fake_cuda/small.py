"""Points made small: what a point builds shrinks to what a CPU runs in milliseconds, what it says of itself stays.

The code that builds and runs it is the same; how long it took comes from `law.py`. The first steps really run; later
ones only take their time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from probes.device.clock import Mark
from probes.device.device import Device
from probes.models.cases import ModelCase
from probes.models.shapes import LayerShape
from probes.timing.trial import Point, Trial
from tests.probes.fake_cuda import law
from tests.probes.fake_cuda.driver import FakeGpu

REAL_STEPS = 4
"""The first makes gradients and states, the third is the one whose memory is read."""
NOISE_RATIO = 0.002
SMALL_BYTES = 2**14
SEQUENCES = 4
"""Of each rank in a step over several."""
NCCL_ERROR = """\
NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, remote process exited or there was a \
network error, NCCL version 2.29.3
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."""
"""What `torch.distributed` says when a rank is gone."""


class FaultyPoints:
    """Points that something happens to."""

    def __init__(
        self, *, out_of_memory: Collection[str] = (), uncapturable: Collection[str] = (), broken: Collection[str] = ()
    ) -> None:
        self.out_of_memory, self.uncapturable = set(out_of_memory), set(uncapturable)
        self.broken = set(broken)
        """In whose steps NCCL fails."""


class SmallBuild:
    """`Point.build` that makes a small trial whose time is modelled."""

    def __init__(self, point: Point, build: Callable[[Device], Trial], gpu: FakeGpu, faulty: FaultyPoints) -> None:
        self._point, self._build, self._gpu, self._faulty = point, build, gpu, faulty

    def __call__(self, device: Device) -> Trial:
        """Make it, which takes its time; may run out of memory."""
        self._gpu.idle(law.build_s(self._point))
        if self._point.probe_id in self._faulty.out_of_memory:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80.00 GiB.")
        usual = self._gpu.memory.on_operation
        if self._point.kind == "overlap":  # which times both parts before it is made
            self._gpu.memory.on_operation = self._run
        try:
            trial = shrunk(self._build)(device)
        finally:
            self._gpu.memory.on_operation = usual
        return ModelledTrial(trial, self._point, self._gpu, self._faulty)

    def _run(self, operation: Any) -> None:
        """Let an operation take its time, if it is one of the parts."""
        if operation.overloadpacket is torch.ops.aten.mm:
            self._gpu.run(law.PRODUCT_S, law.power_w(self._point))
        elif operation.namespace == "c10d":
            self._gpu.run(law.collective_s(self._point), law.power_w(self._point))


class ModelledTrial:
    """A trial that runs on the fake GPU."""

    def __init__(self, trial: Trial, point: Point, gpu: FakeGpu, faulty: FaultyPoints) -> None:
        self._trial, self._point, self._gpu = trial, point, gpu
        self._uncapturable = point.probe_id in faulty.uncapturable
        self._broken = point.probe_id in faulty.broken
        times = trial.steps if point.kind == "gemm" else 1  # a step of a product may run several
        self._phases_s = {phase: times * seconds for phase, seconds in law.phases_of(point).items()}
        self._marks: list[str] = []
        self._steps = 0
        self._noise = random.Random(point.probe_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trial, name)

    def step(self, mark: Mark) -> None:
        """One step: really run the first times, then only timed."""
        if self._uncapturable and self._gpu.capture is not None:
            self._gpu.fail_capture()
        if self._broken:
            raise torch.distributed.DistBackendError(NCCL_ERROR)
        if self._point.kind == "idle":
            self._trial.step(mark)
            return
        wobble = 1.0 + NOISE_RATIO * self._noise.gauss(0.0, 1.0)
        if self._steps == 0:
            self._gpu.idle(law.compile_s(self._point))
        if self._steps < REAL_STEPS:
            self._marks = []
            self._trial.step(lambda phase: self._end_of(phase, wobble, mark))
        else:
            for phase in self._marks:
                self._run(phase, wobble)
                mark(phase)
        self._run("", wobble)
        self._steps += 1

    def _end_of(self, phase: str, wobble: float, mark: Mark) -> None:
        self._run(phase, wobble)
        self._marks.append(phase)
        mark(phase)

    def _run(self, phase: str, wobble: float) -> None:
        seconds = self._phases_s.get(phase, 0.0)
        if self._point.kind == "waiting" and self._gpu.board.number == 0:
            self._gpu.idle(seconds)  # the one that the others wait for
        elif seconds:
            self._gpu.run(seconds * wobble, law.power_w(self._point))


def shrunk(build: Callable[[Device], Trial]) -> Callable[[Device], Trial]:
    """The same build at a small size."""
    if not isinstance(build, partial):
        return build
    workload = build.func.__module__.rsplit(".", 1)[-1]
    return partial(build.func, *(_small(workload, argument) for argument in build.args), **build.keywords)


def _small(workload: str, argument: Any) -> Any:
    """One argument of a build, made small by what it is."""
    if isinstance(argument, ModelCase):
        return small_model(argument)
    if isinstance(argument, bool | str):
        return argument
    if hasattr(argument, "sequences"):  # a step over several ranks
        ranks = argument.sequences // SEQUENCES
        shape = replace(small_shape(argument.shape), heads=2 * ranks, kv_heads=ranks, head_dim=16, ffn=64 * ranks)
        return replace(argument, shape=shape, seq_len=16 * ranks, layers=2 * ranks)
    if hasattr(argument, "shape") and isinstance(argument.shape, LayerShape):  # a case of the block workload
        return replace(argument, shape=small_shape(argument.shape), seq_len=64, layers=min(argument.layers, 2))
    if isinstance(argument, tuple):
        return tuple(_small_size(workload, size) for size in argument)
    return _small_size(workload, argument) if isinstance(argument, int) else argument


def _small_size(workload: str, size: Any) -> Any:
    if not isinstance(size, int) or size < 16:
        return size
    if size >= 2**24:
        return min(size, SMALL_BYTES)
    return 16 * max(1, min(size // 1024, 8))


def small_shape(shape: LayerShape) -> LayerShape:
    """A layer with as many ranks and experts per rank, and few of everything else."""
    ranks = shape.tp
    return replace(
        shape,
        hidden=64,
        heads=2 * ranks,
        kv_heads=ranks,
        head_dim=32,
        ffn=64 * ranks,
        vocab=256,
        experts=4 * shape.ep if shape.experts else 0,
        top_k=2 if shape.experts else 0,
    )


SMALL_LLAMAS = {
    "tiny": LayerShape(model="small", hidden=64, heads=2, kv_heads=1, head_dim=32, ffn=128, vocab=256),
    "tiny-wide": LayerShape(model="small-wide", hidden=96, heads=3, kv_heads=1, head_dim=32, ffn=192, vocab=256),
}
"""What stands for Llama 1B and 3B."""


def small_model(case: ModelCase) -> ModelCase:
    """A model with few layers and short sequences; longer ones stay longer, wider ones wider."""
    if case.family == "resnet":
        return replace(case, batch=max(case.batch // 32, 2), seq_len=32)
    size = "tiny-wide" if case.size == "llama-3.2-3b" else "tiny"
    layers = max(1, min(case.layers // 2, 4 if case.family == "bert" else 3))  # more than any that it is predicted from
    return replace(case, size=size, layers=layers, batch=min(case.batch, 2), seq_len=max(32, case.seq_len // 128))

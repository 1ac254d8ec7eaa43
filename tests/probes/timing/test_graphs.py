"""Only short kernels are captured; a trial that cannot be captured stays as it is."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from probes.device.clock import Batch, CpuClock  # noqa: E402
from probes.timing.graphs import SHORT_S, GraphTrial, captured_if_short  # noqa: E402
from probes.timing.trial import CallTrial  # noqa: E402
from probes.workloads import launch  # noqa: E402
from tests.probes.build import CPU  # noqa: E402


def test_a_long_trial_is_left_alone() -> None:
    trial = CallTrial(call=lambda: time.sleep(10 * SHORT_S))

    assert captured_if_short(trial, CpuClock()) is trial


class Prompt(CpuClock):
    """The clock of a machine that nothing else runs on, where a call that does nothing is short."""

    def batch(self, trial: Any, *, samples: int, iterations: int) -> Batch:
        return replace(super().batch(trial, samples=samples, iterations=iterations), samples_s=(1e-6,) * samples)


class Graph:
    """A graph of a device that is not there."""

    was_reset = False

    def replay(self) -> None:
        return

    def reset(self) -> None:
        self.was_reset = True


class Generator:
    """Random numbers of a device: a capture changes their state."""

    def __init__(self, state: str = "free") -> None:
        self.state = state

    def clone_state(self) -> Generator:
        return Generator(self.state)

    def graphsafe_set_state(self, state: Generator) -> None:
        self.state = state.state


class Capture:
    """`torch.cuda`'s graphs and streams without a device: which stream is current, and which were captured.

    A capture that fails behaves as in torch 2.11 to 2.13: `capture_end` raises before the stream is set back, and what
    the capture changed in the generators and the allocator stays.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.warmed: list[Any] = []
        self.captured: list[Any] = []
        self.graphs: list[Graph] = []
        self.pools: list[tuple[str, int, tuple[int, int]]] = []
        self.current: Any = SimpleNamespace(wait_stream=lambda _: None)
        self.generator = Generator()
        stand_ins: dict[str, Any] = {
            "Stream": lambda: SimpleNamespace(wait_stream=lambda _: None),
            "current_stream": lambda: self.current,
            "current_device": lambda: 0,
            "set_stream": lambda stream: setattr(self, "current", stream),
            "stream": self._enter,
            "CUDAGraph": self._graph,
            "graph": self._capture,
            "graph_pool_handle": lambda: (0, len(self.graphs) + 1),
            "synchronize": lambda: None,
            "default_generators": (self.generator,),
        }
        for name, value in stand_ins.items():
            monkeypatch.setattr(torch.cuda, name, value)
        for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
            note = lambda device, pool, name=name: self.pools.append((name, device, pool))  # noqa: E731
            monkeypatch.setattr(torch._C, name, note, raising=False)

    def _enter(self, stream: Any) -> Any:
        self.warmed.append(stream)
        return nullcontext()

    def _graph(self) -> Graph:
        self.graphs.append(Graph())
        return self.graphs[-1]

    @contextmanager
    def _capture(self, _graph: Any, pool: tuple[int, int], stream: Any) -> Iterator[None]:
        self.captured.append(stream)
        before, self.current, self.generator.state = self.current, stream, "captured"
        yield  # what the block raises is raised here, and nothing below is done
        self.current, self.generator.state = before, "free"


def test_each_graph_is_warmed_up_and_captured_on_a_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Capture(monkeypatch)

    trials = [GraphTrial(CallTrial(call=lambda: None, held_bytes=64.0)) for _ in range(2)]

    assert [trial.steps for trial in trials] == [20, 20]
    assert [trial.held_bytes for trial in trials] == [64.0, 64.0]
    assert seen.captured == seen.warmed
    assert seen.captured[0] is not seen.captured[1]


def test_a_graph_of_launches_keeps_the_tensor_that_it_writes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    Capture(monkeypatch)
    references: list[Any] = []
    real = torch.randn

    def remembered(*size: int, **settings: Any) -> Any:
        tensor = real(*size, **settings)
        references.append(weakref.ref(tensor))
        return tensor

    monkeypatch.setattr(torch, "randn", remembered)
    trial = launch._build("graph", CPU)
    gc.collect()

    trial.call()
    assert references[0]() is not None


def test_after_a_capture_that_fails_everything_is_as_before_and_the_trial_runs_without_a_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = Capture(monkeypatch)
    first = seen.current

    def product() -> None:
        if seen.generator.state == "captured":
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

    trial = CallTrial(call=product)

    assert captured_if_short(trial, Prompt()) is trial
    assert seen.current is first
    assert seen.generator.state == "free"
    assert [graph.was_reset for graph in seen.graphs] == [True]
    assert seen.pools == [("_cuda_endAllocateToPool", 0, (0, 2)), ("_cuda_releasePool", 0, (0, 2))]


def test_a_graph_that_was_captured_keeps_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Capture(monkeypatch)

    trial = captured_if_short(CallTrial(call=lambda: None), Prompt())

    assert isinstance(trial, GraphTrial)
    assert trial.flags == ("cuda_graph",)
    assert (seen.pools, seen.graphs[0].was_reset) == ([], False)

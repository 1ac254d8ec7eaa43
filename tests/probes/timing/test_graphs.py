"""Only short kernels are captured; a trial that cannot be captured stays as it is."""

from __future__ import annotations

import gc
import time
import weakref
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from probes.device.clock import CpuClock  # noqa: E402
from probes.timing.graphs import SHORT_S, GraphTrial, captured_if_short  # noqa: E402
from probes.timing.trial import CallTrial  # noqa: E402
from probes.workloads import launch  # noqa: E402
from tests.probes.build import CPU  # noqa: E402


def test_a_long_trial_is_left_alone() -> None:
    trial = CallTrial(call=lambda: time.sleep(10 * SHORT_S))

    assert captured_if_short(trial, CpuClock()) is trial


class Capture:
    """`torch.cuda`'s graphs and streams without a device: says which stream was current and which was captured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.warmed: list[Any] = []
        self.captured: list[Any] = []
        stream = SimpleNamespace(wait_stream=lambda _: None)
        stand_ins: dict[str, Any] = {
            "Stream": lambda: SimpleNamespace(wait_stream=lambda _: None),
            "current_stream": lambda: stream,
            "stream": self._enter,
            "CUDAGraph": lambda: SimpleNamespace(replay=lambda: None),
            "graph": self._capture,
            "synchronize": lambda: None,
        }
        for name, value in stand_ins.items():
            monkeypatch.setattr(torch.cuda, name, value)

    def _enter(self, stream: Any) -> Any:
        self.warmed.append(stream)
        return nullcontext()

    def _capture(self, _graph: Any, stream: Any = None) -> Any:
        self.captured.append(stream)
        return nullcontext()


def test_each_graph_is_warmed_up_and_captured_on_a_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Capture(monkeypatch)

    trials = [GraphTrial(CallTrial(call=lambda: None)) for _ in range(2)]

    assert [trial.steps for trial in trials] == [20, 20]
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

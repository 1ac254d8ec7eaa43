"""The fake GPU for the rest of a process: what the campaign's own processes measure in a rehearsal."""

from __future__ import annotations

import atexit
import sys
import time
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.probes.fake_cuda import law
from tests.probes.fake_cuda.driver import FakeGpu
from tests.probes.fake_cuda.installed import fake_cuda


def measure() -> FakeGpu:
    """Install the fake until the process ends."""
    stack = ExitStack()
    gpu = stack.enter_context(fake_cuda())
    atexit.register(stack.close)
    return gpu


def measure_by_script() -> None:
    """The same for a script with a loop of its own: its clock is virtual, its tensors have shapes and no data."""
    scaled_mm = torch._scaled_mm
    gpu = measure()
    sys.modules["time"] = _virtual(gpu)
    if any(word.endswith("measure_limits.py") for word in sys.orig_argv):
        torch._scaled_mm = scaled_mm  # torch's own rules for shapes and layouts, without data
        torch.Tensor.copy_ = lambda target, _source: _copied(gpu, target)  # type: ignore[method-assign, assignment]
        stack = ExitStack()
        stack.enter_context(FakeTensorMode())
        stack.enter_context(_Timed(gpu))
        atexit.register(stack.close)


def _virtual(gpu: FakeGpu) -> ModuleType:
    """The module `time`, on the fake GPU's clock."""
    module = ModuleType("time")
    vars(module).update({name: value for name, value in vars(time).items() if not name.startswith("__")})
    vars(module).update(vars(gpu.clock.time_module()))
    return module


def _copied(gpu: FakeGpu, target: Any) -> Any:
    """Stands for `Tensor.copy_`, which asks for a real device before anything can be put in its place."""
    gpu.run(2.0 * target.nbytes / law.BYTES_PER_S, 400.0)
    return target


class _Timed(TorchDispatchMode):
    """Products take their time on the fake GPU."""

    def __init__(self, gpu: FakeGpu) -> None:
        super().__init__()
        self._gpu = gpu

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        packet = function.overloadpacket
        result = function(*args, **(kwargs or {}))
        if packet in (torch.ops.aten.mm, torch.ops.aten._scaled_mm):
            rows, inner = args[0].shape
            rate = law.FP8_PRODUCT if packet is torch.ops.aten._scaled_mm else _rate(args[0].dtype)
            self._gpu.run(2.0 * rows * inner * args[1].shape[1] / rate, law.POWER_W["gemm"])
        return result


def _rate(dtype: torch.dtype) -> float:
    name = str(dtype).removeprefix("torch.")
    return law.RATES["tf32" if name == "float32" and torch.get_float32_matmul_precision() == "high" else name]

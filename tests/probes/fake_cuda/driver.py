"""`torch.cuda` without a GPU: events, streams, graphs, the allocator's statistics and the properties of an H200.

Tensors are the CPU's; what they would take on the GPU is modelled (`modelled.py`), and passes on a virtual time. Live
memory is counted storage by storage, as CUDA's allocator does: in blocks of 512 bytes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace, TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.probes.build import H200
from tests.probes.fake_cuda.board import Board
from tests.probes.fake_cuda.virtual_time import VirtualTime

BLOCK_BYTES = 512
SEGMENT_BYTES = 2**21
"""The allocator reserves memory in segments of 2 MiB."""


class FakeGpu:
    """One H200: what runs on it, and what is live in its memory."""

    def __init__(self, clock: VirtualTime, board: Board | None = None) -> None:
        self.clock = clock
        self.board = board or Board()
        self.default_stream = FakeStream()
        self.stream = self.default_stream
        self.capture: FakeGraph | None = None
        self.capture_failed = False
        self.busy_s = 0.0
        self.memory = Allocator()
        self.is_initialized = False
        self.is_current = False

    def run(self, seconds: float, power_w: float) -> None:
        """Do work of a length, or note it in the graph that is captured."""
        seconds *= self.board.slowness_ratio
        if self.capture is not None:
            self.capture.work.append((seconds, power_w))
            return
        self.busy_s += seconds
        self.clock.advance(seconds, power_w)

    def idle(self, seconds: float) -> None:
        """Wait for the host: building, compiling."""
        self.clock.advance(seconds, None)

    def fail_capture(self) -> None:
        """What cannot be captured is run while a graph is captured.

        Raises:
            RuntimeError: always, in CUDA's words.
        """
        self.capture_failed = True
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing")


class FakeStream:
    """A stream; work is done in the order in which it is asked for."""

    cuda_stream = 0

    def wait_stream(self, stream: FakeStream) -> None:
        """Nothing is pending."""
        assert isinstance(stream, FakeStream)

    def synchronize(self) -> None:
        """Nothing is pending."""


class FakeEvent:
    """A moment on the virtual time."""

    gpu: FakeGpu

    def __init__(self, *, enable_timing: bool = False) -> None:
        self._gpu, self._timed = self.gpu, enable_timing
        self.at_s: float | None = None

    def record(self, stream: FakeStream | None = None) -> None:
        """Note the moment; in a captured stream an event must be made for it, which ours are not."""
        if self._gpu.capture is not None:
            self._gpu.fail_capture()
        self.at_s = self._gpu.clock.now_s

    def elapsed_time(self, end: FakeEvent) -> float:
        """Milliseconds to another event."""
        assert self._timed, "the event was made without timing"
        assert self.at_s is not None
        assert end.at_s is not None
        return 1e3 * (end.at_s - self.at_s)

    def synchronize(self) -> None:
        """Nothing is pending."""


class FakeGraph:
    """A captured piece of work."""

    gpu: FakeGpu

    def __init__(self) -> None:
        self.work: list[tuple[float, float]] = []
        self.is_captured = False

    def end_capture(self) -> None:
        """Hold the work as one piece, at its mean power."""
        total_s = sum(seconds for seconds, _ in self.work)
        energy_j = sum(seconds * power_w for seconds, power_w in self.work)
        self.work = [(total_s, energy_j / total_s)] if total_s else []
        self.is_captured = True

    def replay(self) -> None:
        """Do the work again."""
        assert self.is_captured, "the graph was never captured"
        for seconds, power_w in self.work:
            self.gpu.run(seconds, power_w)

    def reset(self) -> None:
        """Forget the work."""
        self.work, self.is_captured = [], False


class FakeCapture:
    """`torch.cuda.graph`: as in torch 2.11, a capture that fails leaves its stream current."""

    def __init__(self, gpu: FakeGpu, graph: FakeGraph, stream: FakeStream | None = None, **_: Any) -> None:
        self._gpu, self._graph = gpu, graph
        self._stream = stream or FakeStream()

    def __enter__(self) -> None:
        assert self._gpu.capture is None, "a graph is being captured already"
        self._before = self._gpu.stream
        self._gpu.stream, self._gpu.capture, self._gpu.capture_failed = self._stream, self._graph, False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gpu.capture = None
        if self._gpu.capture_failed:  # `capture_end` raises before the stream is set back
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")
        self._graph.end_capture()
        self._gpu.stream = self._before


PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)


def _as_tf32(argument: Any) -> Any:
    """An FP32 operand with the 10 bits of mantissa that TF32 keeps."""
    if not isinstance(argument, torch.Tensor) or argument.dtype != torch.float32:
        return argument
    return (argument.view(torch.int32) & ~0x1FFF).view(torch.float32)


class Allocator(TorchDispatchMode):
    """Live and peak bytes, by the storages that operations return."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, int] = {}
        self.on_operation: Callable[[Any], None] | None = None
        """Called with each operation, before it runs."""
        self.live = self.peak = self.reserved = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here: without what torch puts around each operation for it, an operation is faster."""
        return False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self.on_operation is not None:
            self.on_operation(function)
        if function in PRODUCTS and torch.get_float32_matmul_precision() == "high":
            args = tuple(_as_tf32(argument) for argument in args)
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if type(leaf) is torch.Tensor or type(leaf) is torch.nn.Parameter:
                self._count(leaf.untyped_storage())
        return result

    def _count(self, storage: Any) -> None:
        key = storage._cdata
        if key in self._known:
            return
        self._known[key] = -(-storage.nbytes() // BLOCK_BYTES) * BLOCK_BYTES
        self.live += self._known[key]
        self.peak = max(self.peak, self.live)
        self.reserved = max(self.reserved, -(-self.live // SEGMENT_BYTES) * SEGMENT_BYTES)
        weakref.finalize(storage, self._free, key)

    def _free(self, key: int) -> None:
        self.live -= self._known.pop(key, 0)

    def statistics(self) -> dict[str, int]:
        """The keys of `torch.cuda.memory_stats` that matter."""
        return {
            "allocated_bytes.all.current": self.live,
            "allocated_bytes.all.peak": self.peak,
            "active_bytes.all.peak": self.peak,
            "reserved_bytes.all.current": self.reserved,
            "reserved_bytes.all.peak": self.reserved,
            "num_alloc_retries": 0,
            "num_ooms": 0,
        }

    def reset_peak(self) -> None:
        """See `torch.cuda.reset_peak_memory_stats`."""
        self.peak = self.live

    def empty_cache(self) -> None:
        """See `torch.cuda.empty_cache`."""
        self.reserved = -(-self.live // SEGMENT_BYTES) * SEGMENT_BYTES


def properties_of(board: Board) -> SimpleNamespace:
    """What `torch.cuda.get_device_properties` says of a board."""
    return SimpleNamespace(
        name=board.name,
        uuid=board.uuid,
        major=H200.capability[0],
        minor=H200.capability[1],
        total_memory=int(H200.memory_bytes),
        multi_processor_count=H200.sm_count,
        L2_cache_size=int(H200.l2_bytes or 0),
    )


def functions_of(gpu: FakeGpu) -> dict[str, Any]:
    """What stands for the functions and classes of `torch.cuda`, by name."""

    @contextmanager
    def stream(chosen: FakeStream) -> Iterator[None]:
        before, gpu.stream = gpu.stream, chosen
        try:
            yield
        finally:
            gpu.stream = before

    board = gpu.board

    def set_device(index: int) -> None:
        assert index == board.index, f"GPU {index} is another process's"
        gpu.is_initialized = gpu.is_current = True

    def properties(index: int = board.index) -> SimpleNamespace:
        assert index == board.index, f"GPU {index} is another process's"
        return properties_of(board)

    def set_stream(chosen: FakeStream) -> None:
        gpu.stream = chosen

    def synchronize(_device: object = None) -> None:
        if gpu.capture is not None:
            gpu.fail_capture()

    memory = gpu.memory
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: gpu.is_initialized,
        "device_count": lambda: board.count,
        "current_device": lambda: board.index,
        "set_device": set_device,
        "nccl": SimpleNamespace(version=lambda: (2, 29, 3)),
        "get_device_properties": properties,
        "get_device_capability": lambda _index=0: H200.capability,
        "get_device_name": lambda _index=0: board.name,
        "synchronize": synchronize,
        "Event": type("Event", (FakeEvent,), {"gpu": gpu}),
        "Stream": FakeStream,
        "current_stream": lambda _device=None: gpu.stream,
        "default_stream": lambda _device=None: gpu.default_stream,
        "stream": stream,
        "set_stream": set_stream,
        "CUDAGraph": type("CUDAGraph", (FakeGraph,), {"gpu": gpu}),
        "graph_pool_handle": lambda: (0, 1),
        "default_generators": (torch.Generator(),),
        "get_rng_state": lambda _device=None: torch.get_rng_state(),  # its tensors are those of the CPU
        "set_rng_state": lambda state, _device=None: torch.set_rng_state(state),
        "graph": lambda graph, **settings: FakeCapture(gpu, graph, **settings),
        "is_current_stream_capturing": lambda: gpu.capture is not None,
        "_sleep": lambda cycles: gpu.run(cycles / 1.7e9, 120.0),
        "memory_allocated": lambda _device=None: memory.live,
        "memory_reserved": lambda _device=None: memory.reserved,
        "max_memory_allocated": lambda _device=None: memory.peak,
        "max_memory_reserved": lambda _device=None: memory.reserved,
        "memory_stats": lambda _device=None: memory.statistics(),
        "reset_peak_memory_stats": lambda _device=None: memory.reset_peak(),
        "empty_cache": memory.empty_cache,
        "memory_snapshot": list,  # a segment without a hole
        "mem_get_info": lambda _device=None: (int(H200.memory_bytes) - memory.reserved, int(H200.memory_bytes)),
    }

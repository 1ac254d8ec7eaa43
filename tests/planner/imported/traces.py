"""Traces of the PyTorch profiler for tests: events as Kineto exports them, of kernels that follow a made-up law."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.planner.recorded import BANDWIDTH, FIXED_S, RATE, SHAPES

H100 = {
    "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84942979072, "computeMajor": 9, "computeMinor": 0,
    "numSms": 132,
}  # fmt: skip
"""What CUDA reports of an H100 SXM: 81008 MiB."""
BASE_NS = 1790857026000000000
"""Of a trace that torch 2.13 wrote on 22 November 2026, with the first event at `START_US`."""
START_US = 4491568795734.0


class Trace:
    """A trace while it is written: one GPU, one host thread, kernels one after the other on stream 7."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.host_us = self.device_us = START_US
        self.ids = 0

    def call(
        self,
        name: str,
        dims: Sequence[Sequence[int]],
        types: Sequence[str],
        kernels: Sequence[tuple[str, float]],
        values: Sequence[str] = (),
        *,
        launch: str = "cudaLaunchKernel",
        launched_late: bool = False,
        stream: int = 7,
    ) -> None:
        """An operator that launches kernels of so many seconds each."""
        self.ids += 1
        external, host_us = self.ids, self.host_us
        args = {
            "External id": external, "Record function id": 0, "Concrete Inputs": list(values) or [""] * len(dims),
            "Input type": list(types), "Input Dims": [list(shape) for shape in dims], "Ev Idx": external - 1,
        }  # fmt: skip
        self._add("cpu_op", name, host_us, 50.0, args)
        for kernel, seconds in kernels:
            self.ids += 1
            launch_us = host_us + (80.0 if launched_late else 10.0)
            self._add("cuda_runtime", launch, launch_us, 4.0, {"External id": external, "correlation": self.ids})
            placement = {"device": 0, "context": 1, "stream": stream, "correlation": self.ids, "External id": external}
            self._add("kernel", kernel, self.device_us, seconds * 1e6, placement)
            self.device_us += seconds * 1e6 + 1.0
        self.host_us += 100.0

    def concurrent(self, name: str, start_us: float, seconds: float, stream: int = 20) -> None:
        """A kernel on another stream, of no operator: a collective."""
        self._add("kernel", name, start_us, seconds * 1e6, {"device": 0, "stream": stream, "correlation": 10**6})

    def copy(self, size_bytes: int, seconds: float) -> None:
        """A copy within the memory of the GPU."""
        args = {"device": 0, "stream": 7, "bytes": size_bytes}
        self._add("gpu_memcpy", "Memcpy DtoD (Device -> Device)", self.device_us, seconds * 1e6, args)
        self.device_us += seconds * 1e6 + 1.0

    def _add(self, category: str, name: str, ts: float, dur: float, args: dict[str, Any]) -> None:
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args}
        )

    def document(self, **changes: Any) -> dict[str, Any]:
        """The trace as a JSON object."""
        return {
            "schemaVersion": 1, "deviceProperties": [H100], "cuda_runtime_version": 12080,
            "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8}, "record_shapes": 1,
            "displayTimeUnit": "ms", "baseTimeNanoseconds": BASE_NS, "traceEvents": self.events,
            "traceName": "trace.json", **changes,
        }  # fmt: skip

    def written(self, **changes: Any) -> bytes:
        """The trace as a file."""
        return json.dumps(self.document(**changes)).encode()


BF16 = "c10::BFloat16"


def product_s(m: int, n: int, k: int) -> float:
    """The law: arithmetic, traffic and a fixed time."""
    return 2.0 * m * n * k / RATE + 2.0 * (m * k + n * k + m * n) / BANDWIDTH + FIXED_S


def of_products(shapes: Iterable[tuple[int, int, int]] = SHAPES, repeats: int = 8) -> Trace:
    """Products in BF16, each so many times."""
    trace = Trace()
    for _ in range(repeats):
        for m, n, k in shapes:
            trace.call("aten::mm", [(m, k), (k, n)], [BF16, BF16], [("nvjet_tst_128x256", product_s(m, n, k))])
    return trace


FLASH_FORWARD = ("aten::_flash_attention_forward", 10, 0, 8)
FLASH_BACKWARD = ("aten::_flash_attention_backward", 14, 1, 11)


def add_attention(trace: Trace, length: int, forward_s: float, backward_s: float, *, causal: str = "True") -> None:
    """Causal attention of one sequence with 32 heads, 8 of keys, of size 128, there and back."""
    for (name, inputs, query, place), seconds in ((FLASH_FORWARD, forward_s), (FLASH_BACKWARD, backward_s)):
        dims: list[tuple[int, ...]] = [() for _ in range(inputs)]
        dims[query : query + 3] = [(1, length, 32, 128), (1, length, 8, 128), (1, length, 8, 128)]
        values = [""] * inputs
        values[place] = causal
        types = ["" if not shape else BF16 for shape in dims]
        trace.call(name, dims, types, [("flash_fwd_kernel", seconds)], values)

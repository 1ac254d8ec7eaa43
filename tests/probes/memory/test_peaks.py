"""Peak memory of a step from the allocator's events, and what a CPU's matrix library adds to the tensors."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from probes.memory.peaks import Baseline, baseline, is_out_of_memory, of_process, peak_of, return_cached  # noqa: E402
from tests.probes.build import CPU, H200, without_onednn  # noqa: E402

M, N, K = 256, 512, 128
ALIGNMENT_BYTES = 4096
"""oneDNN aligns its scratch to cache lines, at most to a page."""


def product(dtype: object) -> Callable[[object], None]:
    a, b = torch.randn(M, K).to(dtype), torch.randn(K, N).to(dtype)

    def step(mark: object) -> None:
        torch.mm(a, b)

    for _ in range(2):
        step(None)  # the first call makes the kernel
    return step


def test_the_peak_is_what_was_held_and_the_most_that_lived_at_once_by_phase() -> None:
    def step(mark: Callable[[str], None]) -> None:
        first = torch.empty(1000, dtype=torch.float32)
        mark("forward")
        second = torch.empty(500, dtype=torch.float32)
        del first
        third = torch.empty(250, dtype=torch.float32)
        mark("backward")
        del second, third

    memory = peak_of(CPU, step, before=Baseline(), held_bytes=100.0)

    # forward 1000 floats; backward 1000 + 500, then 750; nothing is left
    assert memory.forward_peak_bytes == 100 + 4000
    assert memory.backward_peak_bytes == memory.allocated_peak_bytes == 100 + 6000
    assert memory.persistent_bytes == 100
    assert memory.optimizer_peak_bytes is None
    assert memory.source == "cpu_allocator_events"


def test_a_bf16_product_without_onednn_takes_its_result_and_nothing_else() -> None:
    with without_onednn():
        memory = peak_of(CPU, product(torch.bfloat16), before=Baseline(), held_bytes=0.0)

    assert memory.allocated_peak_bytes == 2 * M * N


def test_the_scratch_of_a_bf16_product_is_an_fp32_result_or_packed_operands() -> None:
    # Without BF16 instructions oneDNN's `gemm:jit:bf16` accumulates in an FP32 copy of the result; with them (AVX-512
    # BF16, AMX) it may pack the operands. Either comes from torch's allocator and is part of a measured peak.
    memory = peak_of(CPU, product(torch.bfloat16), before=Baseline(), held_bytes=0.0)

    scratch = memory.allocated_peak_bytes - 2 * M * N
    assert 0 <= scratch <= 4 * M * N + 2 * (M * K + K * N) + ALIGNMENT_BYTES


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
    ],
)
def test_out_of_memory_is_told_from_other_errors(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) is expected


MIB = 2**20


class Cache:
    """The large pool of CUDA's caching allocator: best fit in the holes of its segments, else a segment of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.segments: list[list[list[Any]]] = []  # of blocks: size, and whether it is free
        self.peaks = [0, 0]
        stand_ins: dict[str, Any] = {
            "synchronize": lambda: None,
            "empty_cache": self.empty,
            "current_stream": lambda: SimpleNamespace(cuda_stream=0),
            "memory_allocated": self.allocated,
            "memory_reserved": self.reserved,
            "memory_snapshot": self.snapshot,
            "memory_stats": self.statistics,
            "reset_peak_memory_stats": self.reset,
        }
        for name, value in stand_ins.items():
            monkeypatch.setattr(torch.cuda, name, value)
        monkeypatch.setattr(torch, "empty", lambda size, **_: self.take(size))

    def take(self, size: int) -> list[Any]:
        """A block; the rest of the hole that it comes from stays one."""
        holes = [(block[0], s, b) for s, part in enumerate(self.segments) for b, block in enumerate(part) if block[1]]
        fitting = [hole for hole in sorted(holes) if hole[0] >= size]
        if not fitting:
            self.segments.append([[-(-size // (2 * MIB)) * 2 * MIB, True]])
            fitting = [(size, len(self.segments) - 1, 0)]
        _, s, b = fitting[0]
        block = self.segments[s][b]
        if block[0] > size:
            self.segments[s].insert(b + 1, [block[0] - size, True])
        block[:] = [size, False]
        self.peaks = [max(self.peaks[0], self.allocated()), max(self.peaks[1], self.reserved())]
        return block

    def free(self, block: list[Any]) -> None:
        block[1] = True

    def empty(self) -> None:
        self.segments = [part for part in self.segments if not all(free for _, free in part)]

    def allocated(self) -> int:
        return sum(size for part in self.segments for size, free in part if not free)

    def reserved(self) -> int:
        return sum(size for part in self.segments for size, _ in part)

    def reset(self) -> None:
        self.peaks = [self.allocated(), self.reserved()]

    def statistics(self) -> dict[str, int]:
        return {"allocated_bytes.all.peak": self.peaks[0], "reserved_bytes.all.peak": self.peaks[1]}

    def snapshot(self) -> list[dict[str, Any]]:
        states = {True: "inactive", False: "active_allocated"}
        return [
            {
                "segment_pool_id": (0, 0),
                "stream": 0,
                "blocks": [{"size": size, "state": states[free]} for size, free in part],
            }
            for part in self.segments
        ]


class Layers:
    """Weights of 10 MiB that are made from a temporary copy, and activations of 64 MiB in each step."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        copy = cache.take(40 * MIB)
        self.weights = cache.take(10 * MIB)
        cache.free(copy)

    def step(self, mark: Callable[[str], None]) -> None:
        first, second = self.cache.take(32 * MIB), self.cache.take(32 * MIB)
        mark("forward")
        self.cache.free(first)
        self.cache.free(second)


def measured(cache: Cache) -> Any:
    before = baseline(H200)
    trial = Layers(cache)
    return_cached(H200)
    trial.step(lambda _: None)
    memory = peak_of(H200, trial.step, before=before, held_bytes=0.0)
    for plug in before.plugs:
        cache.free(plug)
    return memory


def test_what_a_point_reserves_does_not_depend_on_the_points_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(monkeypatch)
    first = measured(cache)
    holed = cache.take(30 * MIB)
    cache.take(4 * MIB)
    cache.free(holed)  # a hole of 30 MiB beside something live, which the next point would fill
    second = measured(cache)

    # 10 MiB of weights and 2 x 32 of activations; the temporary copy is returned before the first step
    assert first.reserved_peak_bytes == second.reserved_peak_bytes == 74 * MIB
    assert first.allocated_peak_bytes == second.allocated_peak_bytes == 74 * MIB
    assert second.persistent_bytes == 10 * MIB
    assert second.forward_peak_bytes == 74 * MIB


def test_what_the_driver_counts_beyond_the_allocator_is_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(monkeypatch)
    memory = measured(cache)

    whole = of_process(memory, float(cache.reserved() + 518 * MIB), Baseline())

    assert whole.context_bytes == 518 * MIB
    assert whole.process_bytes == cache.reserved() + 518 * MIB
    assert of_process(memory, None, Baseline()) == memory


def test_what_other_trials_hold_is_not_the_step_s(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(monkeypatch)
    memory = measured(cache)
    others = Baseline(reserved_bytes=float(cache.reserved() - 20 * MIB))

    whole = of_process(memory, float(cache.reserved() + 518 * MIB), others)

    assert whole.context_bytes == 518 * MIB
    assert whole.process_bytes == 538 * MIB


def test_a_cpu_has_no_baseline() -> None:
    assert baseline(CPU) == Baseline()


def test_an_allocator_without_a_list_of_its_blocks_has_a_baseline_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(monkeypatch)
    cache.take(10 * MIB)

    def snapshot() -> None:
        raise RuntimeError("Calling snapshot with backend:cudaMallocAsync is not meaningful. …")

    monkeypatch.setattr(torch.cuda, "memory_snapshot", snapshot)

    before = baseline(H200)
    assert (before.allocated_bytes, before.reserved_bytes, before.plugs) == (10 * MIB, 10 * MIB, ())

"""Peak memory of a step from the allocator's events, and what a CPU's matrix library adds to the tensors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from probes.memory.peaks import is_out_of_memory, peak_of  # noqa: E402
from tests.probes.build import CPU, without_onednn  # noqa: E402

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

    memory = peak_of(CPU, step, before_bytes=0.0, held_bytes=100.0)

    # forward 1000 floats; backward 1000 + 500, then 750; nothing is left
    assert memory.forward_peak_bytes == 100 + 4000
    assert memory.backward_peak_bytes == memory.allocated_peak_bytes == 100 + 6000
    assert memory.persistent_bytes == 100
    assert memory.optimizer_peak_bytes is None
    assert memory.source == "cpu_allocator_events"


def test_a_bf16_product_without_onednn_takes_its_result_and_nothing_else() -> None:
    with without_onednn():
        memory = peak_of(CPU, product(torch.bfloat16), before_bytes=0.0, held_bytes=0.0)

    assert memory.allocated_peak_bytes == 2 * M * N


def test_the_scratch_of_a_bf16_product_is_an_fp32_result_or_packed_operands() -> None:
    # Without BF16 instructions oneDNN's `gemm:jit:bf16` accumulates in an FP32 copy of the result; with them (AVX-512
    # BF16, AMX) it may pack the operands. Either comes from torch's allocator and is part of a measured peak.
    memory = peak_of(CPU, product(torch.bfloat16), before_bytes=0.0, held_bytes=0.0)

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

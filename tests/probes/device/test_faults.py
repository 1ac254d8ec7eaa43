"""Which errors break a device for the process: few of those that CUDA's libraries report do."""

from __future__ import annotations

import subprocess

import pytest

from probes.device.faults import device_answers, is_lost, lacks_compiler

NOT_SUPPORTED = "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmulAlgoGetHeuristic( ltHandle, ...)`"
"""What torch says of an FP8 product that cuBLAS lacks (pytorch#192707)."""


@pytest.mark.parametrize(
    "text",
    [
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: unspecified launch failure",
        "CUDA error: device-side assert triggered",
        "Triton Error [CUDA]: an illegal memory access was encountered",
    ],
)
def test_an_error_that_stays_in_the_context_loses_the_device(text: str) -> None:
    assert is_lost(RuntimeError(text), lambda: True)


def test_a_product_that_a_library_does_not_support_leaves_the_device_as_it_was() -> None:
    assert not is_lost(RuntimeError(NOT_SUPPORTED), lambda: True)


def test_any_error_after_which_the_device_does_not_answer_loses_it() -> None:
    assert is_lost(RuntimeError("CUDA error: unknown error"), lambda: False)


def test_a_device_that_was_never_used_is_not_lost() -> None:
    assert device_answers()


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Failed to find C compiler. Please specify via CC environment variable."),
        RuntimeError("InductorError: CalledProcessError: Command '['/usr/bin/gcc', ...]' failed"),
        subprocess.CalledProcessError(1, ["gcc", "main.c"]),
    ],
    ids=["none", "in inductor", "no headers"],
)  # fmt: skip
def test_a_machine_without_what_triton_builds_with_is_recognised(error: Exception) -> None:
    assert lacks_compiler(error)
    assert not lacks_compiler(RuntimeError("shape mismatch"))


def test_a_gpu_in_use_is_asked_twice_since_an_error_of_an_earlier_launch_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    pending: list[str] = []

    def synchronize() -> None:
        if pending:
            raise RuntimeError(pending.pop())

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)

    assert device_answers()
    pending.append("CUDA error: invalid argument")
    assert device_answers()
    pending.extend(["CUDA error: device-side assert triggered"] * 2)
    assert not device_answers()

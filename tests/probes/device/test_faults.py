"""Which errors break a device for the process: few of those that CUDA's libraries report do."""

from __future__ import annotations

import subprocess

import pytest

from probes.device.faults import cleaned, device_answers, is_lost, lacks_compiler

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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error [10.31.0.7]:29336: Connection reset",
            "[… Read error …: Connection reset",
        ),
        ("Connection closed by peer [fe80::1%eth0]:4711", "Connection closed by peer …"),
        (
            "recv failed on SocketImpl(fd=4, addr=[node-7]:47806, remote=[node-0.lab]:29811): got 0 bytes",
            "recv failed on SocketImpl(fd=4, addr=…, remote=…): got 0 bytes",
        ),
        (
            "failed to connect to any network address of (node-7.lab, 29500)",
            "failed to connect to any network address of …",
        ),
        (
            "socketProgress: Connection closed by remote peer node-7.lab<38392>",
            "socketProgress: Connection closed by remote peer …",
        ),
        ("Connect to 10.31.0.7 failed", "Connect to … failed"),
    ],
)
def test_an_error_names_no_other_machine(text: str, shown: str) -> None:
    assert cleaned(RuntimeError(text)) == f"RuntimeError: {shown}"


@pytest.mark.parametrize(
    "text",
    [
        "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmulAlgoGetHeuristic( ltHandle, ...)`",
        "mat1 and mat2 shapes cannot be multiplied (16x32 and 16x32); expected (8, 16) of [2, 3], torch 2.13.0",
        "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 1.5 GiB is free",
        "'NoneType' object has no attribute 'x'; tensor<16>",
    ],
)
def test_an_error_without_paths_and_addresses_is_shown_as_it_is(text: str) -> None:
    assert cleaned(RuntimeError(text)) == f"RuntimeError: {text}"[:200]

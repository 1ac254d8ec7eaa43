"""A device: its hash instead of its UUID, and the CPU as a device."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from planner.errors import CannotMeasureError, UsageError
from probes.device.device import cpu_name, open_device
from tests.probes.build import CPU, H200


def test_the_hash_of_a_uuid_is_salted_and_short() -> None:
    salted = hashlib.sha256(b"mpplan.probe:11111111-2222-3333-4444-555555555555").hexdigest()

    assert H200.hashed == salted[:12]
    assert H200.hashed != hashlib.sha256(b"11111111-2222-3333-4444-555555555555").hexdigest()[:12]
    assert replace(H200, uuid="11111111-2222-3333-4444-555555555556").hashed != H200.hashed
    assert CPU.hashed is None


def test_a_cpu_is_opened_with_its_name_and_the_machines_memory() -> None:
    device = open_device("cpu")

    assert (device.kind, device.index, device.uuid, device.capability) == ("cpu", 0, None, (0, 0))
    assert device.name == cpu_name()
    assert device.memory_bytes > 2**28


def test_a_machine_without_a_gpu_says_what_can_be_measured_instead() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        assert open_device(None).kind == "cuda"
        return

    with pytest.raises(CannotMeasureError) as caught:
        open_device(None)

    assert "`mpplan probe --device cpu` measures the CPU" in str(caught.value.hint)


def test_a_gpu_that_is_not_there_is_a_usage_error_that_counts_those_that_are() -> None:
    pytest.importorskip("torch")
    from tests.probes.fake_cuda.installed import fake_cuda

    with fake_cuda(whole_models=False):
        assert open_device("cuda", 0).name == "NVIDIA H200"
        with pytest.raises(UsageError, match="there is no GPU 7") as caught:
            open_device("cuda", 7)

    assert caught.value.hint == "this machine has GPUs 0 to 0"

"""A device: its hash instead of its UUID, and the CPU as a device."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from planner.errors import CannotMeasureError
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

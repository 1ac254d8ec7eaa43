"""NCCL without GPUs: gloo carries it out, on the CPU's tensors, when the arguments are those that NCCL needs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist

from tests.probes.fake_cuda.driver import FakeGpu

EXCHANGE_S = 5e-3
"""Virtual time of what ranks tell each other: long, for the fewer rounds of a warm-up, each of which really is one."""


def replace_nccl(patch: pytest.MonkeyPatch, gpu: FakeGpu) -> None:
    """Let a process of several ranks ask for NCCL."""
    init, new_group, backend_of = dist.init_process_group, dist.new_group, dist.get_backend
    over_gloo: list[Any] = []
    """Groups that were asked for over gloo."""

    def init_process_group(backend: str, *, device_id: Any, timeout: timedelta, **settings: Any) -> None:
        assert backend == "nccl"
        assert device_id is not None, "without a device NCCL connects late, and guesses which GPU is whose"
        assert gpu.is_initialized, "`torch.cuda.set_device` comes first"
        assert timedelta() < timeout < timedelta(minutes=10)
        init("gloo", timeout=timeout, **settings)

    def make_group(ranks: Any = None, timeout: Any = None, backend: str | None = None, **settings: Any) -> Any:
        group = new_group(ranks, timeout, backend, **settings)
        if backend == "gloo":
            over_gloo.append(group)
        return group

    def get_backend(group: Any = None) -> str:
        return str(backend_of(group)) if group in over_gloo else "nccl"

    from_group = dist.DeviceMesh.from_group

    def mesh_from_group(group: Any, device_type: str, *arguments: Any, **settings: Any) -> Any:
        assert device_type == "cuda"
        return from_group(group, "cpu", *arguments, **settings)

    def exchange(operation: Any) -> None:
        if operation.namespace == "c10d":
            gpu.idle(EXCHANGE_S)

    gpu.memory.on_operation = exchange
    patch.setattr(dist, "init_process_group", init_process_group)
    patch.setattr(dist, "new_group", make_group)
    patch.setattr(dist, "get_backend", get_backend)
    patch.setattr(torch.distributed.device_mesh.DeviceMesh, "from_group", staticmethod(mesh_from_group))

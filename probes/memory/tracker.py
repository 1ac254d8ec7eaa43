"""Peak memory without running: a step on fake tensors, whose storages are counted as they are created and freed.

Fake tensors have shapes and types but no data, so a step of a model that would fill a large GPU takes a second. If the
machine has a GPU, the fake tensors belong to it, and its kernels' own rules of what they save and return apply.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from planner.lazy import dataclass
from probes.device.device import Device
from probes.models.cases import ModelCase, params_of

ROUND_BYTES = {"cuda": 512, "cpu": 1}
"""Bytes to a multiple of which an allocation is rounded up (CUDA's caching allocator: 512)."""


class StorageCounter(TorchDispatchMode):  # type: ignore[misc] # torch is untyped here
    """Counts the bytes of the storages that operations return; `peak` is the maximum since the last reset."""

    def __init__(self, device_kind: str, tensors_on: str | None = None) -> None:
        """Count what is allocated on a device.

        Args:
            device_kind: `cuda` or `cpu`; determines how allocations are rounded.
            tensors_on: type of the tensors' device; None: the same as `device_kind`.
        """
        super().__init__()
        self._kind = tensors_on or device_kind
        self._round = ROUND_BYTES[device_kind]
        self._known: dict[int, int] = {}
        self.live = 0
        self.peak = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation and count the storages that it created."""
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.count(leaf)
        return result

    def count(self, tensor: torch.Tensor) -> None:
        """Count a tensor's storage once, until it is freed."""
        names = getattr(tensor, "__tensor_flatten__", None)
        if names is not None and not isinstance(tensor, torch._subclasses.FakeTensor):
            for name in names()[0]:
                self.count(getattr(tensor, name))
            return
        if tensor.device.type != self._kind:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        size = -(-storage.nbytes() // self._round) * self._round
        self._known[key] = size
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, key)

    def _free(self, key: int) -> None:
        self.live -= self._known.pop(key, 0)

    def reset_peak(self) -> None:
        """Restart the maximum from what is live now."""
        self.peak = self.live


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """Result of tracking a step."""

    peak_bytes: float | None
    """Peak bytes; None if a kernel has no rules for fake tensors."""
    params: int


def track(make: Callable[[], Any], device: Device) -> Tracked:
    """Return the peak of the second step of a trial made under fake tensors; the first creates gradients and states.

    Args:
        make: makes a trial that has a `module`, on the device; called under fake tensors.
        device: device on which the step would run.
    """
    from probes.device.clock import no_mark

    counter = StorageCounter(device.kind, device.torch.type)
    with FakeTensorMode(allow_non_fake_inputs=True), counter:
        trial = make()
        trial.step(no_mark)
        counter.reset_peak()
        trial.step(no_mark)
    return Tracked(
        peak_bytes=float(counter.peak), params=sum(parameter.numel() for parameter in trial.module.parameters())
    )


def count_params(case: ModelCase) -> int:
    """Return the number of parameters of a model, counted on fake tensors of the CPU."""
    from probes.models.transformers_models import build_model

    with FakeTensorMode(allow_non_fake_inputs=True):
        return params_of(build_model(case, 0, torch.device("cpu")))

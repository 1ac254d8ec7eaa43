"""The device that is measured: a CUDA GPU or the CPU, and what it reports about itself."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from typing import TYPE_CHECKING, Any

from planner.errors import CannotMeasureError, UsageError
from planner.lazy import dataclass
from probes.device.clock import Clock, CpuClock, CudaClock

if TYPE_CHECKING:
    import torch

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The GPUs that a process can see, which it counts from 0."""
LIBRARY_BYTES = 2.0**30
"""Memory left to what does not ask torch for it: libraries, and the context of the process that tracks memory."""
SALT = "mpplan.probe"
"""Salt for the hash of a UUID, so that the device cannot be looked up elsewhere by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device, opened."""

    kind: str
    """`cuda` or `cpu`."""
    index: int
    """Number in PCI bus order, as in `nvidia-smi`; 0 for the CPU."""
    name: str
    uuid: str | None
    """UUID; it never leaves the process, and the record holds `hashed` instead."""
    capability: tuple[int, int]
    """CUDA compute capability; (0, 0) for a CPU."""
    memory_bytes: float
    sm_count: int | None
    l2_bytes: float | None

    @property
    def hashed(self) -> str | None:
        """First 12 hex digits of the salted SHA-256 of the UUID."""
        if self.uuid is None:
            return None
        return hashlib.sha256(f"{SALT}:{self.uuid}".encode()).hexdigest()[:12]

    @property
    def torch(self) -> torch.device:
        """Device for `device=` arguments of torch."""
        import torch

        return torch.device("cuda", self.index) if self.kind == "cuda" else torch.device("cpu")

    def as_current(self, *, runs: bool = True) -> Device:
        """Make a GPU the current one of this process, create a context on it, and return it.

        Events, streams, statistics, Triton's kernels and a task's own `.cuda()` use the current GPU, not the one of
        their tensors.

        Args:
            runs: whether this process runs kernels there; one of torch's is then tried.

        Raises:
            CannotMeasureError: there can be no context (others hold all of its memory or use it exclusively, or it
                does not answer), or this build of torch has no kernels for it.
        """
        if self.kind == "cuda":
            import torch

            try:
                torch.cuda.set_device(self.index)
                torch.cuda.synchronize()  # `set_device` creates no context on GPU 0, which is current from the start
                if runs:
                    torch.ones(1, device=self.torch)
                    torch.cuda.synchronize()
                    if driver_spills():
                        _keep_to_free_memory(self.index)
            except RuntimeError as error:
                raise self._unusable(error) from error
        return self

    def _unusable(self, error: RuntimeError) -> CannotMeasureError:
        """Return an error of its first use in words."""
        import torch

        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if _NO_KERNEL in reason:
            capability, built = ".".join(map(str, self.capability)), ", ".join(torch.cuda.get_arch_list())
            return CannotMeasureError(
                f"GPU {self.index} cannot be used: this torch has no kernels for compute capability {capability}",
                hint=f"install a build of torch for it; torch {torch.__version__} was built for {built}",
            )
        return CannotMeasureError(
            f"GPU {self.index} cannot be used: {reason}",
            hint="`nvidia-smi` shows what uses it; `--gpu-index` chooses another",
        )

    @property
    def clock(self) -> Clock:
        """The clock that times work on it."""
        return CudaClock() if self.kind == "cuda" else CpuClock()


def driver_spills() -> bool:
    """Return whether the GPU's driver is that of Windows, below WSL too.

    It gives a process the host's memory instead of an error when the GPU is full, whatever its setting
    (https://github.com/microsoft/WSL/issues/11050); a step that does not fit would be timed at the speed of PCIe.
    """
    return sys.platform == "win32" or "microsoft" in platform.release().lower()


def _keep_to_free_memory(index: int) -> None:
    """Let torch run out of memory where the GPU does."""
    import torch

    free_bytes, total_bytes = torch.cuda.mem_get_info(index)
    torch.cuda.set_per_process_memory_fraction(max(free_bytes - LIBRARY_BYTES, 0.0) / total_bytes, index)


def open_device(kind: str | None, index: int = 0) -> Device:
    """Open the requested device.

    Args:
        kind: `cuda`, `cpu`, or None for a GPU.
        index: index of the GPU.

    Raises:
        CannotMeasureError: there is no GPU, or torch cannot use it.
        UsageError: there is no GPU with this index.
    """
    return _open_cpu() if kind == "cpu" else _open_cuda(index)


def _open_cpu() -> Device:
    return Device(
        kind="cpu",
        index=0,
        name=cpu_name(),
        uuid=None,
        capability=(0, 0),
        memory_bytes=float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        sm_count=None,
        l2_bytes=None,
    )


def _open_cuda(index: int) -> Device:
    import torch

    if not torch.cuda.is_available():
        why, help_ = why_no_cuda()
        instead = "`mpplan probe --device cpu` measures the CPU"
        raise CannotMeasureError(why, hint=f"{help_}, or: {instead}" if help_ else instead)
    count = torch.cuda.device_count()
    if not 0 <= index < count:
        shown = os.environ.get(VISIBLE)
        who = "this machine has" if shown is None else f"{VISIBLE}=`{shown}` gives this process"
        hint = f"{who} {'GPU 0 alone' if count == 1 else f'GPUs 0 to {count - 1}'}"
        raise UsageError(f"there is no GPU {index}", hint=hint)
    facts: Any = torch.cuda.get_device_properties(index)
    uuid = getattr(facts, "uuid", None)
    return Device(
        kind="cuda",
        index=index,
        name=str(facts.name),
        uuid=None if uuid is None else str(uuid),
        capability=(int(facts.major), int(facts.minor)),
        memory_bytes=float(facts.total_memory),
        sm_count=int(facts.multi_processor_count),
        l2_bytes=float(size) if (size := getattr(facts, "L2_cache_size", None)) else None,
    )


def why_no_cuda() -> tuple[str, str | None]:
    """Return why torch sees no GPU, in one sentence, and a remedy."""
    import torch

    from probes.sensors.nvml import NoDriverError, asked, load_nvml

    try:
        seen = asked(load_nvml(), "nvmlDeviceGetCount")
    except NoDriverError:
        return "no NVIDIA GPU found", None
    except CannotMeasureError as error:  # there may be one: the driver does not start, or nothing can ask it
        return f"torch sees no GPU, and {error.message}", error.hint
    if not seen:
        return "no NVIDIA GPU found", None
    if torch.version.cuda is None:
        return "there is an NVIDIA GPU, but this torch was built without CUDA", "install a CUDA build of torch"
    shown = os.environ.get(VISIBLE)
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        if (match := _CUDA_ERROR.search(str(error))) is not None:
            help_ = _HELP.get(int(match[1]), _DRIVER)
            return f"there is an NVIDIA GPU, but CUDA does not start: error {match[1]}, {match[2].strip()}", help_
        if shown is not None and _NONE_SHOWN in str(error):
            hidden = f"{VISIBLE}=`{shown}` shows this process none of the machine's GPUs"
            return hidden, f"unset {VISIBLE}, or name them"
    return "there is an NVIDIA GPU, but torch cannot use it", _DRIVER


_NO_KERNEL = "no kernel image is available"
"""Part of CUDA's message if no kernel of a library was built for the GPU, nor can be compiled for it."""
_CUDA_ERROR = re.compile(r"Error (\d+): ([^\n]*)")
_NONE_SHOWN = "No CUDA GPUs"
"""Part of torch's message if CUDA starts but counts no GPU; a driver that does not start counts as none, too."""
_DRIVER = "install a driver that fits torch's CUDA"
_HELP = {
    802: "start NVIDIA's Fabric Manager on the host, in the version of its driver: NVSwitch systems need it",
    999: "load the kernel module `nvidia_uvm` again on the host, or restart it",
}
"""Remedy by number of the CUDA error, where the number identifies the cause; otherwise the driver is to blame."""


def cpu_name() -> str:
    """Return the processor's name as the operating system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown CPU"

"""Environment of a measured point: the device, and the software versions that its figures depend on."""

from __future__ import annotations

from dataclasses import field

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdentity:
    """The device that was measured, and the CPU beside it."""

    kind: str
    """`cuda` or `cpu`; the key is `device_kind`."""
    name: str
    """Name as the driver or the system reports it; the key is `device_name`."""
    uuid_hash: str | None = None
    """First 12 hex digits of a salted SHA-256 of the device's UUID; the key is `device_hash`."""
    compute_capability: str | None = None
    """CUDA compute capability, for example `9.0`."""
    sm_count: int | None = None
    """Number of streaming multiprocessors."""
    l2_bytes: float | None = None
    """Size of the L2 cache."""
    memory_total_bytes: float | None = None
    """Device memory; main memory for a CPU."""
    mig: bool | None = None
    """True if the device is a multi-instance GPU slice."""
    ecc: bool | None = None
    """True if memory error correction is on."""
    pcie_generation: int | None = None
    """Highest PCIe generation of the link."""
    pcie_width: int | None = None
    """Highest number of PCIe lanes of the link."""
    nvlink_links: int | None = None
    """Number of NVLink links of the GPU that are up; None without NVLink, or if the driver does not report them."""
    hypervisor: bool | None = None
    """True if the host is a virtual machine."""
    cpu_model: str | None = None
    """Name of the host's processor."""
    cpu_isa: tuple[str, ...] = ()
    """Instruction sets of the host's processor that matter to matrix products."""
    threads: int | None = None
    """Number of CPU threads that PyTorch uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareVersions:
    """Versions and settings that the figures depend on."""

    driver_version: str | None = None
    """NVIDIA driver."""
    cuda_version: str | None = None
    """CUDA that PyTorch was built with."""
    cudnn_version: str | None = None
    """cuDNN."""
    nccl_version: str | None = None
    """NCCL."""
    torch_version: str | None = None
    """PyTorch."""
    torch_git: str | None = None
    """Commit of PyTorch."""
    triton_version: str | None = None
    """Triton."""
    torchao_version: str | None = None
    """torchao."""
    transformers_version: str | None = None
    """transformers."""
    python_version: str | None = None
    """Python."""
    os_kernel: str | None = None
    """Operating system and its release."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables from a fixed list that change speed, for example `OMP_NUM_THREADS`."""
    mpplan_version: str | None = None
    """mpplan."""
    git_commit: str | None = None
    """Commit of mpplan, in a source checkout."""
    git_dirty: bool | None = None
    """True if the checkout had uncommitted changes."""

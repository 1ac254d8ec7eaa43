"""Where figures come from: device, versions and a fixed list of settings. No host, user, path or raw UUID."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from planner.lazy import dataclass
from planner.records.machine import DeviceIdentity, SoftwareVersions
from probes.device.device import Device, cpu_name

SUITE_VERSION = 2
"""Version of the definitions of the points; raise it when a point's meaning changes."""

ALLOWED_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "KMP_AFFINITY",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_SHM_DISABLE",
    "NCCL_IB_DISABLE",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NVLS_ENABLE",
    "NCCL_CROSS_NIC",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MAX_CTAS",
    "NCCL_BUFFSIZE",
    "NCCL_NTHREADS",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_MAX_CPU_ISA",
)
"""Variables that affect speed and identify nobody, as NCCL's names of network interfaces might;
`PYTORCH_*ALLOC_CONF` is added below, after a check."""

_ISA = (
    "avx2",
    "avx512f",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vnni",
    "amx_tile",
    "amx_bf16",
    "amx_fp16",
    "sve",
    "bf16",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The source of a record's lines: suite version, device and software."""

    suite_version: int
    """Version of the definitions of the points."""
    device: DeviceIdentity
    """The measured device."""
    software: SoftwareVersions
    """Versions and settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Board:
    """What NVML reports about a board."""

    driver_version: str | None = None
    mig: bool | None = None
    ecc: bool | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    nvlink_links: int | None = None


def provenance(device: Device) -> Provenance:
    """Return the provenance of a record of this device and process; torch must be importable."""
    import torch

    board = _board(device)
    isa, hypervisor = _cpu_flags()
    return Provenance(
        suite_version=SUITE_VERSION,
        device=DeviceIdentity(
            kind=device.kind,
            name=device.name,
            uuid_hash=device.hashed,
            compute_capability=".".join(map(str, device.capability)) if device.kind == "cuda" else None,
            sm_count=device.sm_count,
            l2_bytes=device.l2_bytes,
            memory_total_bytes=device.memory_bytes,
            mig=board.mig,
            ecc=board.ecc,
            pcie_generation=board.pcie_generation,
            pcie_width=board.pcie_width,
            nvlink_links=board.nvlink_links,
            hypervisor=hypervisor,
            cpu_model=cpu_name(),
            cpu_isa=isa,
            threads=torch.get_num_threads(),
        ),
        software=_with_cuda(_software(board), device),
    )


def _software(board: _Board) -> SoftwareVersions:
    import torch

    commit, dirty = git_state(Path(__file__).resolve().parents[2])
    return SoftwareVersions(
        driver_version=board.driver_version,
        torch_version=str(torch.__version__),
        torch_git=(torch.version.git_version or "")[:12] or None,
        triton_version=_version("triton"),
        torchao_version=_version("torchao"),
        transformers_version=_version("transformers"),
        python_version=platform.python_version(),
        os_kernel=f"{platform.system()} {platform.release()}",
        environment=_environment(),
        mpplan_version=_version("mpplan"),
        git_commit=commit,
        git_dirty=dirty,
    )


def _with_cuda(software: SoftwareVersions, device: Device) -> SoftwareVersions:
    """Add the versions of CUDA's libraries, on a GPU."""
    if device.kind != "cuda":
        return software
    import torch

    nccl = getattr(torch.cuda, "nccl", None)
    cudnn = torch.backends.cudnn.version()
    return replace(
        software,
        cuda_version=torch.version.cuda,
        cudnn_version=str(cudnn) if cudnn else None,
        nccl_version=".".join(map(str, nccl.version())) if nccl and torch.distributed.is_available() else None,
    )


def _board(device: Device) -> _Board:
    """Return driver, MIG, ECC, PCIe and NVLink, as far as NVML reports them."""
    from planner.errors import CannotMeasureError
    from probes.sensors.nvml import asked, handle_by_uuid, links_up, load_nvml, slice_of

    if device.kind != "cuda" or device.uuid is None:
        return _Board()
    try:
        nvml = load_nvml()
        handle = handle_by_uuid(nvml, device.uuid)
    except CannotMeasureError:
        return _Board()

    driver, ecc = asked(nvml, "nvmlSystemGetDriverVersion"), asked(nvml, "nvmlDeviceGetEccMode", handle)
    return _Board(
        driver_version=driver.decode() if isinstance(driver, bytes) else driver,
        mig=slice_of(nvml, handle),
        ecc=None if ecc is None else ecc[0] == 1,
        pcie_generation=asked(nvml, "nvmlDeviceGetMaxPcieLinkGeneration", handle),
        pcie_width=asked(nvml, "nvmlDeviceGetMaxPcieLinkWidth", handle),
        nvlink_links=links_up(nvml, handle),
    )


def _cpu_flags() -> tuple[tuple[str, ...], bool | None]:
    """Return the relevant instruction sets, and whether this is a virtual machine; None if not reported."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return (), None
    line = next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")
    flags = set(line.split(":", 1)[-1].split())
    return tuple(name for name in _ISA if name in flags), "hypervisor" in flags


def _environment() -> dict[str, str]:
    """Return the allowed variables that are set; an allocator setting only in the form that torch documents."""
    variables = {name: os.environ[name] for name in ALLOWED_VARIABLES if name in os.environ}
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        value = os.environ.get(name, "")
        if value and all(c.isalnum() or c in "_:,.[]" for c in value):
            variables[name] = value
    return {name: value[:80] for name, value in variables.items() if "/" not in value and "\\" not in value}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def git_state(root: Path) -> tuple[str | None, bool | None]:
    """Return the commit of a source checkout and whether it has changes; None for an installed package."""
    if not (root / ".git").exists():
        return None, None
    try:
        commit = _git_output(root, "rev-parse", "--short=12", "HEAD")
        changes = _git_output(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None, None
    return commit, bool(changes)


def _git_output(root: Path, *arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()

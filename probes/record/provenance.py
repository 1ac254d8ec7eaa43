"""What the figures were measured with: versions and settings from a fixed list. No host, user, path or raw UUID."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from probes.device.device import Device, cpu_name

SUITE_VERSION = 1
"""Version of the definitions of the points; raise it when a point's meaning changes."""

ALLOWED_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "KMP_AFFINITY",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_MAX_CPU_ISA",
)
"""Variables that change speed and name nobody; `PYTORCH_*ALLOC_CONF` is added below, checked."""

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


def provenance(device: Device) -> dict[str, Any]:
    """The provenance fields of a `Measurement` for this device and process; torch must be importable."""
    import torch

    return {
        "suite_version": SUITE_VERSION,
        "device_kind": device.kind,
        "device_name": device.name,
        "device_hash": device.hashed,
        "compute_capability": ".".join(map(str, device.capability)) if device.kind == "cuda" else None,
        "sm_count": device.sm_count,
        "l2_bytes": device.l2_bytes,
        "memory_total_bytes": device.memory_bytes,
        **_cuda_facts(device),
        "torch_version": str(torch.__version__),
        "torch_git": (torch.version.git_version or "")[:12] or None,
        "triton_version": _version("triton"),
        "torchao_version": _version("torchao"),
        "transformers_version": _version("transformers"),
        "python_version": platform.python_version(),
        "os_kernel": f"{platform.system()} {platform.release()}",
        "cpu_model": cpu_name(),
        **_cpu_flags(),
        "threads": torch.get_num_threads(),
        "environment": _environment(),
        "mpplan_version": _version("mpplan"),
        **_git(),
    }


def _cuda_facts(device: Device) -> dict[str, Any]:
    if device.kind != "cuda":
        return {}
    import torch

    nccl = getattr(torch.cuda, "nccl", None)
    cudnn = torch.backends.cudnn.version()
    return {
        "cuda_version": torch.version.cuda,
        "cudnn_version": str(cudnn) if cudnn else None,
        "nccl_version": ".".join(map(str, nccl.version())) if nccl and torch.distributed.is_available() else None,
        **_nvml_facts(device),
    }


def _nvml_facts(device: Device) -> dict[str, Any]:
    """Driver, MIG, ECC and PCIe, where NVML tells."""
    from planner.errors import CannotMeasureError
    from probes.sensors.nvml import handle_by_uuid, load_nvml

    if device.uuid is None:
        return {}
    try:
        nvml = load_nvml()
        handle = handle_by_uuid(nvml, device.uuid)
    except CannotMeasureError:
        return {}

    def ask(name: str, *arguments: Any) -> Any:
        try:
            return getattr(nvml, name)(*arguments)
        except (nvml.NVMLError, AttributeError):
            return None

    driver = ask("nvmlSystemGetDriverVersion")
    mig, ecc = ask("nvmlDeviceGetMigMode", handle), ask("nvmlDeviceGetEccMode", handle)
    return {
        "driver_version": driver.decode() if isinstance(driver, bytes) else driver,
        "mig": None if mig is None else mig[0] == 1,
        "ecc": None if ecc is None else ecc[0] == 1,
        "pcie_generation": ask("nvmlDeviceGetMaxPcieLinkGeneration", handle),
        "pcie_width": ask("nvmlDeviceGetMaxPcieLinkWidth", handle),
    }


def _cpu_flags() -> dict[str, Any]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    line = next((one for one in text.splitlines() if one.startswith(("flags", "Features"))), "")
    flags = set(line.split(":", 1)[-1].split())
    return {"cpu_isa": tuple(one for one in _ISA if one in flags), "hypervisor": "hypervisor" in flags}


def _environment() -> dict[str, str]:
    """Allowed variables that are set; an allocator setting only in the form that torch documents."""
    found = {name: os.environ[name] for name in ALLOWED_VARIABLES if name in os.environ}
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        value = os.environ.get(name, "")
        if value and all(c.isalnum() or c in "_:,.[]" for c in value):
            found[name] = value
    return {name: value[:80] for name, value in found.items() if "/" not in value and "\\" not in value}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git() -> dict[str, Any]:
    """Commit of a source checkout; nothing for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return {}
    try:
        commit = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
        status = subprocess.run(
            ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"],
            capture_output=True, text=True, timeout=5, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"git_commit": commit.stdout.strip(), "git_dirty": bool(status.stdout.strip())}

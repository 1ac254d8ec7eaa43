"""A GPU as a row of the catalogue: `Gpu`."""

from __future__ import annotations

from planner.evidence import Evidence
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU part, per device. Rates are dense (no sparsity); SI units; None where no source gives the figure."""

    id: str
    """Slug, for example `h100-sxm5-80gb`."""
    name: str
    """Vendor's name of the part."""
    arch: str
    """Architecture: Pascal, Volta, Turing, Ampere, Ada, Hopper, Blackwell, Blackwell Ultra, CDNA, CDNA2 …"""
    year: int
    """Year of the part's launch."""
    memory_bytes: float
    """Device memory visible to the driver where known, else the label."""
    memory_bytes_per_s: float
    """Datasheet memory bandwidth."""
    peak_flop_per_s: dict[str, float]
    """Dense peak by compute type: fp32, tf32, fp16, bf16, fp8, fp4. A missing key: the GPU has no such path."""
    l2_bytes: float | None
    sm_count: int | None
    boost_hz: float | None
    tdp_w: float
    """Board power limit as sold (module power on Grace Hopper)."""
    power_scope: str
    """What its power limit and NVML's readings cover: `board`, or `module` with the CPU (Grace Hopper)."""
    nvlink_bytes_per_s: float | None
    """Per direction and GPU to the other GPUs of its NVLink (xGMI) domain; None: PCIe only."""
    nvlink_domain_gpus: int
    """GPUs that one NVLink (xGMI) domain joins; 1 where there is none."""
    pcie_bytes_per_s: float
    """Per direction, x16, from the PCIe generation."""
    gpus_per_node: int
    """Typical GPUs per server."""
    nic_bytes_per_s: float | None
    """Typical network rate per GPU; None where no source gives one."""
    host_power_w: float | None
    """Nameplate power of the server without its GPUs, per server."""
    measured_matmul_flop_per_s: dict[str, float]
    """Best published measured matrix rate by compute type (random data)."""
    measured_matmul_gpu: str | None
    """The GPU on which those rates were measured, where it is a sibling of this one."""
    measured_memory_bytes_per_s: float | None
    """Published measured memory bandwidth."""
    confidence: str
    """A: two or more agreeing sources; B: one good source or a simple derivation; C: conflicting or remembered."""
    evidence: Evidence
    """Source of the row."""
    device_name_pattern: str | None = None
    """Regular expression, full match on the driver's device name; with the memory size it finds the row."""
    device_power_limit_max_w: float | None = None
    """Highest power limit at which the name still means this part; None where name and memory settle it."""
    power_limit_min_w: float | None = None
    """Least power limit that its driver accepts."""
    notes: str = ""

    def supports(self, compute_type: str) -> bool:
        """Whether matrix products of this type (fp32, tf32, fp16, bf16, fp8, fp4) have a hardware path."""
        return compute_type in self.peak_flop_per_s

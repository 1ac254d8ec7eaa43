"""A GPU as a row of the catalogue: `Gpu`."""

from __future__ import annotations

from planner.evidence import Evidence
from planner.lazy import dataclass

TYPICAL_BYTES_PER_CYCLE = 8.0
"""Memory bandwidth per cycle of a multiprocessor: about the median of the GPUs whose number of them is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU part, per device; rates are dense (no sparsity), units are SI, None marks figures without a source."""

    id: str
    """Slug, for example `h100-sxm5-80gb`."""
    name: str
    """Vendor's name of the part."""
    arch: str
    """Architecture: Pascal, Volta, Turing, Ampere, Ada, Hopper, Blackwell, Blackwell Ultra, CDNA, CDNA2 …"""
    year: int
    """Year of the part's launch."""
    memory_bytes: float
    """Device memory visible to the driver if known, else the labelled size."""
    memory_bytes_per_s: float
    """Datasheet memory bandwidth."""
    peak_flop_per_s: dict[str, float]
    """Dense peak by compute type: fp32, tf32, fp16, bf16, fp8, fp4. The GPU has no hardware path for a missing type."""
    l2_bytes: float | None
    sm_count: int | None
    boost_hz: float | None
    """Clock of the datasheet, at which its peaks are stated."""
    load_hz: float | None
    """Clock observed under load; None where it does not exceed `boost_hz`, as on the parts made for servers."""
    tdp_w: float
    """Board power limit as sold (module power on Grace Hopper)."""
    power_scope: str
    """Scope of its power limit and of NVML's readings: `board`, or `module` including the CPU (Grace Hopper)."""
    nvlink_bytes_per_s: float | None
    """Rate per direction and GPU to the other GPUs of its NVLink (xGMI) domain; None for PCIe only."""
    nvlink_domain_gpus: int
    """GPUs in one NVLink (xGMI) domain; 1 without NVLink."""
    pcie_bytes_per_s: float
    """Rate of x16 per direction, from the PCIe generation."""
    gpus_per_node: int
    """Typical GPUs per server."""
    nic_bytes_per_s: float | None
    """Typical network rate per GPU; None without a source."""
    host_power_w: float | None
    """Nameplate power of the server without its GPUs, per server."""
    measured_matmul_flop_per_s: dict[str, float]
    """Best published measured matrix rate by compute type (random data)."""
    measured_matmul_gpu: str | None
    """The GPU on which those rates were measured, if it is a sibling of this one."""
    measured_memory_bytes_per_s: float | None
    """Published measured memory bandwidth."""
    confidence: str
    """A: two or more agreeing sources; B: one good source or a simple derivation; C: conflicting or remembered."""
    evidence: Evidence
    """Source of the row."""
    device_name_pattern: str | None = None
    """Regular expression that must match the driver's whole device name; with the memory size it identifies the row."""
    device_power_limit_max_w: float | None = None
    """Highest power limit at which the name still means this part; None if name and memory identify it."""
    power_limit_min_w: float | None = None
    """Lowest power limit that its driver accepts."""
    c2c_bytes_per_s: float | None = None
    """Rate per direction to the processor on the same module (NVLink-C2C of Grace Hopper); None without one."""
    notes: str = ""

    @property
    def host_bytes_per_s(self) -> float:
        """Rate per direction to the memory of the host: of NVLink-C2C where the module has it, otherwise of PCIe."""
        return self.c2c_bytes_per_s or self.pcie_bytes_per_s

    @property
    def multiprocessor_cycles_per_s(self) -> float:
        """Cycles of all multiprocessors under load; from the memory bandwidth where a source lacks clock or count."""
        if not self.sm_count or not self.boost_hz:
            return self.memory_bytes_per_s / TYPICAL_BYTES_PER_CYCLE
        return self.sm_count * (self.load_hz or self.boost_hz)

    @property
    def reachable_flop_per_s(self) -> dict[str, float]:
        """Peaks by compute type at the clock under load, which bound its kernels unless the power limit does.

        The clock of boards for desktops rises above the datasheet's as long as power and temperature allow.
        Utilisation (MFU) is relative to `peak_flop_per_s` all the same.
        """
        if not self.load_hz or not self.boost_hz:
            return self.peak_flop_per_s
        return {compute: peak * self.load_hz / self.boost_hz for compute, peak in self.peak_flop_per_s.items()}

    def supports(self, compute_type: str) -> bool:
        """Whether the hardware can run matrix products of this type (fp32, tf32, fp16, bf16, fp8, fp4)."""
        return compute_type in self.peak_flop_per_s

"""Result of one point: the part of its line that only running it can fill."""

from __future__ import annotations

from dataclasses import field

from planner.lazy import dataclass
from planner.records.communication import OverlapFigures, RankFigures
from planner.records.figures import DeviceState, EnergyUse, Numerics, PeakMemory, PowerDraw, Sampling, TimeStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Status and figures of a point that was run, or the reason why there are none."""

    status: str
    """One of `planner.records.measurement.STATUSES`."""
    reason: str | None = None
    """Why there is no figure, or a remark on the figures."""
    recipe_flags: tuple[str, ...] = ()
    """Further choices that selected the kernels."""
    attention_backend: str | None = None
    """Family of attention kernels that torch chose."""
    params: int | None = None
    """Parameters of the module that was run; None: the number counted beforehand holds."""
    time: TimeStatistics = field(default_factory=TimeStatistics)
    """Time of one iteration."""
    sampling: Sampling = field(default_factory=Sampling)
    """How the times were sampled."""
    memory: PeakMemory = field(default_factory=PeakMemory)
    """Device memory."""
    energy: EnergyUse = field(default_factory=EnergyUse)
    """Energy of one iteration."""
    power: PowerDraw = field(default_factory=PowerDraw)
    """Power over the energy window, or of a burst."""
    device_state: DeviceState = field(default_factory=DeviceState)
    """Temperatures, clocks and power limit."""
    numerics: Numerics = field(default_factory=Numerics)
    """Effect of the arithmetic on the values."""
    ranks: RankFigures = field(default_factory=RankFigures)
    """Figures of each rank."""
    overlap: OverlapFigures = field(default_factory=OverlapFigures)
    """Figures of a product beside a collective."""

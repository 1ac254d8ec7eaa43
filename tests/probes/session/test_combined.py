"""The figures of several ranks as one point's; real processes gather them in `tests/probes/process`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.records.communication import RankFigures
from planner.records.figures import DeviceState, EnergyUse, PeakMemory, PowerDraw, Sampling, TimeStatistics
from probes.ranks.team import ALONE
from probes.record.figures import Figures
from probes.session.combined import combined, first_failure


@dataclass(frozen=True, slots=True)
class Gathered:
    """A team whose ranks found these."""

    parts: tuple[Any, ...]

    @property
    def size(self) -> int:
        return len(self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"node 0 rank {rank}" for rank in range(self.size))

    def gather(self, _own: Any) -> list[Any]:
        return list(self.parts)

    def failures(self, _own: Any) -> list[Any]:
        return list(self.parts)


def figures(own_s: float, peak: float, joules: float | None, watts: float, quality: str = "ok") -> Figures:
    return Figures(
        status="ok",
        time=TimeStatistics(median_s=0.5),
        sampling=Sampling(quality=quality),
        memory=PeakMemory(allocated_peak_bytes=peak, source="cuda_allocator"),
        energy=EnergyUse(j_per_iteration=joules, source="counter"),
        power=PowerDraw(mean_w=watts),
        device_state=DeviceState(temperature_end_c=60.0, sm_clock_median_hz=1.7e9, power_limit_w=700.0),
        ranks=RankFigures(time_s=(own_s,)),
    )


def test_memory_is_the_largest_energy_the_sum_and_every_rank_is_kept() -> None:
    parts = (figures(0.48, 4e9, 300.0, 600.0), figures(0.5, 5e9, 310.0, 620.0, "throttled"))

    together = combined(parts[0], Gathered(parts))  # type: ignore[arg-type]

    assert together.time.median_s == 0.5
    assert (together.memory.allocated_peak_bytes, together.memory.source) == (5e9, "cuda_allocator")
    assert (together.energy.j_per_iteration, together.power.mean_w) == (610.0, 1220.0)
    assert together.sampling.quality == "throttled"
    assert together.ranks == RankFigures(
        names=("node 0 rank 0", "node 0 rank 1"), time_s=(0.48, 0.5), power_w=(600.0, 620.0), energy_j=(300.0, 310.0),
        temperature_c=(60.0, 60.0), sm_clock_hz=(1.7e9, 1.7e9), power_limit_w=(700.0, 700.0), memory_bytes=(4e9, 5e9),
        slowed=("node 0 rank 1",),
    )  # fmt: skip


def test_energy_that_one_rank_does_not_know_is_unknown() -> None:
    parts = (figures(0.48, 4e9, 300.0, 600.0), figures(0.5, 5e9, None, 620.0))

    together = combined(parts[0], Gathered(parts))  # type: ignore[arg-type]

    assert together.energy.j_per_iteration is None
    assert together.ranks.energy_j == ()


def test_the_first_rank_on_which_something_went_wrong_is_named() -> None:
    failed = Figures(status="oom", reason="not enough memory on the device")

    failure = first_failure(None, Gathered((None, failed)))  # type: ignore[arg-type]

    assert failure == Figures(status="oom", reason="node 0 rank 1: not enough memory on the device")
    assert first_failure(None, Gathered((None, None))) is None  # type: ignore[arg-type]


def test_one_process_keeps_its_figures_as_they_are() -> None:
    unjoined = figures(0.5, 4e9, 300.0, 600.0)

    assert combined(unjoined, ALONE) is unjoined
    assert first_failure(None, ALONE) is None

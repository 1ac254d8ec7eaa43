"""The clock of several ranks: all begin a batch together, and each sample is that of the slowest rank."""

from __future__ import annotations

import time
from dataclasses import replace

from probes.device.canary_clock import CanaryClock, CanaryReading, at_usual_speed
from probes.device.clock import Batch, Clock, Runs
from probes.ranks.team import Team


class TeamClock:
    """A rank's own clock, whose batches all ranks run at the same time."""

    def __init__(self, clock: Clock, team: Team, canary: CanaryClock | None = None) -> None:
        """Make the clock.

        Args:
            clock: the clock of this rank's device.
            team: all ranks.
            canary: on a CPU, the fixed work that all ranks run before and after each batch; the slowest rank determines
                the divisor of the samples.
        """
        self._clock, self._team, self._canary = clock, team, canary

    def synchronize(self) -> None:
        """Wait for this rank's device."""
        self._clock.synchronize()

    def agree(self, decision: bool) -> bool:
        """Return the decision of rank 0."""
        return self._team.agree(decision)

    def batch(self, trial: Runs, *, samples: int, iterations: int) -> Batch:
        """See `Clock.batch`; each sample is that of the slowest rank, and `own_s` keeps this rank's."""
        self._clock.synchronize()
        self._team.line_up()
        began = time.perf_counter()
        before_s = self._canary.burst_s() if self._canary else 0.0
        self._team.line_up()
        batch = self._clock.batch(trial, samples=samples, iterations=iterations)
        reading = self._canary.reading(before_s, self._canary.burst_s()) if self._canary else None
        wall_s = time.perf_counter() - began
        phases = [value for values in batch.phases_s.values() for value in values]
        judged = [float(reading.disturbed), reading.ratio] if reading else [float(batch.disturbed), 1.0]
        wall_s, disturbed, ratio, *slowest = self._team.maxima([wall_s, *judged, *batch.samples_s, *phases])
        slowest_phases = iter(slowest[len(batch.samples_s) :])
        together = replace(
            batch,
            wall_s=wall_s,
            disturbed=bool(disturbed),
            samples_s=tuple(slowest[: len(batch.samples_s)]),
            phases_s={name: tuple(next(slowest_phases) for _ in values) for name, values in batch.phases_s.items()},
            own_s=batch.samples_s,
        )
        if reading is None:
            return together
        return at_usual_speed(together, CanaryReading(ratio=ratio, disturbed=bool(disturbed)))

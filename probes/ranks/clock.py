"""The clock of several ranks: all begin a batch together, and a sample is that of the slowest."""

from __future__ import annotations

import time
from dataclasses import replace

from probes.device.clock import Batch, Clock, Runs
from probes.ranks.team import Team


class TeamClock:
    """A rank's own clock, whose batches all ranks take at once."""

    def __init__(self, own: Clock, team: Team) -> None:
        self._own, self._team = own, team

    def synchronize(self) -> None:
        """Wait for this rank's device."""
        self._own.synchronize()

    def agree(self, decision: bool) -> bool:
        """What rank 0 decided."""
        return self._team.agree(decision)

    def batch(self, trial: Runs, *, samples: int, iterations: int) -> Batch:
        """See `Clock.batch`: sample by sample the slowest rank's; `own_s` keeps this rank's."""
        self._own.synchronize()
        self._team.line_up()
        began = time.perf_counter()
        batch = self._own.batch(trial, samples=samples, iterations=iterations)
        wall_s = time.perf_counter() - began
        phases = [value for values in batch.phases_s.values() for value in values]
        slowest = self._team.maxima([wall_s, float(batch.disturbed), *batch.samples_s, *phases])
        rest = iter(slowest[2 + len(batch.samples_s) :])
        return replace(
            batch,
            wall_s=slowest[0],
            disturbed=bool(slowest[1]),
            samples_s=tuple(slowest[2 : 2 + len(batch.samples_s)]),
            phases_s={name: tuple(next(rest) for _ in values) for name, values in batch.phases_s.items()},
            own_s=batch.samples_s,
        )

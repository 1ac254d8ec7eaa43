"""A clock for a CPU that has other things to do: CPU time, divided by how much slower than usual a fixed product runs.

```
canary ▒▒  batch of samples ████████████  canary ▒▒  batch of another trial ████████  canary ▒▒ …
           divided by the mean of both ▒▒, over the usual one
```

Time that other processes took from this one is not in its CPU time. What they take from it while it runs (the other
hardware thread of the core, caches, memory, clock) slows the fixed product beside it as well: samples are divided by
that, and set aside where it is more than a little, since not all work slows down alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.lazy import dataclass
from probes.device.clock import Batch, CpuClock, Runs

BURST_S, LEAST_CALLS = 0.008, 3
"""Length of a canary beside a batch, and its fewest calls: long enough for a median, short beside the batch."""
OBSERVED_S = 2.0
"""How long the canary is watched before anything is measured: longer than most bursts of other processes' work."""
QUIET_RATIO = 1.2
"""A canary slower than the machine's quiet level by more than this disturbs the batches beside it."""
QUIET_QUANTILE = 0.1
"""Quantile of all canaries that is the quiet level: a core that is busy half the time leaves enough below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the canary says of the batch beside it."""

    ratio: float
    """Its time over the usual one."""
    disturbed: bool


def divided(batch: Batch, beside: Beside) -> Batch:
    """A batch as the machine at its usual speed would have run it."""
    return replace(
        batch,
        samples_s=tuple(sample / beside.ratio for sample in batch.samples_s),
        own_s=tuple(sample / beside.ratio for sample in batch.own_s),
        phases_s={name: tuple(value / beside.ratio for value in values) for name, values in batch.phases_s.items()},
        canary_ratio=beside.ratio,
        disturbed=batch.disturbed or beside.disturbed,
    )


class CanaryClock:
    """Batches between canaries. Their samples are seconds of the machine as it was while it was watched, and quiet."""

    def __init__(self, canary: Callable[[], object], *, threads: int = 1, usual_s: float | None = None) -> None:
        """Watch the canary for a while, to learn how fast it usually runs; ranks of a host watch theirs together.

        Args:
            canary: the fixed work, some milliseconds of it.
            threads: that the work uses; the CPU time of more than one is not the time that it takes.
            usual_s: seconds of the canary that other samples of the same record were divided to; None: as watched now.
        """
        self._now = time.process_time if threads == 1 else time.perf_counter
        self._clock = CpuClock(self._now)
        self._canary = canary
        for _ in range(LEAST_CALLS):
            canary()
        began = self._now()
        canary()
        self._calls = max(LEAST_CALLS, round(BURST_S / max(self._now() - began, 1e-6)))
        self._seen_s: list[float] = []
        until = time.monotonic() + OBSERVED_S
        while time.monotonic() < until or len(self._seen_s) < LEAST_CALLS:
            self._last_s = self.burst_s()
            time.sleep(BURST_S)
        seen = np.array(self._seen_s)
        self.usual_s = usual_s or float(np.median(seen[seen <= self.quiet_s * QUIET_RATIO]))
        """Seconds of the canary on the machine at its quietest while it was watched."""
        self._last_at = time.monotonic()

    @property
    def quiet_s(self) -> float:
        """The canary at the quietest that the machine has been so far."""
        return float(np.quantile(self._seen_s, QUIET_QUANTILE))

    def synchronize(self) -> None:
        """Nothing is pending on a CPU."""

    def agree(self, decision: bool) -> bool:
        """See `Clock.agree`."""
        return decision

    def batch(self, trial: Runs, *, samples: int, iterations: int) -> Batch:
        """See `Clock.batch`; `wall_s` holds the canary as well."""
        began = time.perf_counter()
        if time.monotonic() - self._last_at > BURST_S:
            self._last_s = self.burst_s()  # something else was done since the last batch
        before_s = self._last_s
        batch = self._clock.batch(trial, samples=samples, iterations=iterations)
        after_s = self._last_s = self.burst_s()
        self._last_at = time.monotonic()
        beside = self.beside(before_s, after_s)
        return replace(divided(batch, beside), wall_s=time.perf_counter() - began)

    def beside(self, before_s: float, after_s: float) -> Beside:
        """What bursts before and after a batch say of it."""
        return Beside(
            ratio=0.5 * (before_s + after_s) / self.usual_s,
            disturbed=max(before_s, after_s) > QUIET_RATIO * self.quiet_s,
        )

    def burst_s(self) -> float:
        """Median seconds of a few canaries."""
        times = []
        for _ in range(self._calls):
            began = self._now()
            self._canary()
            times.append(self._now() - began)
        self._seen_s.append(float(np.median(times)))
        return self._seen_s[-1]

"""A clock for a CPU with other load: CPU time divided by the slowdown of a fixed product.

```
canary ▒▒  batch of samples ████████████  canary ▒▒  batch of another trial ████████  canary ▒▒ …
           divided by the mean of both ▒▒, over the usual one
```

Time during which other processes had the CPU is not part of this process's CPU time. Contention while it runs (for the
core's other hardware thread, caches, memory, clock) slows the fixed product beside it as well. Samples are therefore
divided by the product's slowdown, and set aside if that is large, because not all work slows down alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.lazy import dataclass
from probes.device.clock import Batch, CpuClock, Runs

BURST_S, LEAST_CALLS = 0.008, 3
"""Seconds of a canary beside a batch, and its least number of calls: enough for a median, short beside the batch."""
OBSERVED_S = 2.0
"""Seconds for which the canary is watched before any measurement: longer than most bursts of other processes."""
QUIET_RATIO = 1.2
"""A canary slower than the machine's quiet level by more than this ratio marks the batches beside it as disturbed."""
QUIET_QUANTILE = 0.1
"""Quantile of all canaries that defines the quiet level: a core that is busy half the time has enough below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryReading:
    """What the canary, run before and after a batch, shows about the machine during it."""

    ratio: float
    """The canary's time over its usual time."""
    disturbed: bool
    """Whether other processes slowed the machine down too much for the batch to count."""


def at_usual_speed(batch: Batch, reading: CanaryReading) -> Batch:
    """Return a batch as the machine would have run it at its usual speed."""
    return replace(
        batch,
        samples_s=tuple(sample / reading.ratio for sample in batch.samples_s),
        own_s=tuple(sample / reading.ratio for sample in batch.own_s),
        phases_s={name: tuple(value / reading.ratio for value in values) for name, values in batch.phases_s.items()},
        canary_ratio=reading.ratio,
        disturbed=batch.disturbed or reading.disturbed,
    )


class CanaryClock:
    """Times batches between canaries. Samples are in seconds of the machine as it was, quiet, while it was watched."""

    def __init__(self, canary: Callable[[], object], *, threads: int = 1, usual_s: float | None = None) -> None:
        """Watch the canary for a while, to learn its usual speed; the ranks of a host watch theirs at the same time.

        Args:
            canary: the fixed work, which takes a few milliseconds.
            threads: threads that the work uses; with more than one, CPU time is not the elapsed time.
            usual_s: the canary's usual seconds, by which earlier samples of the record were divided; None: as watched
                now.
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
        """Seconds of the canary on the quiet machine while it was watched."""
        self._last_at = time.monotonic()

    @property
    def quiet_s(self) -> float:
        """Seconds of the canary at the quietest level of the machine so far."""
        return float(np.quantile(self._seen_s, QUIET_QUANTILE))

    def synchronize(self) -> None:
        """Return at once, since nothing is pending on a CPU."""

    def agree(self, decision: bool) -> bool:
        """See `Clock.agree`."""
        return decision

    def batch(self, trial: Runs, *, samples: int, iterations: int) -> Batch:
        """See `Clock.batch`; `wall_s` includes the canary."""
        began = time.perf_counter()
        if time.monotonic() - self._last_at > BURST_S:
            self._last_s = self.burst_s()  # other work was done since the last batch
        before_s = self._last_s
        batch = self._clock.batch(trial, samples=samples, iterations=iterations)
        after_s = self._last_s = self.burst_s()
        self._last_at = time.monotonic()
        reading = self.reading(before_s, after_s)
        return replace(at_usual_speed(batch, reading), wall_s=time.perf_counter() - began)

    def reading(self, before_s: float, after_s: float) -> CanaryReading:
        """Return what the bursts before and after a batch show about it."""
        return CanaryReading(
            ratio=0.5 * (before_s + after_s) / self.usual_s,
            disturbed=max(before_s, after_s) > QUIET_RATIO * self.quiet_s,
        )

    def burst_s(self) -> float:
        """Run a few canaries and return their median time in seconds."""
        times = []
        for _ in range(self._calls):
            began = self._now()
            self._canary()
            times.append(self._now() - began)
        self._seen_s.append(float(np.median(times)))
        return self._seen_s[-1]

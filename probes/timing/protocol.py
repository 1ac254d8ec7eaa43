"""The measurement over time: warm-up, interleaved rounds, gate, stopping rule.

```
            warm-up            rounds (order drawn anew in each)                    stop, per trial
trial A   ▒▒▒▒▒▒▒▒          ████      ████            ████     ...      confidence interval narrow enough: `ci`
trial B          ▒▒▒▒▒▒▒        ████        ████  ████         ...      or time used up: `cap`
gate                     |─ judged ─|─ judged ─| ...                    samples taken under other load are set aside
```

Interleaving spreads slow drifts of the machine over everything that is compared. If too few undisturbed samples remain,
the trial is measured again, up to `attempts` times; after that it is kept and called contended. A clock may judge its
batches itself (`Batch.disturbed`): then each batch is set aside alone, rather than all that were taken beside it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from planner.lazy import dataclass
from probes.device.clock import MIN_REGION_S, Batch, Clock, no_mark
from probes.precisions.interface import PrecisionRecipe
from probes.timing.quiet import Gate
from probes.timing.statistics import SampleSummary, is_steady, summarise
from probes.timing.trial import Trial

MIN_UNDISTURBED_SAMPLES = 5
PAUSE_S = 0.3
"""Wait before a gated trial is measured again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When to stop measuring. Times are per trial."""

    ci_ratio: float
    """Stop when half the confidence interval is below this fraction of the median."""
    cap_s: float
    """Stop after this much measured time."""
    min_samples: int = 10
    min_total_s: float = 0.05
    rounds: int = 3
    """Least number of interleaved rounds."""
    warmup_calls: int = 3
    warmup_s: float = 0.3
    attempts: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Result of one trial."""

    summary: SampleSummary
    phases_s: dict[str, float]
    """Median by phase."""
    quality: str
    """ok or contended."""
    other_load_ratio: float | None
    """Mean over the windows that were used."""
    samples_gated: int
    rounds: int
    attempts: int
    iterations_per_sample: int
    stop_reason: str
    warmup_s: float
    first_call_s: float
    canary_ratio: float | None = None
    """Median of the canary beside the samples that were used, over its usual time."""
    own_median_s: float | None = None
    """With several ranks: this rank's median."""
    host_median_s: float | None = None
    """Host time to launch one iteration; None if the clock does not report it."""


@dataclass(slots=True, kw_only=True)
class Subject:
    """A trial while it is measured."""

    trial: Trial
    recipe: PrecisionRecipe
    first_call_s: float = 0.0
    warmup_s: float = 0.0
    guess_s: float = 0.0
    iterations: int = 1
    undisturbed: list[Batch] = field(default_factory=list)
    disturbed: list[Batch] = field(default_factory=list)
    undisturbed_loads: list[float] = field(default_factory=list)
    disturbed_loads: list[float] = field(default_factory=list)
    spent_s: float = 0.0
    budget_s: float = 0.0
    rounds: int = 0
    attempts: int = 1
    stop_reason: str | None = None


def measure(
    subjects: Sequence[Subject],
    clock: Clock,
    rules: Rules,
    gate: Gate | None,
    rng: random.Random,
    end_s: float = math.inf,
) -> list[Timing]:
    """Measure trials against each other; return one result per trial, in the given order.

    Args:
        subjects: the trials.
        clock: the clock of the device.
        rules: when to stop.
        gate: judges the machine; None: every sample counts.
        rng: draws the order of each round.
        end_s: time on `time.monotonic` after which no round begins except the first.
    """
    for subject in subjects:
        warm_up(subject, clock, rules)
        subject.budget_s = rules.cap_s
    judge = _Judge(gate, clock)
    while pending := [subject for subject in subjects if subject.stop_reason is None]:
        for subject in rng.sample(pending, len(pending)):
            judge.add(subject, _take_batch(subject, clock, rules))
        is_over = clock.agree(time.monotonic() >= end_s)
        if is_over or all(subject.spent_s >= subject.budget_s for subject in pending):
            judge.decide()
        for subject in pending:
            subject.stop_reason = _why_stop(subject, rules) or ("cap" if is_over else None)
        if all(subject.attempts > 1 for subject in pending):
            time.sleep(PAUSE_S * rng.random())
    return [result_of(subject) for subject in subjects]


class _Judge:
    """Collects batches until the gate's window is long enough, then sorts them into undisturbed and disturbed."""

    def __init__(self, gate: Gate | None, clock: Clock) -> None:
        self._gate, self._clock = gate, clock
        self._waiting: list[tuple[Subject, Batch]] = []
        self._start = gate.open() if gate else None
        self._since = time.monotonic()

    def add(self, subject: Subject, batch: Batch) -> None:
        """Add a batch that has just been measured."""
        self._waiting.append((subject, batch))
        if self._gate is None or self._clock.agree(time.monotonic() - self._since >= self._gate.window_s):
            self.decide()

    def decide(self) -> None:
        """Judge the batches that were measured since the last decision."""
        load = self._gate.judge(self._start) if self._gate else None
        is_accepted = self._gate is None or self._gate.accepts(load)
        for subject, batch in self._waiting:
            is_undisturbed = is_accepted and not batch.disturbed
            (subject.undisturbed if is_undisturbed else subject.disturbed).append(batch)
            if load is not None:
                (subject.undisturbed_loads if is_undisturbed else subject.disturbed_loads).append(load)
        self._waiting.clear()
        self._start = self._gate.open() if self._gate else None
        self._since = time.monotonic()


def warm_up(subject: Subject, clock: Clock, rules: Rules) -> None:
    """Run a trial until compilation is over and times are steady, within a limit."""
    subject.recipe.activate()
    began = time.perf_counter()
    subject.trial.step(no_mark)
    clock.synchronize()
    subject.first_call_s = time.perf_counter() - began
    times: list[float] = []
    compiled = _compilations()
    while True:
        batch = clock.batch(subject.trial, samples=1, iterations=subject.iterations)
        times.append(batch.samples_s[0])
        settled = _compilations() == compiled
        compiled = _compilations()
        elapsed = time.perf_counter() - began - subject.first_call_s
        enough = len(times) + 1 >= rules.warmup_calls and elapsed >= rules.warmup_s
        if clock.agree(settled and enough and (is_steady(times) or elapsed >= 3 * rules.warmup_s or times[-1] > 0.1)):
            break
    subject.guess_s = float(np.median(times[-10:]))
    subject.iterations = max(1, math.ceil(MIN_REGION_S / max(subject.guess_s, 1e-9)))
    subject.warmup_s = time.perf_counter() - began


def _take_batch(subject: Subject, clock: Clock, rules: Rules) -> Batch:
    subject.recipe.activate()
    slice_s = rules.cap_s / (2 * rules.rounds)
    count = max(1, min(500, round(slice_s / (subject.guess_s * subject.iterations))))
    batch = clock.batch(subject.trial, samples=count, iterations=subject.iterations)
    subject.rounds += 1
    subject.spent_s += batch.wall_s
    return batch


def _why_stop(subject: Subject, rules: Rules) -> str | None:
    """Return `ci`, `cap`, or None to continue. Other load is considered before precision."""
    samples = _samples(subject.undisturbed)
    total_s = sum(samples) * subject.iterations
    if subject.rounds < rules.rounds:
        return None
    if (
        len(samples) >= rules.min_samples
        and total_s >= rules.min_total_s
        and summarise(samples).ci_ratio <= rules.ci_ratio
    ):
        return "ci"
    if subject.spent_s < subject.budget_s:
        return None
    by_batch = any(batch.canary_ratio is not None for batch in subject.disturbed)
    # A gate judges windows: if most were disturbed, the others beside them are doubtful. A canary judges each batch.
    mostly_disturbed = len(subject.disturbed) > len(subject.undisturbed) and not by_batch
    too_disturbed = mostly_disturbed or (len(samples) < MIN_UNDISTURBED_SAMPLES and bool(subject.disturbed))
    if too_disturbed and subject.attempts < rules.attempts:
        subject.attempts += 1
        subject.budget_s += rules.cap_s
        return None
    return "cap"


def result_of(subject: Subject) -> Timing:
    """Summarise the undisturbed samples; if there are too few, all of them, with the result called contended."""
    samples = _samples(subject.undisturbed)
    enough = bool(samples) and (not subject.disturbed or len(samples) >= MIN_UNDISTURBED_SAMPLES)
    used = subject.undisturbed if enough else [*subject.undisturbed, *subject.disturbed]
    loads = subject.undisturbed_loads if enough else [*subject.undisturbed_loads, *subject.disturbed_loads]
    names = dict.fromkeys(name for batch in used for name in batch.phases_s)
    own_samples_s = [sample for batch in used for sample in batch.own_s]
    ratios = [batch.canary_ratio for batch in used if batch.canary_ratio is not None]
    return Timing(
        summary=summarise(_samples(used)),
        phases_s={
            name: float(np.median([t for batch in used for t in batch.phases_s.get(name, ())])) for name in names
        },
        quality="ok" if enough else "contended",
        other_load_ratio=float(np.mean(loads)) if loads else None,
        samples_gated=len(_samples(subject.disturbed)),
        rounds=subject.rounds,
        attempts=subject.attempts,
        iterations_per_sample=subject.iterations,
        stop_reason=subject.stop_reason or "cap",
        warmup_s=subject.warmup_s,
        first_call_s=subject.first_call_s,
        canary_ratio=float(np.median(ratios)) if ratios else None,
        own_median_s=float(np.median(own_samples_s)) if own_samples_s else None,
        host_median_s=host_median_s(used),
    )


def host_median_s(batches: Sequence[Batch]) -> float | None:
    """Return the median host time to launch one iteration; None if no batch has it."""
    hosts = [batch.host_s for batch in batches if batch.host_s is not None]
    return float(np.median(hosts)) if hosts else None


def _samples(batches: Sequence[Batch]) -> list[float]:
    """Return all samples of some batches, in seconds per iteration."""
    return [sample for batch in batches for sample in batch.samples_s]


def _compilations() -> int:
    """Return the number of graphs that torch.compile has compiled so far; 0 if it was never used."""
    import sys

    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    return int(counters["stats"]["unique_graphs"]) if counters else 0


def run_batches(trial: Trial, recipe: PrecisionRecipe, clock: Clock, seconds: float, guess_s: float) -> list[Batch]:
    """Keep a trial running for a while, in batches of about a quarter of a second; return the batches."""
    recipe.activate()
    count = max(1, round(0.25 / max(guess_s, 1e-6)))
    batches: list[Batch] = []
    end = time.monotonic() + seconds
    while clock.agree(time.monotonic() < end):
        batches.append(clock.batch(trial, samples=min(count, 50), iterations=max(1, count // 50)))
    return batches

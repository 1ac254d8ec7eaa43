"""What a run of `mpplan numerics` was asked to do; crosses from the command to its process as one JSON argument."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import ClassVar

from planner.lazy import dataclass

BUDGETS_S = {"cuda": 600.0, "cpu": 180.0}
"""Default time by kind of device."""
MARGINS = {"loss": 0.02, "accuracy": 0.01}
"""Default margin by metric: a fiftieth of a nat, one image in a hundred."""
METRICS = tuple(MARGINS)
LEAST_TASK_S = {"cuda": 120.0, "cpu": 50.0}
"""Of the budget for each task where none is named: with less, fewer are trained."""
SEEDS = 8
"""Most pairs of runs where no number is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericsOptions:
    """One run. What is None follows the record that is resumed, or the defaults."""

    worker: ClassVar[str] = "probes.process.numerics_worker"
    """Module that the process runs."""
    ranks: ClassVar[int] = 1
    nnodes: ClassVar[int] = 1

    device: str = "cuda"
    gpu_index: int = 0
    tasks: tuple[str, ...] | None = None
    """Ids, built in or `module:factory`."""
    precisions: tuple[str, ...] | None = None
    """Ids of lower precisions."""
    metric: str | None = None
    margin: float | None = None
    seeds: int | None = None
    size: str | None = None
    """`small` or `large`; None: by the device."""
    budget_s: float | None = None
    asked_unix_s: float | None = None
    """When the user asked, by the system's clock: the budget counts from then, the start of processes included."""
    spent_s: float = 0.0
    """What earlier processes of the same run have used; the time of asking already says so."""
    path: str | None = None
    """The record; None: one with a name of its own in `store`."""
    store: str | None = None
    resume: bool = False
    skip_failed: bool = False
    """After a crash: the part that killed the process is not tried again."""
    threads: int | None = None

    def budget_on(self, kind: str) -> float:
        """Seconds for a run on a kind of device."""
        return BUDGETS_S[kind] if self.budget_s is None else self.budget_s

    def to_json(self) -> str:
        """For the command line of the process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> NumericsOptions:
        """The options that `to_json` wrote."""
        values = json.loads(text)
        for name in ("tasks", "precisions"):
            values[name] = None if values[name] is None else tuple(values[name])
        return cls(**values)

    def asked(self) -> dict[str, object]:
        """What has to agree where a record is resumed, by flag; what was not given is None."""
        return {
            "--task": None if self.tasks is None else list(self.tasks),
            "--precision": None if self.precisions is None else list(self.precisions),
            "--metric": self.metric,
            "--margin": self.margin,
            "--seeds": self.seeds,
            "--size": self.size,
        }

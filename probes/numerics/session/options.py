"""Options of a run of `mpplan numerics`, passed from the command to its process as one JSON argument."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import ClassVar

from planner.lazy import dataclass

BUDGETS_S = {"cuda": 600.0, "cpu": 180.0}
"""Default time in seconds, by kind of device."""
MARGINS = {"loss": 0.02, "accuracy": 0.01}
"""Default margin by metric: a fiftieth of a nat, one image in a hundred."""
METRICS = tuple(MARGINS)
LEAST_TASK_S = {"cuda": 120.0, "cpu": 50.0}
"""Share of the budget in seconds that each default task needs; a smaller budget trains fewer of them."""
SEEDS = 8
"""Default for the largest number of paired runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericsOptions:
    """Options of one run. None means the value of the resumed record, or the default."""

    worker: ClassVar[str] = "probes.process.numerics_worker"
    """Module that the process runs."""
    ranks: ClassVar[int] = 1
    nnodes: ClassVar[int] = 1

    device: str = "cuda"
    gpu_index: int = 0
    tasks: tuple[str, ...] | None = None
    """Ids of built-in tasks, or `module:factory`."""
    precisions: tuple[str, ...] | None = None
    """Ids of lower precisions."""
    metric: str | None = None
    margin: float | None = None
    seeds: int | None = None
    size: str | None = None
    """`small` or `large`; None: chosen by the device."""
    budget_s: float | None = None
    asked_unix_s: float | None = None
    """When the user asked, by the system clock; the budget counts from then, so that starting processes is included."""
    path: str | None = None
    """Path of the record; None: a new name in `store`."""
    store: str | None = None
    resume: bool = False
    skip_failed: bool = False
    """Whether, after a crash, the part that killed the process is skipped."""
    threads: int | None = None

    def budget_on(self, kind: str) -> float:
        """Return the budget in seconds on a kind of device."""
        return BUDGETS_S[kind] if self.budget_s is None else self.budget_s

    def to_json(self) -> str:
        """Return the options as JSON, for the command line of the process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> NumericsOptions:
        """Parse options that `to_json` wrote."""
        values = json.loads(text)
        for name in ("tasks", "precisions"):
            values[name] = None if values[name] is None else tuple(values[name])
        return cls(**values)

    def asked(self) -> dict[str, object]:
        """Return, by flag, the options that must agree with a resumed record; None for a flag that was not given."""
        return {
            "--task": None if self.tasks is None else list(self.tasks),
            "--precision": None if self.precisions is None else list(self.precisions),
            "--metric": self.metric,
            "--margin": self.margin,
            "--seeds": self.seeds,
            "--size": self.size,
        }

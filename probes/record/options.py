"""Options of a run, passed from the command to the probe process as one JSON argument."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import ClassVar

from planner.lazy import dataclass

SUITES = ("quick", "default", "thorough")
CLAIMS_SUITE = "claims"
"""Points by which claims in the literature are judged (`mpplan claims --measure`); not a suite of `mpplan probe`."""
CLAIMS_WORKLOADS = ("gemm", "end-to-end", "optimizer")
"""Workloads that include such points."""
BUDGETS_S = {
    "cuda": {"quick": 120.0, "default": 480.0, "thorough": 3600.0},
    "cpu": {"quick": 25.0, "default": 50.0, "thorough": 600.0},
}
"""Default time in seconds, by kind of device and suite."""
RANKS_BUDGETS_S = {
    "cuda": {"quick": 120.0, "default": 480.0, "thorough": 3600.0},
    "cpu": {"quick": 60.0, "default": 240.0, "thorough": 1200.0},
}
"""Default time in seconds with several ranks, which share a CPU's cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One run of the probes."""

    worker: ClassVar[str] = "probes.process.worker"
    """Module that the process runs."""

    suite: str = "default"
    device: str | None = None
    """`cuda`, `cpu`, or None for a GPU."""
    gpu_index: int = 0
    precisions: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    budget_s: float | None = None
    """Time in seconds; None: the suite's default."""
    spent_s: float = 0.0
    """Seconds of the budget that earlier processes of the same run used."""
    path: str | None = None
    """The record file; None: a new name in `store`."""
    store: str | None = None
    """Directory that keeps the record, or a copy of it if `path` is given."""
    resume: bool = False
    others: tuple[str, ...] = ()
    """When resuming without a named record: the user's older records, newest first. The newest of `path` and these that
    was begun on this run's GPU is continued; only the process that opens the GPU can tell."""
    skip_failed: bool = False
    """Whether, when resuming after a crash, points that failed are not tried again."""
    verify: bool = False
    verify_from: str | None = None
    """Record of fewer ranks from which the steps of a verification are predicted; None: the run's own record."""
    measure: bool = True
    """False: only verify, from what the record already holds."""
    seed: int = 0
    threads: int | None = None
    ranks: int = 1
    """Processes of the run on this node, one per GPU; 1: without torchrun."""
    nnodes: int = 1
    """Nodes, each with the same number of ranks."""
    rdzv_endpoint: str | None = None
    """`host:port` at which the nodes meet; None: one node."""
    join_s: float = 120.0
    """Longest wait for a rank to arrive."""

    def to_json(self) -> str:
        """Return the options as JSON, for the command line of the probe process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Options:
        """Parse options that `to_json` wrote."""
        values = json.loads(text)
        for name in ("precisions", "workloads", "others"):
            values[name] = tuple(values[name])
        return cls(**values)

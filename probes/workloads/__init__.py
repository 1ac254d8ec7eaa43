"""Workloads that are measured. One file per workload, listed here in the order of their value to a plan."""

from __future__ import annotations

from collections.abc import Iterable

from planner.errors import UsageError
from probes.timing.trial import Workload
from probes.workloads.attention import AttentionWorkload
from probes.workloads.bandwidth import Bandwidth
from probes.workloads.block import Block
from probes.workloads.canary import Canary
from probes.workloads.distributed.collective import Collectives
from probes.workloads.distributed.overlap import Overlap
from probes.workloads.distributed.steps import ParallelSteps
from probes.workloads.distributed.waiting import Waiting
from probes.workloads.end_to_end import EndToEnd
from probes.workloads.gemm import Gemm
from probes.workloads.idle import Idle
from probes.workloads.launch import Launch
from probes.workloads.memory_ops import MemoryOps
from probes.workloads.optimizer import OptimizerStep
from probes.workloads.power import PowerWorkload

WORKLOADS: tuple[Workload, ...] = (
    Idle(),
    Canary(),
    Bandwidth(),
    Launch(),
    AttentionWorkload(),
    MemoryOps(),
    PowerWorkload(),
    OptimizerStep(),
    Gemm(),
    Block(),
    EndToEnd(),
)
"""All workloads; a run that is cut off has measured the first ones. Layers consist of products, attention and memory
operations, so a measurement of a whole layer is of no use until these are known."""


DISTRIBUTED: tuple[Workload, ...] = (Canary(), Collectives(), Overlap(), ParallelSteps(), Waiting())
"""Workloads of several ranks, in the order of their value to a plan: networks before steps that use them."""


def choose(names: Iterable[str], ranks: int = 1) -> tuple[Workload, ...]:
    """Return the workloads of the given names, in the order of the registry; all if no name is given.

    The canary is always among them.

    Raises:
        UsageError: a name is unknown or needs another number of ranks.
    """
    listed = WORKLOADS if ranks == 1 else DISTRIBUTED
    asked = [name.strip().lower().replace("_", "-") for name in names if name.strip()]
    known = [workload.name for workload in listed]
    others = {workload.name for workload in (*WORKLOADS, *DISTRIBUTED)}
    for name in asked:
        if name not in known:
            if name in others and ranks == 1:
                raise UsageError(f"`{name}` needs several ranks", hint="`--ranks N` starts them, one per GPU")
            what = f"`{name}` measures a single process" if name in others else f"unknown workload `{name}`"
            raise UsageError(what, hint=f"use one of {', '.join(known)}")
    return tuple(workload for workload in listed if not asked or workload.name in asked or workload.name == "canary")

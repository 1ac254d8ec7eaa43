"""What a training step of several ranks sends, and how long its pipelines wait: what its time is predicted from."""

from __future__ import annotations

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMessage:
    """Messages of one size that a rank sends during a step."""

    op: str
    """One of `planner.records.communication.OPS`."""
    world: int
    """Ranks that take part."""
    stride: int = 1
    """How far apart they are: 1 neighbours."""
    bytes: float
    """As nccl-tests counts: the whole buffer of one rank."""
    count: int = 1
    """In a step; of a pipeline those of the rank that sends most."""
    phase: str
    """`forward`, `backward` or `optimizer`."""
    hidden: bool = False
    """True: may run beside computation, as the buckets of DDP and the prefetches of FSDP do."""


def pipeline_ratio(stages: int, micro_batches: int, virtual_stages: int = 1, slowest_ratio: float = 1.0) -> float:
    """Time of a pipeline's passes over the mean of its ranks' work: the slowest rank's, and the wait of its fill.

    1 + (p - 1) / m of the 1F1B schedule, 1 + (p - 1) / (v m) where it is interleaved (Narayanan et al.,
    arXiv:2104.04473, sections 2.2.1 and 2.2.2); with x of the mean on the slowest rank x + (p - x) / (v m), since each
    micro-batch waits for that rank, and the first one passes all of them.

    Args:
        stages: ranks of the pipeline.
        micro_batches: of a step.
        virtual_stages: stages that each rank holds.
        slowest_ratio: work of the rank with most over the mean.
    """
    return slowest_ratio + (stages - slowest_ratio) / (virtual_stages * micro_batches)

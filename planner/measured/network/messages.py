"""Messages and pipeline waiting time of a training step over several ranks, from which its time is predicted."""

from __future__ import annotations

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMessage:
    """Messages of one size that a rank sends during a step."""

    op: str
    """One of `planner.records.communication.OPS`."""
    world: int
    """Number of ranks that take part."""
    stride: int = 1
    """Distance between these ranks; 1 for neighbours."""
    bytes: float
    """Message size as nccl-tests counts it: the whole buffer of one rank."""
    count: int = 1
    """Number of these messages in a step; in a pipeline, on the rank that sends most."""
    phase: str
    """`forward`, `backward` or `optimizer`."""
    hidden: bool = False
    """True if the messages may overlap computation, as the buckets of DDP and the prefetches of FSDP do."""


def pipeline_ratio(stages: int, micro_batches: int, virtual_stages: int = 1, slowest_ratio: float = 1.0) -> float:
    """Time of a pipeline's passes over the mean work of its ranks, due to its slowest rank and its bubble.

    The ratio is 1 + (p - 1) / m for the 1F1B schedule and 1 + (p - 1) / (v m) if it is interleaved (Narayanan et al.,
    arXiv:2104.04473, sections 2.2.1 and 2.2.2). If the slowest rank has x times the mean work, it is
    x + (p - x) / (v m), since every micro-batch waits for that rank and the first one passes through all ranks.

    Args:
        stages: number of ranks in the pipeline, p.
        micro_batches: micro-batches of a step, m.
        virtual_stages: stages that each rank holds, v.
        slowest_ratio: work of the rank with the most work over the mean, x.
    """
    return slowest_ratio + (stages - slowest_ratio) / (virtual_stages * micro_batches)

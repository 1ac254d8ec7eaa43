"""What the ranks of a training step send each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMessage:
    """Messages of one kind in one step."""

    op: str
    """One of `planner.records.communication.OPS`."""
    world: int
    """Ranks of a group."""
    stride: int
    """How far apart its ranks are; 1 for neighbours."""
    bytes: float
    """Of one message, as nccl-tests counts it: the whole buffer of one rank."""
    count: int
    """Messages of a step."""
    phase: str
    """`forward`, `backward` or `optimizer`."""
    hidden: bool
    """Whether they may run beside computation, as the buckets of DDP and the prefetches of FSDP do."""

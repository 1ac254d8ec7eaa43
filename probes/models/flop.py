"""The arithmetic of a training step, derived from its forward pass."""

from __future__ import annotations

from planner.lazy import dataclass
from planner.performance.compute import FLASH_BACKWARD
from planner.records.work import WorkCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardFlop:
    """FLOP of one forward pass."""

    linear: float
    """Matrix products of the layers."""
    attention: float
    """Attention scores, and their product with the values; half of both under a causal mask."""
    head: float = 0.0
    """Output layer."""

    def of_training(self, *, recompute: bool, params: int | None = None) -> WorkCounts:
        """Return the FLOP of the forward and backward pass: three times the forward pass.

        The hardware does more: flash attention computes the scores once more (`FLASH_BACKWARD`), and checkpointing
        repeats the forward pass of the layers.

        Args:
            recompute: whether the layers are fully checkpointed.
            params: number of parameters, for the record.
        """
        products = 3.0 * (self.linear + self.head)
        recomputed = self.linear + self.attention if recompute else 0.0
        return WorkCounts(
            params=params,
            flop_model=products + 3.0 * self.attention,
            flop_hardware=products + (1.0 + FLASH_BACKWARD) * self.attention + recomputed,
        )

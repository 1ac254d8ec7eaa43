"""An optimizer as a row of `catalog/optimizers.csv`: state bytes per parameter and traffic of an update."""

from __future__ import annotations

from planner.evidence import Evidence
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """State and arithmetic of an optimizer, per parameter."""

    id: str
    """For example `adamw`, `adamw-8bit`, `adafactor`, `muon`."""
    name: str
    full_moments: float
    """Moments of one element per parameter stored in the policy's moment type (AdamW 2, SGD with momentum 1)."""
    fixed_state_bytes: float
    """State bytes per parameter that do not depend on the policy (8-bit Adam: 2 plus block scales). Row and column sums
    that replace a moment (Adafactor) count as 0."""
    paged: bool
    """Whether the states are in unified memory, which moves them to the host when the GPU is full."""
    extra_flop_per_param: float
    """FLOP beyond the element-wise update, per matrix parameter and step (Muon's Newton-Schulz), before the dependence
    on the matrix shape; 0 for element-wise optimizers."""
    evidence: Evidence

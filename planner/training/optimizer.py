"""Optimizers as rows: state bytes per parameter and the traffic of an update. Rows: `catalog/optimizers.csv`."""

from __future__ import annotations

from planner.evidence import Evidence
from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """What an optimizer keeps and moves per parameter."""

    id: str
    """For example `adamw`, `adamw-8bit`, `adafactor`, `muon`."""
    name: str
    full_moments: float
    """Moments of one element per parameter stored in the policy's moment type (AdamW 2, SGD with momentum 1)."""
    fixed_state_bytes: float
    """State bytes per parameter that do not depend on the policy (8-bit Adam: 2 plus block scales). Row and column sums
    in place of a moment (Adafactor) count as none."""
    paged: bool
    """True where the states lie in unified memory, which moves them to the host when the GPU is full."""
    extra_flop_per_param: float
    """Arithmetic beyond the element-wise update, per matrix parameter and step (Muon's Newton-Schulz), before the
    dependence on the matrix shape; 0 for the element-wise ones."""
    evidence: Evidence

"""Which points run sustained on a GPU, and for how long: what steps are predicted from is of one regime."""

from __future__ import annotations

SUSTAINED_KINDS = ("block", "end_to_end", "parallel_step", "verify")
"""Kinds that predictions of steps are fitted to and compared with: on a GPU all of one regime, sustained."""
SUSTAINED_SETTLE_S = 0.5
"""Before a sustained run without an energy window: some periods of the power sensor (0.1 s), after which the limiter
has found its clock. The device is hot from the rounds before; no average of the driver's has to run out."""
SUSTAINED_S = 1.0
"""Shortest sustained run: ten periods of the power sensor."""
SUSTAINED_SAMPLES = 5
"""Samples that a sustained run should hold, as many as `mpplan check` asks for."""
LONGEST_SUSTAINED_S = 3.0
"""No sustained run is longer than an energy window."""


def sustained_s(step_s: float) -> float:
    """Length of the sustained run of a step that takes so long."""
    return min(max(SUSTAINED_S, SUSTAINED_SAMPLES * step_s), LONGEST_SUSTAINED_S)

"""Points that run sustained on a GPU, and for how long: measurements behind a prediction must share one regime."""

from __future__ import annotations

SUSTAINED_KINDS = ("block", "end_to_end", "parallel_step", "verify")
"""Kinds that step predictions are fitted to and compared with; on a GPU, all of them run sustained."""
SUSTAINED_SETTLE_S = 0.5
"""Time before a sustained run without an energy window: several periods of the power sensor (0.1 s), after which the
limiter has settled the clock. The device is hot from earlier rounds, and no driver average has to run out."""
SUSTAINED_S = 1.0
"""Shortest sustained run, in seconds: ten periods of the power sensor."""
SUSTAINED_SAMPLES = 5
"""Samples that a sustained run should hold: as many as `mpplan check` requires."""
LONGEST_SUSTAINED_S = 3.0
"""No sustained run is longer than an energy window."""


def sustained_s(step_s: float) -> float:
    """Return the length of the sustained run of a step with this time."""
    return min(max(SUSTAINED_S, SUSTAINED_SAMPLES * step_s), LONGEST_SUSTAINED_S)

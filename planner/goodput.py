"""Goodput: the share of wall time that moves training forward, from failures, restarts, checkpoints and evaluation."""

from __future__ import annotations

import numpy as np

from planner.rates import Rates, Value
from planner.units import HOUR_S


def goodput_ratio(gpus: Value, rates: Rates) -> Value:
    """Useful over wall time, in (0, 1].

    Checkpoints are written at the interval that loses least (Young 1974: sqrt(2 x stall x time between failures)); each
    failure costs the restart and half an interval of repeated steps. What published runs stood still beyond that
    (changes of the run, people, queues) comes on top: it never makes a run shorter.
    """
    failures_per_s = np.maximum(gpus * rates.mtbf_failures_per_gpu_h / HOUR_S, 1e-12)
    interval_s = np.sqrt(2.0 * rates.checkpoint_s / failures_per_s)
    lost = rates.checkpoint_s / interval_s + failures_per_s * (rates.restart_s + 0.5 * interval_s)
    result: Value = 1.0 / ((1.0 + lost) * (1.0 + rates.evaluation_share) * np.maximum(rates.stops, 1.0))
    return result

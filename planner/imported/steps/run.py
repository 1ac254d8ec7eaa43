"""The steps of any other log that `mpplan compare` reads (`planner.runlog`), so that both read the same logs."""

from __future__ import annotations

import io

import numpy as np

from planner.errors import InputFileError
from planner.imported.source import SourceFile
from planner.imported.steps.log import WITH_DATA, StepLog
from planner.runlog.assemble import restarts
from planner.runlog.moments import Clock
from planner.runlog.read import read_log

DOUBTS = {
    "clock": "step times are taken from the times of the lines of their log",
    "bar": "step times are taken from a progress bar, which shows whole seconds",
    "timers": "the log numbers no steps: each line with the time of a step counts as one",
}
"""Doubts by the source of the durations (`RunLog.durations_from`)."""


def is_run(head: str) -> bool:
    """Whether the beginning of a file holds steps of a framework whose logs are read."""
    try:
        read_log(io.BytesIO(head.encode()), "")
    except InputFileError:
        return False
    return True


def read_run(source: SourceFile) -> StepLog:
    """Read the steps of a log.

    Raises:
        InputFileError: it is no log of one run, its steps have neither durations nor times, or the program was started
            again, so that the time between two steps of the log is not all training.
    """
    log = read_log(io.BytesIO(source.content), source.name)
    steps = log.steps
    timed = ~np.isnan(steps.duration_s)
    if not np.any(timed):
        raise source.fail(int(steps.line[0]), "expected the duration of each step, or the times of two or more")
    for index in restarts(steps)[:1]:
        raise source.fail(
            int(steps.line[index]),
            "expected steps of one start of the program, found another start",
            "pass the part of the log that was measured",
        )
    batches = np.unique(steps.sequences)
    doubts = [WITH_DATA]
    if log.durations_from in DOUBTS:
        doubts.append(DOUBTS[log.durations_from])
    if log.damaged_count:
        doubts.append(f"damaged lines of the log of steps are left out: {log.damaged_count:,}")
    return StepLog(
        program=log.framework,
        durations_s=steps.duration_s[timed],
        ends=None if np.any(np.isnan(steps.end_s)) else Clock(seconds=steps.end_s, zoned=log.zoned),
        sequences_per_step=float(batches[0]) if len(batches) == 1 and not np.isnan(batches[0]) else None,
        doubts=tuple(doubts),
    )

"""The steps that torchtitan logs; it prints no time of a step, so that the times of day of two lines give it.

`[rank0]:[titan] 2025-06-16 22:31:04,970 - root - INFO - step: 210  loss:  6.0388  memory: 49.66GiB(52.28%)  tps: 5,593
tflops: 323.92  mfu: 32.75%`.
"""

from __future__ import annotations

import re

from planner.imported.moments import parse_moment
from planner.imported.source import SourceFile
from planner.imported.steps.log import LoggedStep, StepFormat, StepLog, step_log

_LINE = re.compile(
    r"\[titan\] (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) - \S+ - INFO - (?:\x1b\[\d+m)*step:\s*(\d{1,15})\s"
)
BY_CLOCK = "torchtitan logs no time of a step: taken from the times of day of its lines"


def _read(source: SourceFile) -> StepLog:
    logged = [
        LoggedStep(line=number, number=int(step[2]), end=parse_moment(step[1]))
        for number, text in source.lines()
        if (step := _LINE.search(text)) is not None
    ]
    return step_log(source, "torchtitan", logged, (BY_CLOCK,))


TORCHTITAN = StepFormat(name="torchtitan", recognises=lambda head: _LINE.search(head) is not None, read=_read)

"""The iterations that Megatron-LM and its forks log (`training_log` in megatron/training/training.py).

One line per log interval: `[2025-08-01 07:19:37] iteration 10/ 5000 | consumed samples: 1280 | elapsed time per
iteration (ms): 1913.8 | ... | global batch size: 128 | ...`; the time of day is there since 2024.
"""

from __future__ import annotations

import re

from planner.imported.moments import parse_moment
from planner.imported.source import SourceFile
from planner.imported.steps.log import LoggedStep, StepFormat, StepLog, step_log
from planner.units import MILLI

_MARK = "elapsed time per iteration (ms):"
_LINE = re.compile(r"iteration\s+(\d{1,15})/\s*\d+ \|.{0,400}?elapsed time per iteration \(ms\):\s*([^\s|]+)")
_MOMENT = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)\]")
_BATCH = re.compile(r"global batch size:\s*([^\s|]+)")


def _read(source: SourceFile) -> StepLog:
    logged = []
    for number, text in source.lines():
        step = _LINE.search(text)
        if step is None:
            continue
        moment, batch = _MOMENT.search(text[: step.start()]), _BATCH.search(text)
        logged.append(
            LoggedStep(
                line=number,
                number=int(step[1]),
                duration_s=source.number(number, "elapsed time per iteration (ms)", step[2], above_zero=True) * MILLI,
                end=None if moment is None else parse_moment(moment[1]),
                sequences=None if batch is None else source.number(number, "global batch size", batch[1]),
            )
        )
    return step_log(source, "Megatron-LM", logged, ("Megatron-LM prints the mean of its log interval",))


MEGATRON = StepFormat(
    name="Megatron-LM", recognises=lambda head: _MARK in head and _LINE.search(head) is not None, read=_read
)

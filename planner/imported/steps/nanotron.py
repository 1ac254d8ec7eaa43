"""The iterations that nanotron logs, figures shortened to three digits and a suffix (`human_format`).

`08/31/2024 14:37:31 [INFO|DP=0|PP=0|TP=0]: iteration: 1 / 15 | consumed_tokens: 512 | elapsed_time_per_iteration_ms:
4.71K | tokens_per_sec: 109 | tokens_per_sec_per_gpu: 109 | global_batch_size: 2 | lm_loss: 5.32 | ...`.
"""

from __future__ import annotations

import re

from planner.imported.moments import parse_moment
from planner.imported.source import SourceFile
from planner.imported.steps.log import LoggedStep, StepFormat, StepLog, step_log
from planner.units import GIGA, MEGA, MILLI, TERA

_LINE = re.compile(r"iteration:\s*(\d{1,15}) / \d+ \|.{0,200}?elapsed_time_per_iteration_ms:\s*([^\s|]+)")
_MOMENT = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) \[INFO")
_BATCH = re.compile(r"global_batch_size:\s*([^\s|]+)")
_SUFFIXES = {"K": 1 / MILLI, "M": MEGA, "B": GIGA, "T": TERA}
ROUNDED = "nanotron prints three digits of a step's time: half a percent"


def _amount(source: SourceFile, line: int, key: str, text: str) -> float:
    suffix = _SUFFIXES.get(text[-1], 1.0)
    return source.number(line, key, text.rstrip("KMBT"), above_zero=True) * suffix


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
                duration_s=_amount(source, number, "elapsed_time_per_iteration_ms", step[2]) * MILLI,
                end=None if moment is None else parse_moment(moment[1]),
                sequences=None if batch is None else _amount(source, number, "global_batch_size", batch[1]),
            )
        )
    return step_log(source, "nanotron", logged, (ROUNDED,))


NANOTRON = StepFormat(name="nanotron", recognises=lambda head: _LINE.search(head) is not None, read=_read)

"""The iterations that nanotron logs, figures shortened to three digits and a suffix (`human_format`).

`08/31/2024 14:37:31 [INFO|DP=0|PP=0|TP=0]: iteration: 1 / 15 | consumed_tokens: 512 | elapsed_time_per_iteration_ms:
4.71K | tokens_per_sec: 109 | tokens_per_sec_per_gpu: 109 | global_batch_size: 2 | lm_loss: 5.32 | ...`.
"""

from __future__ import annotations

import re

from planner.imported.source import SourceFile
from planner.imported.steps.log import IterationFormat, StepFormat, StepLog, step_log
from planner.units import GIGA, MEGA, MILLI, TERA

_SUFFIXES = {"K": 1 / MILLI, "M": MEGA, "B": GIGA, "T": TERA}
ROUNDED = "nanotron prints three digits of a step's time: half a percent"


def _amount(source: SourceFile, line: int, key: str, text: str) -> float:
    suffix = _SUFFIXES.get(text[-1], 1.0)
    return source.number(line, key, text.rstrip("KMBT"), above_zero=True) * suffix


_ITERATION = IterationFormat(
    line=re.compile(r"iteration:\s*(\d{1,15}) / \d+ \|.{0,200}?elapsed_time_per_iteration_ms:\s*([^\s|]+)"),
    moment=re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) \[INFO"),
    batch=re.compile(r"global_batch_size:\s*([^\s|]+)"),
    duration_key="elapsed_time_per_iteration_ms",
    batch_key="global_batch_size",
    amount=_amount,
)


def _read(source: SourceFile) -> StepLog:
    return step_log(source, "nanotron", _ITERATION.steps(source), (ROUNDED,))


NANOTRON = StepFormat(name="nanotron", recognises=lambda head: _ITERATION.line.search(head) is not None, read=_read)

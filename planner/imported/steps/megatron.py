"""The iterations that Megatron-LM and its forks log (`training_log` in megatron/training/training.py).

One line per log interval: `[2025-08-01 07:19:37] iteration 10/ 5000 | consumed samples: 1280 | elapsed time per
iteration (ms): 1913.8 | ... | global batch size: 128 | ...`; the time of day is there since 2024.
"""

from __future__ import annotations

import re

from planner.imported.source import SourceFile
from planner.imported.steps.log import IterationFormat, StepFormat, StepLog, step_log

_MARK = "elapsed time per iteration (ms):"


def _amount(source: SourceFile, line: int, key: str, text: str) -> float:
    return source.number(line, key, text, above_zero=True)


_ITERATION = IterationFormat(
    line=re.compile(r"iteration\s+(\d{1,15})/\s*\d+ \|.{0,400}?elapsed time per iteration \(ms\):\s*([^\s|]+)"),
    moment=re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)\]"),
    batch=re.compile(r"global batch size:\s*([^\s|]+)"),
    duration_key="elapsed time per iteration (ms)",
    batch_key="global batch size",
    amount=_amount,
)


def _read(source: SourceFile) -> StepLog:
    return step_log(
        source, "Megatron-LM", _ITERATION.steps(source), ("Megatron-LM prints the mean of its log interval",)
    )


MEGATRON = StepFormat(
    name="Megatron-LM", recognises=lambda head: _MARK in head and _ITERATION.line.search(head) is not None, read=_read
)

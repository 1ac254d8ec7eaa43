"""The iterations that Megatron-LM and its forks log (`planner.runlog.formats.megatron`)."""

from __future__ import annotations

from planner.imported.source import SourceFile
from planner.imported.steps.log import StepFormat, StepLog, has_steps, logged_steps, step_log
from planner.runlog.formats.megatron import MEGATRON as LINES


def _read(source: SourceFile) -> StepLog:
    return step_log(
        source, LINES.name, logged_steps(source, LINES), ("Megatron-LM prints the mean of its log interval",)
    )


MEGATRON = StepFormat(name=LINES.name, recognises=lambda head: has_steps(head, LINES), read=_read)

"""The steps that torchtitan logs (`planner.runlog.formats.torchtitan`), with durations from the times of its lines."""

from __future__ import annotations

from planner.imported.source import SourceFile
from planner.imported.steps.log import StepFormat, StepLog, has_steps, logged_steps, step_log
from planner.runlog.formats.torchtitan import TORCHTITAN as LINES

BY_CLOCK = "torchtitan logs no step times: they are taken from the times of day of its lines"


def _read(source: SourceFile) -> StepLog:
    return step_log(source, LINES.name, logged_steps(source, LINES), (BY_CLOCK,))


TORCHTITAN = StepFormat(name=LINES.name, recognises=lambda head: has_steps(head, LINES), read=_read)

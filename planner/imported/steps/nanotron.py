"""The iterations that nanotron logs (`planner.runlog.formats.nanotron`)."""

from __future__ import annotations

from planner.imported.source import SourceFile
from planner.imported.steps.log import StepFormat, StepLog, has_steps, logged_steps, step_log
from planner.runlog.formats.nanotron import NANOTRON as LINES

ROUNDED = "nanotron prints three digits of a step's time: half a percent"


def _read(source: SourceFile) -> StepLog:
    return step_log(source, LINES.name, logged_steps(source, LINES), (ROUNDED,))


NANOTRON = StepFormat(name=LINES.name, recognises=lambda head: has_steps(head, LINES), read=_read)

"""Steps in the user's own table, CSV or JSON Lines (`planner.runlog.formats.table`)."""

from __future__ import annotations

from planner.imported.source import SourceFile
from planner.imported.steps.log import LoggedStep, StepFormat, StepLog, step_log
from planner.runlog.events import DamagedError
from planner.runlog.formats.table import is_table, row_steps


def _recognises(head: str) -> bool:
    return is_table(head.lstrip().partition("\n")[0].strip())


def _read(source: SourceFile) -> StepLog:
    first, logged = "", []
    for number, text in source.lines():
        if not first:
            first = text
            if not first.startswith("{"):
                continue
        try:
            steps = list(row_steps(first, text))
        except DamagedError as error:
            raise source.fail(number, error.words) from None
        logged += [
            LoggedStep(
                line=number, number=step.number, duration_s=step.duration_s, end=step.end, sequences=step.sequences
            )
            for step in steps
        ]
    return step_log(source, "", logged, ())


TABLE = StepFormat(name="a table (CSV or JSON Lines)", recognises=_recognises, read=_read)

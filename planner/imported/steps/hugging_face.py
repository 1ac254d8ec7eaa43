"""The closing summary of a run of Hugging Face's Trainer (`planner.runlog.formats.hugging_face`).

The Trainer logs no times of single steps, so only the mean over the whole run is available. A log without a summary is
read as `mpplan compare` reads it, by its progress bar.
"""

from __future__ import annotations

from planner.imported.source import SourceFile
from planner.imported.steps.log import LoggedStep, StepFormat, StepLog, has_steps, step_log
from planner.imported.steps.run import read_run
from planner.runlog.events import DamagedError, Total
from planner.runlog.formats.hugging_face import HUGGING_FACE as LINES
from planner.runlog.formats.hugging_face import RATE

HALF_A_DIGIT, SMALL_RATIO = 0.0005, 0.005
"""Rounding error of the printed steps per second, and the share of a step below which it is not mentioned."""
WHOLE_RUN = "one mean over the whole run, including start-up, evaluation and checkpoints"


def _read(source: SourceFile) -> StepLog:
    logged = []
    for number, text in source.lines():
        try:
            closing = list(LINES.read(text)) if RATE in text else []
        except DamagedError as error:
            raise source.fail(number, error.words) from None
        logged += [
            LoggedStep(line=number, duration_s=event.runtime_s / event.steps)
            for event in closing
            if isinstance(event, Total)
        ]
    if not logged:
        return read_run(source)
    rounding = max((HALF_A_DIGIT * (step.duration_s or 0.0) for step in logged), default=0.0)
    rounded = (f"the rate is printed to three decimals: {rounding:.1%} of a step",)
    return step_log(source, LINES.name, logged, (WHOLE_RUN, *(rounded if rounding > SMALL_RATIO else ())))


HUGGING_FACE = StepFormat(
    name="Hugging Face Trainer", recognises=lambda head: RATE in head or has_steps(head, LINES), read=_read
)

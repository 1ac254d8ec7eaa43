"""The end of a run of Hugging Face's Trainer (`speed_metrics` in transformers/trainer_utils.py).

`{'train_runtime': 123.4567, 'train_samples_per_second': 64.8, 'train_steps_per_second': 8.1, ...}`, with numbers or
texts as values. It logs no step on its own, so that the mean over the whole run is all there is.
"""

from __future__ import annotations

import re

from planner.imported.source import SourceFile
from planner.imported.steps.log import LoggedStep, StepFormat, StepLog, step_log

_RATE = re.compile(r"""['"]train_steps_per_second['"]:\s*['"]?([^\s'",}]+)""")
HALF_A_DIGIT, SMALL_RATIO = 0.0005, 0.005
"""Of the steps per second that are printed; a smaller part of them is not worth a word."""
WHOLE_RUN = "one mean over the whole run, with its start, evaluation and checkpoints"


def _read(source: SourceFile) -> StepLog:
    rates = [
        (number, source.number(number, "train_steps_per_second", rate[1], above_zero=True))
        for number, text in source.lines()
        if (rate := _RATE.search(text)) is not None
    ]
    logged = [LoggedStep(line=number, duration_s=1.0 / rate) for number, rate in rates]
    rounding = max((HALF_A_DIGIT / rate for _, rate in rates), default=0.0)
    rounded = (f"the rate is printed to three decimals: {rounding:.1%} of a step",)
    return step_log(source, "Hugging Face", logged, (WHOLE_RUN, *(rounded if rounding > SMALL_RATIO else ())))


def _recognises(head: str) -> bool:
    """The line is the last of a log, which may be long: a line of the Trainer's is enough."""
    return _RATE.search(head) is not None or re.search(r"\{'loss': .{1,200}'epoch': ", head) is not None


HUGGING_FACE = StepFormat(name="Hugging Face Trainer", recognises=_recognises, read=_read)

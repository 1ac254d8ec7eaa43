"""Log lines of NeMo 2 for each step (`ProgressPrinter`, NVIDIA/NeMo 8cfedd72).

A line looks like `Training epoch 0, iteration 10/19 | lr: 1.649e-06 | global_batch_size: 512 | global_step: 10 |
reduced_train_loss: 11.03 | train_step_timing in s: 7.568 | consumed_samples: 5632`
(nemo/lightning/pytorch/callbacks/progress_printer.py), with `TFLOPS_per_GPU` if the callback of flops_callback.py is
on. Iterations are counted from 0, and `/19` is the last one. Lines of its logger begin with
`[NeMo I 2025-03-07 22:35:22 model_checkpoint:497]`. NeMo 1 showed a progress bar of Lightning, with the same names
behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.events import DamagedError, Event, Mark, Step
from planner.runlog.formats.base import LogFormat, amount, optional, piped, rates_of

_STEP = re.compile(r"Training epoch (\d{1,9}), iteration (\d{1,15})/(\d{1,15}) \|(.*)")
TIMING = "train_step_timing in s"
MARKED = (
    ("Scheduled async checkpoint save for", "checkpoint"),
    ("Checkpoint save for step", "checkpoint"),
    ("Restored all states from the checkpoint", "load"),
    ("Setting up optimizer with config", "start"),
    ("`Trainer.fit` stopped:", "end"),
    ("Validation: iteration", "evaluation"),
)
"""Text in a line, with the kind of mark that it gives."""


def _read(text: str) -> Iterator[Event]:
    step = _STEP.search(text)
    if step is None:
        for words, kind in MARKED:
            if words in text:
                yield Mark(kind=kind)
                return
        return
    pairs = piped(step[4])
    of = int(step[3]) + 1
    counted = _steps(pairs["global_step"]) if pairs.get("global_step", "").isdecimal() else int(step[2])
    timing = pairs.get(TIMING)
    yield Step(
        number=counted + 1,
        of=of if int(step[1]) == 0 and counted < of else None,
        duration_s=None if timing is None else amount(TIMING, timing),
        sequences=optional(pairs.get("global_batch_size")),
        **rates_of(pairs),
    )


def _steps(digits: str) -> int:
    """Read the number of steps so far.

    Raises:
        DamagedError: the number is larger than any run has.
    """
    if len(digits) > MOST_DIGITS:
        raise DamagedError("global_step", digits, "the number of a step")
    return int(digits)


MOST_DIGITS = 15
"""Most digits in the number of a step, as for an iteration."""

NEMO = LogFormat(name="NeMo", marks=("Training epoch ", *(words for words, _ in MARKED)), read=_read)

"""Log lines and progress bars of torchtune's recipes (pytorch/torchtune bd2a0fc7).

`log_<seconds>.txt` and the console hold `Step 10 | loss:1.62 lr:2e-05 tokens_per_second_per_gpu:1874.2
peak_memory_active:18.1 peak_memory_alloc:18.1 peak_memory_reserved:19.4 grad_norm:0.61` (`DiskLogger.log_dict` and
`StdoutLogger.log_dict` of torchtune/training/metric_logging.py; memory in GiB), without a time. The time of a step
follows from the console's progress bar, `1|10|Loss: 1.62:  10%|█         | 10/100 [00:21<03:09,  2.11s/it]`, with the
epoch, the step of the run, and the steps and seconds of the epoch (`train` of recipes/full_finetune_distributed.py).

`tokens_per_second_per_gpu` is not read: it counts only tokens with a loss, so neither masked prompts nor padding, and
until October 2024 (2fa6a54a2) only those of the first rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.events import Event, Fact, Mark, Progress, Step
from planner.runlog.formats.base import LogFormat, optional
from planner.units import HOUR_S, MINUTE_S

_STEP = re.compile(r"(?:^|[\]\s])Step (\d{1,15}) \| (?:.{0,400} )?loss:\S")
_EVALUATION = re.compile(r"(?:^|[\]\s])Step \d{1,15} \| val_loss:")
_MEMORY = re.compile(r"\bpeak_memory_alloc:([0-9.]{1,20})")
_SAVED = re.compile(r"Saving (?:asynchronous )?checkpoint took ([0-9.]{1,20}) secs")
_BAR = re.compile(
    r"^\s*(\d{1,6})\|(\d{1,15})(\|Loss: .{1,80}?)?: {1,4}\d{1,3}%\|[^|]{0,400}\|\s*(\d{1,15})/(\d{1,15}) "
    r"\[(?:(\d{1,5}):)?(\d{1,2}):(\d\d)<"
)


def _read(text: str) -> Iterator[Event]:
    bar, step, saved = _BAR.match(text), _STEP.search(text), _SAVED.search(text)
    if bar is not None:
        begun = bar[3] is None  # before its first step, a bar shows the epochs that are done
        yield Progress(
            number=int(bar[4]),
            of=int(bar[5]),
            elapsed_s=int(bar[6] or 0) * HOUR_S + int(bar[7]) * MINUTE_S + int(bar[8]),
            rates=Step(),
            epoch=int(bar[1]) - (0 if begun else 1),
            overall=int(bar[2]),
        )
    if _EVALUATION.search(text):
        yield Mark(kind="evaluation")
    elif step is not None:
        memory = _MEMORY.search(text)
        yield Step(number=int(step[1]), memory_gib=None if memory is None else optional(memory[1]))
        if memory is not None:
            yield Fact(key="mem_kind", value="allocated")
    elif saved is not None:
        yield Mark(kind="checkpoint", duration_s=optional(saved[1]))


TORCHTUNE = LogFormat(name="torchtune", marks=(" | loss:", " | val_loss:", "%|", "checkpoint took "), read=_read)

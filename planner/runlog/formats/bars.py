"""Progress bars of tqdm: Hugging Face's Trainer, Lightning, NeMo 1, and the user's own loops.

A bar looks like `  8%|▊         | 5/60 [00:12<02:10, 2.41it/s]` (`tqdm.format_meter`, tqdm 4.67), or with a label like
`Epoch 1:  99%|█████████▉| 149/150 [00:04<00:00, 37.24it/s, v_num=1, train_loss=0.00306]` (`TQDMProgressBar` of
src/lightning/pytorch/callbacks/progress/tqdm_progress.py, Lightning-AI/pytorch-lightning). The elapsed time is in whole
seconds, so only states of a bar that are far apart give the time of a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.events import Event, Progress, Step
from planner.runlog.formats.base import LogFormat, optional, rates_of
from planner.units import HOUR_S, MINUTE_S

_BAR = re.compile(
    r"^\s*(?:Epoch (\d{1,9})(?:/[^ ]{1,12})?: *:?)?\s*\d{1,3}%\|[^|]{0,400}\|\s*(\d{1,15})/(\d{1,15}) "
    r"\[(?:(\d{1,5}):)?(\d{1,2}):(\d\d)<[^,\]]{1,20}(?:, ([^\]]{0,600}))?"
)
_PAIR = re.compile(r"([A-Za-z_][\w /().-]{0,60})=([^,]{1,40})")


def _read(text: str) -> Iterator[Event]:
    bar = _BAR.match(text)
    if bar is None:
        return
    pairs = dict(_PAIR.findall(bar[7] or ""))
    rates = Step(
        duration_s=optional(pairs.get("train_step_timing in s")),
        sequences=optional(pairs.get("global_batch_size")),
        **rates_of(pairs),
    )
    yield Progress(
        number=int(bar[2]),
        of=int(bar[3]),
        elapsed_s=int(bar[4] or 0) * HOUR_S + int(bar[5]) * MINUTE_S + int(bar[6]),
        rates=rates,
        epoch=None if bar[1] is None else int(bar[1]),
    )


BARS = LogFormat(name="Lightning", marks=("%|",), read=_read, joins=True)
"""Bars with an epoch are Lightning's; bars without a label belong to the framework of the log in which they appear."""

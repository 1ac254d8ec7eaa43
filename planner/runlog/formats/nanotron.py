"""Log lines of nanotron, with figures shortened to three digits and a suffix (`human_format`).

A line looks like `08/31/2024 14:37:31 [INFO|DP=0|PP=0|TP=0]: iteration: 1 / 15 | consumed_tokens: 512 |
elapsed_time_per_iteration_ms: 4.71K | tokens_per_sec: 109 | tokens_per_sec_per_gpu: 109 | global_batch_size: 2 |
lm_loss: 5.32 | ... | model_tflops_per_gpu: 35.7 | hardware_tflops_per_gpu: 35.7 | ...` (src/nanotron/trainer.py of
huggingface/nanotron).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.amounts import as_number
from planner.runlog.events import Event, Step
from planner.runlog.formats.base import SUFFIXES, LogFormat, human_amount, piped, rates_of
from planner.runlog.moments import parse_moment
from planner.units import MILLI

_ITERATION = re.compile(
    r"iteration:\s*(\d{1,15}) / (\d{1,15}) \|(.{0,200}?elapsed_time_per_iteration_ms:\s*([^\s|]+).*)"
)
_MOMENT = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) \[INFO")
_BATCH = re.compile(r"global_batch_size:\s*([^\s|]+)")


def _plain(value: str) -> str:
    """Write out a shortened figure; leave anything else unchanged."""
    value = value.strip()
    figure = as_number(value[:-1])
    return value if figure is None or value[-1:] not in SUFFIXES else f"{figure * SUFFIXES[value[-1]]:.10g}"


def _read(text: str) -> Iterator[Event]:
    iteration = _ITERATION.search(text)
    if iteration is None:
        return
    moment, batch = _MOMENT.search(text[: iteration.start()]), _BATCH.search(text)
    key = "elapsed_time_per_iteration_ms"
    yield Step(
        number=int(iteration[1]),
        of=int(iteration[2]),
        duration_s=human_amount(key, iteration[4]) * MILLI,
        end=None if moment is None else parse_moment(moment[1]),
        sequences=None if batch is None else human_amount("global_batch_size", batch[1]),
        **rates_of({name: _plain(value) for name, value in piped(iteration[3]).items()}),
    )


NANOTRON = LogFormat(name="nanotron", marks=("elapsed_time_per_iteration_ms",), read=_read)

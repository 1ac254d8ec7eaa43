"""Log lines of nanotron, with figures shortened to three digits and a suffix (`human_format`).

A line looks like `08/31/2024 14:37:31 [INFO|DP=0|PP=0|TP=0]: iteration: 1 / 15 | consumed_tokens: 512 |
elapsed_time_per_iteration_ms: 4.71K | tokens_per_sec: 109 | tokens_per_sec_per_gpu: 109 | global_batch_size: 2 |
lm_loss: 5.32 | ... | model_tflops_per_gpu: 35.7 | hardware_tflops_per_gpu: 35.7 | ...` (src/nanotron/trainer.py of
huggingface/nanotron). Since March 2025 (2b141c2f), the time is called `time_per_iteration_ms` and `global_batch_size`
is in tokens; since April 2025 (707787f8), the time of day has no year. Each start prints `mbs: 2 | grad_accum: 4 | cp:
1 | sequence_length: 4096 | global_batch_size: 512 | train_steps: 1000 | start_iteration_step: 0 | ...`, with the batch
in sequences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.amounts import as_number
from planner.runlog.events import Event, Fact, Mark, Step
from planner.runlog.formats.base import SUFFIXES, LogFormat, human_amount, optional, piped, rates_of
from planner.runlog.moments import parse_moment
from planner.units import MILLI

_ITERATION = re.compile(
    r"iteration:\s*(\d{1,15}) / (\d{1,15}) \|(.{0,200}?\b((?:elapsed_)?time_per_iteration_ms):\s*([^\s|]+).*)"
)
_START = re.compile(r"\bmbs: \d{1,9} \| grad_accum: .{1,300}? \| start_iteration_step: (\d{1,15})")
IN_SEQUENCES = "elapsed_time_per_iteration_ms"
"""Name of the time in lines whose `global_batch_size` is in sequences."""
STATED = {
    "mbs": "micro_batch", "grad_accum": "grad_accum", "cp": "cp", "sequence_length": "seq_len",
    "global_batch_size": "global_batch_seqs", "train_steps": "steps",
}  # fmt: skip
"""Names in the line of a start, with the fact that each gives."""
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
        yield from _start(text)
        return
    moment = _MOMENT.search(text[: iteration.start()])
    batch = _BATCH.search(text) if iteration[4] == IN_SEQUENCES else None
    yield Step(
        number=int(iteration[1]),
        of=int(iteration[2]),
        duration_s=human_amount(iteration[4], iteration[5]) * MILLI,
        end=None if moment is None else parse_moment(moment[1]),
        sequences=None if batch is None else human_amount("global_batch_size", batch[1]),
        **rates_of({name: _plain(value) for name, value in piped(iteration[3]).items()}),
    )


def _start(text: str) -> Iterator[Event]:
    start = _START.search(text)
    if start is None:
        return
    yield Mark(kind="start", after_step=int(start[1]))
    pairs = piped(start[0])
    for name, key in STATED.items():
        if number := optional(pairs.get(name)):
            yield Fact(key=key, value=number)


NANOTRON = LogFormat(name="nanotron", marks=("time_per_iteration_ms", "start_iteration_step"), read=_read)

"""Log lines of Megatron-LM and its forks (`training_log` and `Timers` of NVIDIA/Megatron-LM).

There is one line per log interval (`megatron/training/training.py`):
`[2025-08-01 07:19:37] iteration 10/ 5000 | consumed samples: 1280 | elapsed time per iteration (ms): 1913.8 |
throughput per GPU (TFLOP/s/GPU): 401.2 | ... | global batch size: 128 | ...`. It has the time of day since March 2024
(38644dd756), with a fraction of a second since January 2026 (6cf285b238), and the throughput, with `--log-throughput`,
since November 2023 (2748e7c7d4). The timer of the interval stops during evaluation and checkpoints (`interval-time`).
DeepSpeed's fork adds `tokens per gpu per second (tgs)` and `TFLOPs` (megatron/training.py of
deepspeedai/Megatron-DeepSpeed 207b2d5a). BigScience's fork writes seconds, `elapsed time per iteration (s)`, in the
logs that bigscience-workshop/bigscience quotes. Timers (`megatron/core/timers.py`) print `(min, max) time across ranks
(ms):` or `max time across ranks (ms):`, then one line for each timer, per iteration. All as of d98e8a64 (August 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.events import Event, Fact, Mark, Part, Step
from planner.runlog.formats.base import LogFormat, amount, piped, rates_of
from planner.runlog.moments import parse_moment
from planner.units import GIB, MIB, MILLI

_ITERATION = re.compile(
    r"iteration\s+(\d{1,15})/\s*(\d{1,15}) \|(.{0,400}?elapsed time per iteration \((m?s)\):\s*([^\s|]+).*)"
)
_MOMENT = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)\]")
_BATCH = re.compile(r"global batch size:\s*([^\s|]+)")
_TIMER = re.compile(r"^ {0,8}([a-z0-9-]{3,60}) \.{2,}: \(?([0-9.]{1,20})(?:, ([0-9.]{1,20})\))?")
_WORLD = re.compile(r"using world size: (\d{1,7}), data-parallel size: \d{1,7}")
_MEMORY = re.compile(r"memory \(MB\) \|.{0,200}max allocated: ([0-9.]{1,20})")
LOADED, _AT = "successfully loaded checkpoint", re.compile(r" at iteration (\d{1,15})\s*$")
"""Beginning and end of the line after a checkpoint was loaded, with its iteration."""
MARKED = (
    ("successfully saved checkpoint", "checkpoint"),
    ("saving checkpoint at iteration", "checkpoint"),
    ("validation loss at", "evaluation"),
    (" loss at iteration ", "evaluation"),  # `validation-0 loss at` where there are several validation sets
    ("[before the start of training step]", "start"),
    ("[after training is done]", "end"),
)
"""Text in a line, with the kind of mark that it gives."""

TIMERS = {
    "batch-generator": "data", "forward-compute": "forward", "backward-compute": "backward",
    "forward-recv": "communication", "forward-send": "communication", "backward-recv": "communication",
    "backward-send": "communication", "forward-send-forward-recv": "communication",
    "forward-send-backward-recv": "communication", "backward-send-forward-recv": "communication",
    "backward-send-backward-recv": "communication", "forward-backward-send-forward-backward-recv": "communication",
    "all-grads-sync": "communication", "params-all-gather": "communication",
    "embedding-grads-all-reduce": "communication", "layernorm-grads-all-reduce": "communication",
    "optimizer": "optimizer",
}  # fmt: skip
"""Timers with their parts. They do not overlap, except for the timers in `INSIDE`."""


def _read(text: str) -> Iterator[Event]:
    iteration = _ITERATION.search(text)
    if iteration is not None:
        yield _step(text, iteration)
        return
    timer = _TIMER.match(text)
    if timer is not None and timer[1] in TIMERS:
        times = [amount(timer[1], figure) * MILLI for figure in timer.groups()[1:] if figure and float(figure)]
        if times:
            yield Part(
                name=TIMERS[timer[1]], timer=timer[1], inside=INSIDE.get(timer[1], ""), least_s=min(times),
                most_s=max(times),
            )  # fmt: skip
        return
    for words, kind in MARKED:
        if words in text:
            yield Mark(kind=kind)
    if LOADED in text:
        at = _AT.search(text)
        yield Mark(kind="load", after_step=None if at is None else int(at[1]))
    world = _WORLD.search(text)
    if world is not None:
        yield Fact(key="n_gpus", value=float(world[1]))
    memory = _MEMORY.search(text)
    if memory is not None:
        yield Fact(key="peak_mem_gib", value=amount("max allocated", memory[1]) * MIB / GIB)
        yield Fact(key="mem_kind", value="allocated")


def _step(text: str, iteration: re.Match[str]) -> Step:
    moment, batch = _MOMENT.search(text[: iteration.start()]), _BATCH.search(text)
    unit = MILLI if iteration[4] == "ms" else 1.0
    return Step(
        number=int(iteration[1]),
        of=int(iteration[2]),
        duration_s=amount(f"elapsed time per iteration ({iteration[4]})", iteration[5]) * unit,
        end=None if moment is None else parse_moment(moment[1]),
        sequences=None if batch is None else amount("global batch size", batch[1]),
        **rates_of(piped(iteration[3])),
    )


INSIDE = {"batch-generator": "forward-compute"}
"""Timers that run inside another timer of `TIMERS`, with that outer timer."""

MEGATRON = LogFormat(
    name="Megatron-LM",
    marks=(
        "elapsed time per iteration (",
        "....: ",
        "memory (MB)",
        "using world size",
        LOADED,
        *(words for words, _ in MARKED),
    ),
    read=_read,
)

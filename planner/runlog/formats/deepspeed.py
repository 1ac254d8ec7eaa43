"""Log lines of DeepSpeed (deepspeedai/DeepSpeed edaa7221, version 0.19).

With `wall_clock_breakdown`, it logs a line of timers for each micro-step and one for the whole step: `[Rank 0] time
(ms) | fwd: 4.84 | bwd: 3.68 | bwd_inner: 2.79 | bwd_allreduce: 0.87 | step: 1.34` (`SynchronizedWallClockTimer.log` of
deepspeed/utils/timer.py; until July 2023, b354c28b, `forward`, `backward`, `backward_allreduce`). Every
`steps_per_print` steps, it logs `[2026-11-22 10:00:00,123] [INFO] [logging.py:107:log_dist] [Rank 0] step=10,
skipped=0, lr=[0.001], mom=[...]` (`_report_progress` of runtime/engine.py) and
`epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=..., CurrSamplesPerSec=16.1, MemAllocated=0.1GB,
MaxMemAllocated=0.2GB` (`ThroughputTimer`). Both have been hidden since the logger's level became `warning`. The
pipeline engine prints `steps: 10 loss: 2.3 iter time (s): 0.512 samples/sec: 31.2` (runtime/pipe/engine.py). The lines
also appear in logs of other frameworks, which run on DeepSpeed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.events import Event, Fact, Mark, Part, Step
from planner.runlog.formats.base import LogFormat, amount, optional
from planner.runlog.moments import parse_moment
from planner.units import MILLI

_MOMENT = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")
_STEP = re.compile(r"\bstep=(\d{1,15}), skipped=\d{1,15}, lr=")
_THROUGHPUT = re.compile(
    r"global_step=(\d{1,15}), RunningAvgSamplesPerSec=[^,]{1,40}, CurrSamplesPerSec=([^,\s]{1,40})"
)
_PIPELINE = re.compile(r"\bsteps: (\d{1,15}) loss: .{1,200}?iter time \(s\): ([^\s]{1,20}) samples/sec: ([^\s]{1,20})")
_TIMERS = re.compile(r"time \(ms\) ((?:\| [a-z_]{2,40}: [0-9.]{1,20} ?)+)")
_TIMER = re.compile(r"\| ([a-z_]{2,40}): ([0-9.]{1,20})")
_MEMORY = re.compile(r"MaxMemAllocated=([0-9.]{1,20})GB")
TIMERS = {
    "fwd": "forward", "forward": "forward", "bwd_inner": "backward", "backward_inner": "backward",
    "bwd_allreduce": "communication", "backward_allreduce": "communication", "step": "optimizer",
}  # fmt: skip
"""Timers of a whole step that do not overlap, with their parts (`bwd` includes `bwd_inner` and `bwd_allreduce`)."""


def _read(text: str) -> Iterator[Event]:
    timers = _TIMERS.search(text)
    if timers is not None:
        yield from _parts(dict(_TIMER.findall(timers[1])))
        return
    moment = _MOMENT.match(text)
    end = None if moment is None else parse_moment(moment[1])
    pipeline, throughput, step = _PIPELINE.search(text), _THROUGHPUT.search(text), _STEP.search(text)
    if pipeline is not None:
        seconds = amount("iter time (s)", pipeline[2])
        per_s = optional(pipeline[3])
        sequences = None if per_s is None else float(round(per_s * seconds))
        yield Step(number=int(pipeline[1]), duration_s=seconds, end=end, sequences=sequences or None)
    elif throughput is not None:
        amount("CurrSamplesPerSec", throughput[2])
        memory = _MEMORY.search(text)
        if memory is not None and (peak := optional(memory[1])):
            yield Fact(key="peak_mem_gib", value=peak)
            yield Fact(key="mem_kind", value="allocated")
    elif step is not None and int(step[1]) > 0:
        yield Step(number=int(step[1]), end=end)
    elif "Saving model checkpoint" in text or "Saved checkpoint" in text or "saved successfully" in text:
        yield Mark(kind="checkpoint")


def _parts(timers: dict[str, str]) -> Iterator[Event]:
    if "step" not in timers and not ("fwd" in timers or "forward" in timers):
        return  # a micro-step
    times = {name: (optional(text) or 0.0) * MILLI for name, text in timers.items()}
    if "bwd_inner" not in times and "backward_inner" not in times:
        whole = times.get("bwd", times.get("backward", 0.0))
        yield Part(name="backward", timer="bwd", least_s=whole, most_s=whole)
    for name, seconds in times.items():
        if name in TIMERS:
            yield Part(name=TIMERS[name], timer=name, least_s=seconds, most_s=seconds)
    whole = sum(times.get(name, 0.0) for name in ("fwd", "forward", "bwd", "backward", "step"))
    if whole > 0:  # for logs without lines of steps; data loading and logging are not included
        yield Step(duration_s=whole)


DEEPSPEED = LogFormat(
    name="DeepSpeed",
    marks=("time (ms) |", "step=", "samples/sec:", "Saving model checkpoint", "Saved checkpoint", "saved successfully"),
    read=_read,
    joins=True,
)

"""Log lines of OLMo-core (allenai/OLMo-core fa6c5014).

The console has a line for each step, `[step=11/1000,epoch=1]`, and for some of them, by default every fifth, a line
`[step=10/1000,epoch=1,eta=1h2m5s]` followed by one line for each figure, like `    throughput/device/TPS=12,345`
(`ConsoleLoggerCallback` of src/olmo_core/train/callbacks/console_logger.py; `format_float` of src/olmo_core/utils.py
writes four digits and, from a billion on, a suffix). Both follow
`2026-03-01 10:00:00.123<tab>host:0<tab>olmo_core.train.callbacks.console_logger:92<tab>INFO<tab>` or, on a terminal,
`[2026-03-01 10:00:00] INFO     [olmo_core.train.callbacks.console_logger:92, host, rank=0] ` (`setup_logging`).
Figures are gathered for several steps and logged in the background, so that their lines may follow those of later
steps, and several may be written at once.

`TPS`, `flopsPS` and `MFU`, in percent, are of one GPU; `BPS` is steps per second (speed_monitor.py). The averages
beside them, over the time since the start, are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from planner.runlog.amounts import as_number
from planner.runlog.events import DamagedError, Detail, Event, Fact, Mark, Step
from planner.runlog.formats.base import SUFFIXES, LogFormat
from planner.units import TERA, ungrouped

_STEP = re.compile(r"\[step=(\d{1,15})/(\d{1,15}|\?\?\?),epoch=\d{1,9}(,eta=[^\]]{1,40})?\]")
_FIGURE = re.compile(r"(?:^|\s)\s{2,8}((?:throughput|gpu_memory)/[^=]{1,60})=(\S{1,30})\s*$")
_SAYS = re.compile(r"(?:\tINFO\t|\bINFO {1,8}\[[^\]]{1,200}\] )(.{1,200}?)\s*$")
_LENGTH = re.compile(r"Training for ([0-9,]{1,20}) steps$")
_RESUMED = re.compile(r"Will resume training from step (\d{1,15}),")
_SAVED = re.compile(r"Saving checkpoint for step \d{1,15} to |Checkpoint (?:for step \d{1,15} )?saved")
_EVALUATED = re.compile(r"Finished .{1,120} evals in ([0-9.]{1,20}) seconds")
FACTORS = {**SUFFIXES, "P": 1e15, "E": 1e18}
"""Suffixes of figures, with their factors."""
STEP_RATE = "throughput/device/BPS"
FIGURES = {
    "throughput/device/TPS": ("tokens_per_s_per_gpu", 1.0), "throughput/device/flopsPS": ("tflops_per_gpu", 1 / TERA),
    "throughput/device/MFU": ("mfu_ratio", 0.01), "throughput/device/data loading (s)": ("data_s", 1.0),
}  # fmt: skip
"""Figures, with the field of `Step` and the unit of each."""
MEMORY = "gpu_memory/GPU reserved mem (GiB)"


def _read(text: str) -> Iterator[Event]:
    step = _STEP.search(text)
    if step is not None:
        of = int(step[2]) if step[2].isdecimal() else None
        yield Step(number=int(step[1]), of=of, late=step[3] is not None)
        return
    figure = _FIGURE.search(text)
    if figure is not None:
        yield from _figure(figure[1], figure[2])
        return
    says = _SAYS.search(text)
    if says is not None:
        yield from _said(says[1])


def _figure(name: str, text: str) -> Iterator[Event]:
    if name not in (*FIGURES, STEP_RATE, MEMORY) or text in ("nan", "inf"):
        return
    factor = FACTORS.get(text[-1:], 1.0)
    number = as_number(ungrouped(text[:-1] if text[-1:] in FACTORS else text))
    if number is None:
        raise DamagedError(name, text, "a number")
    if not number:
        return
    if name == STEP_RATE:
        yield Detail(figures=Step(duration_s=1.0 / (number * factor)))
    elif name == MEMORY:
        yield Detail(figures=Step(memory_gib=number * factor))
        yield Fact(key="mem_kind", value="reserved")
    else:
        field, unit = FIGURES[name]
        filled: dict[str, Any] = {field: number * factor * unit}
        yield Detail(figures=Step(**filled))


def _said(message: str) -> Iterator[Event]:
    length, resumed, evaluated = _LENGTH.match(message), _RESUMED.match(message), _EVALUATED.match(message)
    if length is not None:
        yield Fact(key="steps", value=float(length[1].replace(",", "")))
        yield Mark(kind="start")
    elif resumed is not None:
        yield Mark(kind="load", after_step=int(resumed[1]))
    elif _SAVED.match(message):
        yield Mark(kind="checkpoint")
    elif evaluated is not None:
        yield Mark(kind="evaluation", duration_s=as_number(evaluated[1]) or None)
    elif message == "Training complete":
        yield Mark(kind="end")


OLMO_CORE = LogFormat(
    name="OLMo-core",
    marks=(
        "[step=",
        "throughput/device/",
        "gpu_memory/",
        "Training for ",
        "Will resume training from step ",
        "Saving checkpoint for step ",
        "Checkpoint ",
        " evals in ",
        "Training complete",
    ),
    read=_read,
)

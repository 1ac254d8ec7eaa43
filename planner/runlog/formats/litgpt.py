"""Log lines of litgpt (`fit` of litgpt/pretrain.py and litgpt/finetune/, Lightning-AI/litgpt 26857050).

A line looks like `Epoch 1 | iter 16 step 4 | loss train: 2.314, val: n/a | iter time: 512.31 ms (step) remaining time:
1:23:45`; fine-tuning does not print the remaining time. An iteration is one micro-batch on each GPU, and `(step)` marks
the iteration that ends with an optimizer step. `iter time` is that of one iteration, but a GPU runs behind the program
until a line is logged, so that the time of a line includes work of the iterations since the previous line. It is
therefore read only if every iteration of a step has a line, and then the step takes their sum; with fewer lines, step
times follow from the times of day that a launcher may have put before the lines. Each evaluation prints `iter 600: val
loss 2.2011, val time: 4012.50 ms`. The end is `| - Training Time : 1234.56 s`, over everything since the program
started.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.events import Event, Fact, Mark, Step, Total
from planner.runlog.formats.base import LogFormat, amount, optional
from planner.units import GIB, GIGA, MILLI

_ITERATION = re.compile(
    r"Epoch \d{1,9} \| iter (\d{1,15}) step (\d{1,15}) \| loss train: .{1,40}?\| "
    r"iter time: ([^\s]{1,20}) ms( \(step\))?"
)
_EVALUATION = re.compile(r"\biter \d{1,15}: val loss [^\s,]{1,20}, val time: ([0-9.]{1,20}) ms")
_PARAMS = re.compile(r"Total parameters: ([0-9,]{1,20})\s*$")
_CLOSING = re.compile(r"\| - Training Time +: +([0-9.]{1,20}) s")
_MEMORY = re.compile(r"\| - Memory Used +: +([0-9.]{1,20}) GB")
MOST_UNLOGGED = 0.02
"""Largest share of the steps that may follow the last line, for the total time to give the time of a step."""
MARKED = (
    ("Resuming training from", "load"),
    ("Verifying settings ...", "start"),
    ("Saving checkpoint to '", "checkpoint"),
    ("Final evaluation | val loss", "evaluation"),
)
"""Text in a line, with the kind of mark that it gives."""


class _Reader:
    """Reader of one log, which adds up the iterations of a step."""

    def __init__(self) -> None:
        self.iteration = 0
        """Iteration of the last line."""
        self.seconds: float | None = 0.0
        """Time of the iterations since the last step; None if one of them has no line."""
        self.ended = False
        """Whether that iteration ended a step."""
        self.step = 0
        self.unlogged = 0
        """Steps between the last two lines, of which as many may follow the last line."""
        self.resumed = False

    def read(self, text: str) -> Iterator[Event]:
        iteration = _ITERATION.search(text)
        if iteration is not None:
            yield from self._iteration(iteration)
            return
        for words, kind in MARKED:
            if words in text:
                self.resumed |= kind == "load"
                yield Mark(kind=kind)
                return
        yield from self._other(text)

    def _iteration(self, line: re.Match[str]) -> Iterator[Event]:
        number, seconds = int(line[1]), amount("iter time", line[3]) * MILLI
        if number != self.iteration:  # else another rank repeats the line
            if number != self.iteration + 1:
                self.seconds = 0.0 if number == 1 else None
            elif self.ended:
                self.seconds = 0.0
            self.seconds = None if self.seconds is None else self.seconds + seconds
            if int(line[2]) != self.step:
                self.unlogged = int(line[2]) - self.step
            self.iteration, self.step, self.ended = number, int(line[2]), line[4] is not None
        if self.ended:
            yield Step(number=self.step, duration_s=self.seconds)

    def _other(self, text: str) -> Iterator[Event]:
        evaluation, params = _EVALUATION.search(text), _PARAMS.search(text)
        closing, memory = _CLOSING.search(text), _MEMORY.search(text)
        if evaluation is not None:
            yield Mark(kind="evaluation", duration_s=optional(evaluation[1], MILLI))
        elif params is not None and (number := optional(params[1])):
            yield Fact(key="params_total", value=number)
        elif memory is not None and (peak := optional(memory[1], GIGA / GIB)):
            yield Fact(key="peak_mem_gib", value=peak)
            yield Fact(key="mem_kind", value="allocated")
        elif closing is not None:
            counted = self.unlogged <= MOST_UNLOGGED * self.step
            if self.step and counted and not self.resumed:  # a resumed program did fewer steps than their number
                yield Total(runtime_s=amount("Training Time", closing[1]), steps=float(self.step))
            yield Mark(kind="end")


LITGPT = LogFormat(
    name="litgpt",
    marks=(
        "| iter time: ",
        "val time: ",
        "Total parameters: ",
        "| - Training Time",
        "| - Memory Used",
        *(words for words, _ in MARKED),
    ),
    read=lambda text: _Reader().read(text),
    begin=lambda: _Reader().read,
)

"""Log lines, metric files and progress bars of MosaicML Composer (mosaicml/composer 64051888).

With `log_to_console`, a block begins with `[batch=10/1000]:`, `[epoch=1][batch=10/64]:`, or the progress in another
unit like `[token=20480/2097152]:`, and has one line for each figure, like
`<tab> Train throughput/batches_per_sec: 0.4871` (`ConsoleLogger` of composer/loggers/console_logger.py;
`format_log_data_value` of loggers/logger.py writes four decimals). `FileLogger` writes
`[metric][batch=10]: throughput/batches_per_sec: 0.4871`, and before the console's lines `[stderr]: `. The progress bar
begins with `train` and counts batches or another unit:
`train          Epoch   0:    8%|██  | 5/64 [00:10<01:58,  2.01s/ba, loss/train/total=2.31]` (progress_bar_logger.py).
An evaluation prints `[Eval batch=1/20] Eval on eval data`.

`time/batch` and `time/sample` are logged before the batch that the line is about, and `throughput/` after it: means
over the last 100 batches by default, of all GPUs or, with `device/`, of one (callbacks/speed_monitor.py). They begin
100 batches after each start, and their time does not contain evaluations. Without `SpeedMonitor`, the time of a step
follows only from the progress bar, or from the times of day that a launcher may have put before the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from planner.runlog.amounts import as_number
from planner.runlog.events import DamagedError, Detail, Event, Fact, Mark, Progress, Step
from planner.runlog.formats.base import LogFormat
from planner.units import GIB, GIGA, HOUR_S, MINUTE_S, TERA

_BLOCK = re.compile(
    r"(?:^|\s)(?:\[epoch=(\d{1,9})\])?\[(batch|token|sample|iteration|second)=(\d{1,18})(?:/(\d{1,18}))?\]:?$"
)
_CONSOLE = re.compile(r"\t Train ([a-z]{2,20}/[\w/.-]{1,80}): (\S{1,40})\s*$")
_METRIC = re.compile(r"\[metric\]\[batch=(\d{1,15})\]: ([a-z]{2,20}/[\w/.-]{1,80}): (\S{1,40})\s*$")
_BAR = re.compile(
    r"^(?:\[std(?:err|out)\]: )?train +(?:Epoch +(\d{1,9}): +)?\d{1,3}%\|[^|]{0,400}\| *(\d{1,15})/(\d{1,15}) "
    r"\[(?:(\d{1,5}):)?(\d{1,2}):(\d\d)<[^,\]]{1,20}, *(?:[0-9.]{1,12}|\?)(?:ba/s|s/ba)"
)
AFTER, LOSS = ("throughput/", "time/train"), "loss/train/"
"""Beginnings of the names of figures that are logged after each batch, and before it counts as done."""
BATCH, SAMPLE = "time/batch", "time/sample"
STEP_RATE, RATE, DEVICE_RATE = (
    "throughput/batches_per_sec", "throughput/tokens_per_sec", "throughput/device/tokens_per_sec",
)  # fmt: skip
FIGURES = {
    DEVICE_RATE: ("tokens_per_s_per_gpu", 1.0), "throughput/device/flops_per_sec": ("tflops_per_gpu", 1 / TERA),
    "throughput/device/mfu": ("mfu_ratio", 1.0), "memory/peak_reserved_mem": ("memory_gib", GIGA / GIB),
}  # fmt: skip
"""Figures, with the field of `Step` and the unit of each."""
MICRO_BATCH = "trainer/device_train_microbatch_size"
NEAR_WHOLE = 1e-3
"""Largest error of a number of GPUs that follows from rates with four decimals."""
MARKED = (
    ("] Eval on ", "evaluation"),
    ("composer.trainer.trainer: Run name:", "start"),
    ("composer.trainer.trainer: Loading checkpoint from", "load"),
)
"""Text in a line, with the kind of mark that it gives."""


class _Reader:
    """Reader of one log, which remembers what the figures of a block are counted from."""

    def __init__(self) -> None:
        self.numbered = True
        """Whether the head of a block gives the number of its step."""
        self.batch: int | None = None
        """Batches done before the latest block or metric."""
        self.before: tuple[int, float] = (0, 0.0)
        """Batches and samples done before the block for which they were last known."""
        self.rate: float | None = None
        """Tokens per second of all GPUs."""

    def read(self, text: str) -> Iterator[Event]:
        for words, kind in MARKED:
            if words in text:
                yield Mark(kind=kind)
                return
        metric, console = _METRIC.search(text), _CONSOLE.search(text)
        if metric is not None:
            yield from self._metric(int(metric[1]), metric[2], metric[3])
        elif console is not None:
            yield from self._console(console[1], console[2])
        elif (bar := _BAR.match(text)) is not None:
            yield Progress(
                number=int(bar[2]),
                of=int(bar[3]),
                elapsed_s=int(bar[4] or 0) * HOUR_S + int(bar[5]) * MINUTE_S + int(bar[6]),
                rates=Step(),
                epoch=None if bar[1] is None else int(bar[1]),
            )
        elif (block := _BLOCK.search(text.rstrip())) is not None:
            yield from self._block(block)

    def _block(self, block: re.Match[str]) -> Iterator[Event]:
        epoch, unit, done, of = block[1], block[2], int(block[3]), block[4]
        self.numbered = unit == "batch" and (epoch in (None, "1") or of is not None)
        if not self.numbered:
            return
        before = 0 if epoch is None else (int(epoch) - 1) * int(of or 0)
        yield Step(number=before + done, of=int(of) if of is not None and epoch is None else None)

    def _metric(self, batch: int, name: str, text: str) -> Iterator[Event]:
        """Read a line of a file of metrics; `batch` is the number of batches done when it was logged."""
        figures = self._figures(name, text)
        if name.startswith(AFTER):
            yield Step(number=batch, **figures)
        elif name.startswith(LOSS):
            yield Step(number=batch + 1)
        elif figures:
            yield Detail(figures=Step(**figures))
        yield from self._facts(name, text)

    def _console(self, name: str, text: str) -> Iterator[Event]:
        if name == BATCH and not self.numbered:
            yield Step(number=int(_number(name, text)) + 1)
        figures = self._figures(name, text)
        if figures:
            yield Detail(figures=Step(**figures))
        yield from self._facts(name, text)

    def _figures(self, name: str, text: str) -> dict[str, Any]:
        """Return the fields of `Step` that a figure fills."""
        if name == BATCH:
            self.batch = int(_number(name, text))
        elif name == SAMPLE and self.batch is not None:
            return self._sequences(self.batch, _number(name, text))
        elif name == STEP_RATE and (rate := _number(name, text)):
            return {"duration_s": 1.0 / rate}
        elif name in FIGURES and (number := _number(name, text)):
            field, unit = FIGURES[name]
            return {field: number * unit}
        return {}

    def _sequences(self, batch: int, samples: float) -> dict[str, Any]:
        """Return the samples of a batch, from what was done before two blocks, where all batches had as many."""
        (batch_before, samples_before), self.before = self.before, (batch, samples)
        if batch <= batch_before:
            return {}
        size = (samples - samples_before) / (batch - batch_before)
        return {"sequences": size} if size > 0 and size == round(size) else {}

    def _facts(self, name: str, text: str) -> Iterator[Event]:
        if name == MICRO_BATCH and (number := _number(name, text)):
            yield Fact(key="micro_batch", value=number)
        elif name == "memory/peak_reserved_mem":
            yield Fact(key="mem_kind", value="reserved")
        elif name == RATE:
            self.rate = _number(name, text)
        elif name == DEVICE_RATE and self.rate and (number := _number(name, text)):
            gpus = self.rate / number
            if abs(gpus - round(gpus)) <= NEAR_WHOLE * gpus and NEAR_WHOLE * gpus < 0.5:
                yield Fact(key="n_gpus", value=float(round(gpus)))
            self.rate = None


def _number(name: str, text: str) -> float:
    """Read a number.

    Raises:
        DamagedError: the text is not a number.
    """
    number = as_number(text)
    if number is None:
        raise DamagedError(name, text, "a number")
    return number


COMPOSER = LogFormat(
    name="Composer",
    marks=("\t Train ", "[metric][batch=", "train ", "[batch=", "[token=", "[sample=", *(words for words, _ in MARKED)),
    read=lambda text: _Reader().read(text),
    begin=lambda: _Reader().read,
)

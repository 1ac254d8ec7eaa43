"""Log lines of torchtitan (`MetricsProcessor.log` of torchtitan/components/metrics.py, pytorch/torchtitan b5bcd76c).

A line looks like `[rank0]:[titan] 2025-06-16 22:31:04,970 - root - INFO - step: 210  loss:  6.0388  grad_norm:  0.4
memory: 49.66GiB(52.28%)  tps: 5,593  tflops: 323.92  mfu: 32.75%`. Until March 2025, tokens per second were called
`wps`, and there was no `tflops` (99f73969). `grad_norm` was added in June 2025 (a85e2a53). With FP8 and MX, the MFU has
been `N/A` since February 2026 (f113706c). Before 2025, lines did not begin with `[titan]`. The step time is not
printed; it follows from the times of day of two lines. The time of data loading goes only to TensorBoard and W&B
(`time_metrics/data_loading(s)`), whose tables are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.runlog.events import Event, Fact, Mark, Step
from planner.runlog.formats.base import LogFormat, mfu_of, optional
from planner.runlog.moments import parse_moment

_HEAD = re.compile(r"(?:\[titan\] )?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) - \S+ - INFO - (.*)")
_STEP = re.compile(r"step:\s*(\d{1,15})\s+loss:")
_PAIR = re.compile(r"(memory|tps|wps|tflops|mfu):\s*([0-9.,]{1,20}%?)")
_TOKENS = re.compile(r"(\d{1,15}) tokens per train step")
_CONTEXT = re.compile(r"maximum context length (\d{1,9})")
_BATCHES = re.compile(r"(global batch size|local batch size|sequence length|total steps):? (\d{1,15})")
_PARALLEL = re.compile(r"Building device mesh with parallelism: (.{1,200})")
_SIZE = re.compile(r"size: ([0-9,]{1,20}) total parameters")
_PEAK = re.compile(r"Peak FLOPS used for computing MFU: ([0-9.e+]{1,20})")
_START = re.compile(r"Training starts at step (\d{1,15})")
MARKED = (
    ("Loading the checkpoint from", "load"),
    ("the checkpoint (or staging if async is enabled)", "checkpoint"),
    ("Saving the checkpoint", "checkpoint"),
    ("Staging the checkpoint", "checkpoint"),
    ("validate step:", "evaluation"),
    ("Training completed", "end"),
)
"""Text in a line, with the kind of mark that it gives."""


def _read(text: str) -> Iterator[Event]:
    head = _HEAD.search(text)
    if head is None:
        return
    message = head[2]
    step = _STEP.match(message)
    if step is not None:
        pairs = dict(_PAIR.findall(message))
        yield Step(
            number=int(step[1]),
            end=parse_moment(head[1]),
            tokens_per_s_per_gpu=optional(pairs.get("tps", pairs.get("wps"))),
            tflops_per_gpu=optional(pairs.get("tflops")),
            mfu_ratio=mfu_of(pairs.get("mfu")),
            memory_gib=optional(pairs.get("memory")),
        )
        return
    start = _START.match(message)
    if start is not None:
        yield Mark(kind="start", after_step=max(int(start[1]) - 1, 0))
        return
    for words, kind in MARKED:
        if words in message:
            yield Mark(kind=kind)
            return
    yield from _facts(message)


def _facts(message: str) -> Iterator[Fact]:
    size, peak, parallel = _SIZE.search(message), _PEAK.search(message), _PARALLEL.search(message)
    if size is not None and (params := optional(size[1])):
        yield Fact(key="params_total", value=params)
        yield Fact(key="mem_kind", value="reserved")
    if peak is not None and (flop := optional(peak[1].replace("e+", "e"))):
        yield Fact(key="peak_flop_per_s", value=flop)
    if parallel is not None:
        yield from _layout(dict(re.findall(r"(\w{2,12})=(\d{1,6})", parallel[1])))
    if "Trainer is initialized with" not in message:
        return
    tokens, context = _TOKENS.search(message), _CONTEXT.search(message)
    if tokens is not None:
        yield Fact(key="tokens_per_step", value=float(tokens[1]))
    if context is not None:
        yield Fact(key="seq_len", value=float(context[1]))
    keys = {"global batch size": "global_batch_seqs", "local batch size": "micro_batch",
            "sequence length": "seq_len", "total steps": "steps"}  # fmt: skip
    for name, number in _BATCHES.findall(message):
        yield Fact(key=keys[name], value=float(number))


def _layout(sizes: dict[str, str]) -> Iterator[Fact]:
    """Degrees of parallelism; expert parallelism shares the ranks of the others."""
    whole = {name: int(size) for name, size in sizes.items()}
    gpus = 1
    for name in ("pp", "dp_replicate", "dp_shard", "cp", "tp"):
        gpus *= whole.get(name, 1)
    yield Fact(key="n_gpus", value=float(gpus))
    for name in ("pp", "cp", "tp", "ep"):
        if name in whole:
            yield Fact(key=name, value=float(whole[name]))


TORCHTITAN = LogFormat(name="torchtitan", marks=(" - INFO - ",), read=_read)

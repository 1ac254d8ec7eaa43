"""Files of other tools for the fuzzer: a valid one of each format of `mpplan records import` and log of steps."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache

from tests.planner.imported.readings import SAMPLES
from tests.planner.imported.traces import add_attention, of_products

GIVEN = ("--gpu", "h100-sxm5-80gb", "--model", "llama-3.1-8b", "--precision", "bf16", "--gpus", "2",
         "--seq-len", "4096", "--utc-offset", "+01:00")  # fmt: skip
WITH_ROWS = ("--global-batch", "128", "--runs", "runs.csv", "-o", "out.jsonl")
POWER, STEPS = str(SAMPLES / "nvidia-smi.csv"), str(SAMPLES / "steps.csv")


@cache
def trace() -> bytes:
    """A small trace of products, attention and a copy."""
    written = of_products(repeats=2)
    add_attention(written, 2048, 4e-4, 9e-4)
    written.copy(2**30, 7e-4)
    return written.written()


def packed_trace() -> bytes:
    """The same as an archive."""
    return gzip.compress(trace(), mtime=0)


def _sample(name: str) -> Callable[[], bytes]:
    return lambda: (SAMPLES / name).read_bytes()


def _with_steps(form: str) -> tuple[tuple[str, ...], ...]:
    command = ("records", "import", "FILE", "--as", form, "--steps", STEPS, *GIVEN)
    return ((*command, *WITH_ROWS), (*command, "--json"))


def _alone(form: str, *more: str) -> tuple[tuple[str, ...], ...]:
    command = ("records", "import", "FILE", "--as", form)
    return ((*command, *more, "-o", "out.jsonl"), (*command, *more, "--json"), ("records", "import", "FILE"))


OF_TOOLS: dict[str, tuple[str, Callable[[], bytes], tuple[tuple[str, ...], ...]]] = {
    "smi": ("power.csv", _sample("nvidia-smi.csv"), _with_steps("nvidia-smi")),
    "dcgmi": ("dcgmi.txt", _sample("dcgmi-dmon.txt"), _with_steps("dcgm")),
    "exporter": ("dcgm.prom", _sample("dcgm-exporter.prom"), _with_steps("dcgm")),
    "prometheus": ("prometheus.json", _sample("prometheus.json"), _with_steps("dcgm")),
    "zeus": ("zeus.csv", _sample("zeus.csv"), (_alone("zeus", *GIVEN))),
    "zeusjson": ("zeus.json", _sample("zeus.json"), (_alone("zeus", *GIVEN))),
    "codecarbon": ("emissions.csv", _sample("emissions.csv"), _with_steps("codecarbon")),
    "trace": ("trace.json", trace, _alone("torch-trace")),
    "tracegz": ("trace.json.gz", packed_trace, _alone("torch-trace")),
    **{
        name: (file, _sample(file), (("records", "import", POWER, "--steps", "FILE", *GIVEN, *WITH_ROWS),))
        for name, file in (
            ("megatron", "megatron.log"), ("nanotron", "nanotron.log"), ("titan", "torchtitan.log"),
            ("trainer", "hf_trainer.log"), ("steps", "steps.csv"), ("steplines", "steps.jsonl"),
        )
    },
}  # fmt: skip
"""By a short name: the file's name, its content, and the commands that read it."""

"""Files of other tools for the fuzzer: a valid one of each format of `mpplan records import`, and logs of runs."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache

from planner.records.jsonl import record_bytes
from tests.planner.imported.readings import SAMPLES
from tests.planner.imported.traces import add_attention, of_products
from tests.planner.measured.test_training import a_finding
from tests.planner.runlog.test_read import SAMPLES as RUNS
from tests.planner.runlog.writers import LLAMA_8B, megatron_arguments, megatron_log, megatron_timers, text_of
from tests.planner.safety.recorded import PATH as NUMERICS

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


LOG = SAMPLES / "torchtitan.log"
"""A log to compare a plan with."""
SHOWN = ("--gpu", "h100", "--model", "llama-3-8b", "--seq-len", "4096", "--precision", "bf16")
COMPARED = (
    ("compare", "FILE"), ("compare", "FILE", *SHOWN, "--gpus", "8", "--price", "2", "--json"),
    ("compare", "FILE", *SHOWN, "--lang", "zh", "-o", "runs.csv"),
)  # fmt: skip


def _run(name: str) -> Callable[[], bytes]:
    return lambda: (RUNS / name).read_bytes()


@cache
def settings() -> bytes:
    """A log of Megatron-LM with its settings, timers and a restart."""
    lines, at = megatron_log([2.0, 2.1, 1.9, 2.0], of=20, tflops=[400.0] * 4)
    resumed, _ = megatron_log([2.0, 2.2], of=20, begin=2, at=at)
    timers = megatron_timers({"forward-compute": (600, 700), "batch-generator": (1, 9), "all-grads-sync": (80, 150)})
    return text_of(megatron_arguments(LLAMA_8B), lines, timers, resumed)


def packed_settings() -> bytes:
    """The same as an archive."""
    return gzip.compress(settings(), mtime=0)


ASKED = ("estimate", "--params", "125M", "--gpus", "8", "--tokens", "1B", "--seq-len", "512", "--tp", "1", "--pp", "1",
         "--precision", "fp16", "--gpu", "v100-sxm2-32gb")  # fmt: skip


def numerics() -> bytes:
    """What `mpplan numerics --json` printed."""
    return NUMERICS.read_bytes()


@cache
def trained() -> bytes:
    """A record of what training showed."""
    points = [a_finding(), a_finding(seq=1, probe_id="numerics/char-lm/parity/fp16", precision="fp16", recipe="fp16")]
    return record_bytes(points, "record.jsonl")


OF_TRAINING: dict[str, tuple[str, Callable[[], bytes], tuple[tuple[str, ...], ...]]] = {
    "numerics": ("numerics.json", numerics, (
        (*ASKED, "--numerics", "FILE", "--json"), (*ASKED, "--numerics", "FILE", "--report", "page.html"),
    )),
    "trained": ("record.jsonl", trained, (
        ("claims", "c14", "--records", "FILE"), ("check", "FILE"), (*ASKED, "--records", "FILE", "--json"),
        ("claims", "c01", "--records", "FILE", "--json"),
    )),
    "lengths": ("lengths.txt", lambda: b"120\n400\n2048\n77\n", (
        ("estimate", "--model", "llama-3.1-8b", "--method", "lora", "--gpu", "h100-sxm5-80gb", "--gpus", "1",
         "--precision", "bf16", "--examples", "5k", "--lengths", "FILE", "--json"),
    )),
}  # fmt: skip
"""The same of what training showed, and of fine-tuning."""

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
    "runmegatron": ("run.log", settings, COMPARED),
    "rungz": ("run.log.gz", packed_settings, COMPARED),
    **{
        f"run{name}": (file, _run(file), COMPARED)
        for name, file in (
            ("trainer", "hf-trainer.log"), ("state", "trainer_state.json"), ("lightning", "lightning.log"),
            ("deepspeed", "deepspeed.log"), ("nemo", "nemo-crash.log"),
        )
    },
    **{
        f"run{name}": (file, _sample(file), COMPARED)
        for name, file in (("titan", "torchtitan.log"), ("nanotron", "nanotron.log"), ("steps", "steps.csv"))
    },
    **{
        name: (file, _sample(file), (("records", "import", POWER, "--steps", "FILE", *GIVEN, *WITH_ROWS),))
        for name, file in (
            ("megatron", "megatron.log"), ("nanotron", "nanotron.log"), ("titan", "torchtitan.log"),
            ("trainer", "hf_trainer.log"), ("steps", "steps.csv"), ("steplines", "steps.jsonl"),
        )
    },
}  # fmt: skip
"""By a short name: the file's name, its content, and the commands that read it."""

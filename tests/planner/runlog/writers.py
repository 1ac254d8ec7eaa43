"""Logs of runs that never were, in the frameworks' own format strings (their sources: `planner/runlog/formats/`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None)

LLAMA_8B = {
    "num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "group_query_attention": True,
    "num_query_groups": 8, "ffn_hidden_size": 14336, "padded_vocab_size": 128256, "swiglu": True,
    "untie_embeddings_and_output_weights": True, "seq_length": 8192, "world_size": 64, "global_batch_size": 128,
    "micro_batch_size": 1, "tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1, "bf16": True,
    "fp8": None, "train_iters": 1000, "recompute_granularity": None,
}  # fmt: skip
"""Megatron-LM's arguments of Llama-3-8B on 64 GPUs."""


def megatron_arguments(arguments: dict[str, object]) -> list[str]:
    """As `_print_args` prints them."""
    return [
        "------------------------ arguments ------------------------",
        *(f"  {name} {'.' * (48 - len(name))} {value}" for name, value in sorted(arguments.items())),
        "-------------------- end of arguments ---------------------",
    ]


def megatron_line(
    iteration: int, of: int, step_s: float, at: datetime, *, tflops: float | None = None, batch: int = 128
) -> str:
    """As `training_log` prints it."""
    text = f" [{at:%Y-%m-%d %H:%M:%S.%f}]"
    text += f" iteration {iteration:8d}/{of:8d} |"
    text += f" consumed samples: {iteration * batch:12d} |"
    text += f" elapsed time per iteration (ms): {step_s * 1000.0:.1f} |"
    if tflops is not None:
        text += f" throughput per GPU (TFLOP/s/GPU): {tflops:.1f} |"
    text += f" learning rate: {3e-4:.6E} |"
    text += f" global batch size: {batch:5d} |"
    text += f" lm loss: {2.5:.6E} |"
    text += f" loss scale: {1.0:.1f} |"
    text += f" grad norm: {0.4:.3f} |"
    text += f" number of skipped iterations: {0:3d} |"
    return text + f" number of nan iterations: {0:3d} |"


def megatron_timers(times_ms: dict[str, tuple[float, float]]) -> list[str]:
    """As `_get_global_min_max_time_string` prints them."""
    lines = ["(min, max) time across ranks (ms):"]
    return lines + [
        f"    {(name + ' ').ljust(48, '.')}: ({low:.2f}, {high:.2f})" for name, (low, high) in times_ms.items()
    ]


def megatron_log(
    durations_s: Sequence[float], *, of: int, interval_steps: int = 1, tflops: Sequence[float] | None = None,
    begin: int = 0, at: datetime = BEGIN, batch: int = 128,
) -> tuple[list[str], datetime]:  # fmt: skip
    """Lines of consecutive intervals, and when the last one was written.

    Args:
        durations_s: of a step, by interval.
        of: steps of the whole run.
        interval_steps: steps of an interval.
        tflops: printed rate, by interval.
        begin: steps done before.
        at: when the first interval begins.
        batch: sequences per step.
    """
    lines = []
    for number, step_s in enumerate(durations_s, 1):
        at += timedelta(seconds=step_s * interval_steps)
        rate = None if tflops is None else tflops[number - 1]
        lines.append(megatron_line(begin + number * interval_steps, of, step_s, at, tflops=rate, batch=batch))
    return lines, at


RED, GREEN, ORANGE, TURQUOISE = "\x1b[31m", "\x1b[32m", "\x1b[38;2;180;60;0m", "\x1b[38;2;54;234;195m"
BLUE, CYAN, MAGENTA, RESET = "\x1b[34m", "\x1b[36m", "\x1b[35m", "\x1b[39m"


def titan(at: datetime, message: str, rank: int | None = 0) -> str:
    """A line of torchtitan's logger, behind torchrun's rank."""
    prefix = "" if rank is None else f"[rank{rank}]:"
    return f"{prefix}[titan] {at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} - root - INFO - {message}"


def titan_step(at: datetime, step: int, *, tps: float, tflops: float, mfu: float | None, rank: int | None = 0) -> str:
    """As `MetricsProcessor.log` prints it, with its colours."""
    mfu_text = "N/A" if mfu is None else f"{mfu:.2f}%"
    return titan(
        at,
        f"{RED}step: {step:2}  {GREEN}loss: {2.71828:8.5f}  {ORANGE}grad_norm: {0.4123:7.4f}  "
        f"{TURQUOISE}memory: {49.66:5.2f}GiB({52.28:.2f}%)  {BLUE}tps: {round(tps):,}  "
        f"{CYAN}tflops: {tflops:,.2f}  {MAGENTA}mfu: {mfu_text}{RESET}",
        rank,
    )


def text_of(*blocks: Iterable[str]) -> bytes:
    """Lines as a file."""
    return ("\n".join(line for block in blocks for line in block) + "\n").encode()

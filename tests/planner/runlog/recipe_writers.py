"""Logs of runs that never were, of Composer, litgpt, torchtune and OLMo-core, in the format strings of their sources.

Each format is described, with its source, in the module of the same name in `planner/runlog/formats/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from tests.planner.runlog.writers import BEGIN

WINDOW = 100
"""Batches over which Composer's SpeedMonitor averages."""


def composer_figures(batch: int, step_s: float, *, gpus: int, sequences: int, seq_len: int) -> dict[str, str]:
    """What Composer logs about a batch, the first of which is 1, with `SpeedMonitor` and `MemoryMonitor`."""
    figures: dict[str, float | int] = {
        "time/batch": batch - 1, "time/sample": (batch - 1) * sequences, "time/batch_in_epoch": batch - 1,
        "time/token": (batch - 1) * sequences * seq_len, "trainer/device_train_microbatch_size": 4,
        "loss/train/total": 2.31415,
    }  # fmt: skip
    if batch > WINDOW:
        figures |= {
            "memory/peak_reserved_mem": 42.949, "throughput/batches_per_sec": 1 / step_s,
            "throughput/samples_per_sec": sequences / step_s, "throughput/device/batches_per_sec": 1 / step_s / gpus,
            "throughput/tokens_per_sec": sequences * seq_len / step_s,
            "throughput/device/tokens_per_sec": sequences * seq_len / step_s / gpus,
            "throughput/device/flops_per_sec": 4.2e14, "throughput/device/mfu": 0.4247,
        }  # fmt: skip
    figures["time/train"] = batch * step_s / 3600.0
    return {name: f"{value:.4f}" if isinstance(value, float) else str(value) for name, value in figures.items()}


def composer_block(head: str, figures: dict[str, str]) -> list[str]:
    """As `ConsoleLogger.log_to_console` prints it."""
    return [f"{head}:", *(f"\t Train {name}: {text}" for name, text in figures.items())]


def composer_console(
    batches: Sequence[int], step_s: float, *, of: int, unit: str = "batch", gpus: int = 8, sequences: int = 64,
    seq_len: int = 2048,
) -> list[str]:  # fmt: skip
    """Blocks of these batches, with the progress in batches or in tokens."""
    size = 1 if unit == "batch" else sequences * seq_len
    lines: list[str] = []
    for batch in batches:
        figures = composer_figures(batch, step_s, gpus=gpus, sequences=sequences, seq_len=seq_len)
        lines += composer_block(f"[{unit}={batch * size}/{of * size}]", figures)
    return lines


def composer_file(batches: Sequence[int], step_s: float, *, gpus: int = 8, sequences: int = 64) -> Iterator[str]:
    """As `FileLogger.log_metrics` writes it: what is logged before a batch has the number of the one before."""
    for batch in batches:
        figures = composer_figures(batch, step_s, gpus=gpus, sequences=sequences, seq_len=2048)
        for name, text in figures.items():
            done = batch if name.startswith(("throughput/", "memory/", "time/train")) else batch - 1
            yield f"[metric][batch={done}]: {name}: {text} "


def litgpt_line(iteration: int, step: int, iter_s: float, *, ends_step: bool, left: str | None = None) -> str:
    """As `fit` of litgpt prints it; with the remaining time in pre-training."""
    text = f"Epoch 1 | iter {iteration} step {step} | loss train: {2.314:.3f}, val: n/a |"
    text += f" iter time: {iter_s * 1000:.2f} ms{' (step)' if ends_step else ''}"
    return text if left is None else f"{text} remaining time: {left}"


def litgpt_log(steps: Sequence[int], iter_s: float, *, accumulation: int = 1) -> list[str]:
    """Lines of every iteration of these consecutive steps."""
    parts = [(step, part, part == accumulation) for step in steps for part in range(1, accumulation + 1)]
    return [
        litgpt_line((step - 1) * accumulation + part, step if ends else step - 1, iter_s, ends_step=ends)
        for step, part, ends in parts
    ]  # fmt: skip


def torchtune_line(step: int) -> str:
    """As `DiskLogger.log_dict` writes it."""
    return (
        f"Step {step} | loss:1.6203291416168213 lr:2e-05 tokens_per_second_per_gpu:1874.2219 "
        "peak_memory_active:18.125 peak_memory_alloc:18.0625 peak_memory_reserved:19.375 "
    )


def torchtune_bar(epoch: int, overall: int, number: int, of: int, elapsed_s: float) -> str:
    """A state of the bar of an epoch, from 1; without a loss at its beginning, where the epoch counts from 0."""
    label = f"{epoch - 1}|{overall}" if number == 0 else f"{epoch}|{overall}|Loss: 1.6203291416168213"
    seconds = int(elapsed_s)
    share = int(10 * number / of)
    return (
        f"{label}: {100 * number // of:3d}%|{'█' * share}{' ' * (10 - share)}| {number}/{of} "
        f"[{seconds // 60:02d}:{seconds % 60:02d}<01:00,  2.00s/it]"
    )


def olmo(at: datetime, message: str, *, terminal: bool = False) -> str:
    """A line of OLMo-core's logger, to a file or on a terminal."""
    place = "olmo_core.train.callbacks.console_logger"
    if terminal:
        return f"[{at:%Y-%m-%d %H:%M:%S}] {'INFO':8} [{place}:92, host-0, rank=0] {message}"
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}\thost-0:0\t{place}:92\tINFO\t{message}"


def olmo_figures(
    at: datetime, step: int, of: int, step_s: float, *, tps: float, terminal: bool = False
) -> list[str]:  # fmt: skip
    """As `ConsoleLoggerCallback.log_metrics` prints it."""
    return [
        olmo(at, f"[step={step}/{of},epoch=1,eta=1h2m5s]", terminal=terminal),
        "    train/CE loss=2.314",
        "    gpu_memory/GPU active mem (GiB)=41.12",
        "    gpu_memory/GPU reserved mem (GiB)=45.68",
        "    throughput/total tokens=1.049B",
        "    throughput/device/data loading (s)=0.0123",
        f"    throughput/device/TPS={int(tps):,d}",
        f"    throughput/device/TPS (actual avg)={int(tps * 0.9):,d}",
        "    throughput/device/flopsPS=401.2T",
        f"    throughput/device/BPS={1 / step_s:.4f}",
        f"    throughput/device/BPS (actual avg)={0.9 / step_s:.4f}",
        "    throughput/device/MFU=40.57",
        "    throughput/device/MFU (actual avg)=36.50",
    ]


def olmo_log(
    steps: Sequence[int], step_s: float, *, of: int, every: int = 5, at: datetime = BEGIN, delay_steps: float = 0.2,
    terminal: bool = False,
) -> list[str]:  # fmt: skip
    """Lines of consecutive steps, with figures of every n-th step, which are written some time after it."""
    timed: list[tuple[datetime, list[str]]] = []
    for number, step in enumerate(steps, 1):
        end = at + timedelta(seconds=step_s * number)
        if step == 1 or step % every == 0:
            late = end + timedelta(seconds=step_s * delay_steps)
            timed.append((late, olmo_figures(late, step, of, step_s, tps=12345, terminal=terminal)))
        else:
            timed.append((end, [olmo(end, f"[step={step}/{of},epoch=1]", terminal=terminal)]))
    return [line for _, lines in sorted(timed, key=lambda entry: entry[0]) for line in lines]

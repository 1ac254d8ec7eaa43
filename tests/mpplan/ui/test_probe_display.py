"""How a run looks: results in one line, a table against FP32 and TF32, predicted against measured."""

from __future__ import annotations

import pytest

from mpplan.ui.probe_display import Lines, Live, Quiet, display, duration, result_line, summary_text, verify_text
from probes.record.summary import summarise_run
from probes.session.listener import Progress
from probes.verify.document import verify_document
from tests.planner.recorded import H200, a_measurement


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (60.0, "1 min 00 s"), (200.0, "3 min 20 s")]
)
def test_a_time_is_said_in_minutes_and_seconds(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"probe_id": "g", "flop_model": 2.8e12}, "g: 4 ms, 700 TFLOP/s"),
        ({"probe_id": "b", "kind": "bandwidth", "bytes_min": 16e9}, "b: 4 ms, 4000 GB/s"),
        (
            {"probe_id": "e", "memory_allocated_peak_bytes": 2.0**31, "power_mean_w": 651.7, "quality": "throttled"},
            "e: 4 ms, 2 GiB, 652 W, throttled",
        ),
        (
            {
                "probe_id": "n",
                "kind": "numerics",
                "numerics_verdict": "cannot_tell",
                "numerics_metric": "loss",
                "numerics_difference_mid": -0.0042,
                "numerics_skipped_step_ratio": 0.02,
                "numerics_emulated": True,
            },
            "n: cannot tell, loss \N{MINUS SIGN}0.0042, 2% of steps skipped, emulated",
        ),
        ({"probe_id": "x", "status": "oom", "reason": "not enough memory"}, "x: oom: not enough memory"),
    ],
)
def test_a_result_is_one_line_with_its_rate_memory_power_and_faults(changes: dict[str, object], line: str) -> None:
    assert result_line(a_measurement(**changes)) == line


def step(recipe: str, seconds: float, joules: float):
    return a_measurement(
        probe_id=recipe, kind="end_to_end", model="llama-llama-3.2-1b", layers=4, seq_len=4096, micro_batch=1,
        tokens=4096, recipe=recipe, precision=recipe.split("-")[0], recompute="none", compiled=False,
        time_median_s=seconds, energy_j_per_iteration=joules, memory_allocated_peak_bytes=8 * 2.0**30, **H200,
    )  # fmt: skip


def test_the_table_puts_speed_memory_and_energy_beside_fp32_and_tf32() -> None:
    rows = summarise_run([step("fp32", 0.8, 400.0), step("tf32", 0.2, 120.0), step("bf16-fsdp", 0.1, 64.0)])

    lines = summary_text(rows).splitlines()
    assert lines[1].split("  ")[-5:] == ["peak GiB", "FP32's GiB ÷ this", "mJ/token", "FP32's mJ ÷ this", "quality"]

    assert lines[0] == "one training step of llama-llama-3.2-1b, 4 layers, 1 × 4096, forward, backward and update"
    # 4096 tokens in 0.1 s; 8 and 2 times as fast; 8 GiB; 64 J over 4096 tokens is 15.6 mJ; FP32 takes 6.25 times that
    assert lines[4].split() == ["bf16", "bf16-fsdp", "40960", "8", "2", "8", "1", "15.6", "6.25", "ok"]


def test_without_a_step_the_table_says_so() -> None:
    assert summary_text(()) == "no training step was measured\n"


def test_a_verification_is_a_table_with_its_medians_against_their_targets() -> None:
    case = a_measurement(
        probe_id="verify/llama-1b/bf16-fsdp", kind="verify", predicted_time_s=0.103, time_median_s=0.1,
        time_ci_low_s=0.08, time_ci_high_s=0.13, predicted_memory_bytes=0.99 * 2.0**30,
        memory_allocated_peak_bytes=2.0**30, **H200,
    )  # fmt: skip

    text = verify_text(verify_document([case]))

    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[1] == "llama-1b/bf16-fsdp time ms 103 100 25.0% +3.0% ok"
    assert lines[2] == "llama-1b/bf16-fsdp memory GiB 0.99 1 - \N{MINUS SIGN}1.0% ok"
    assert "time: median error 3.0%, largest 3.0%, 1 case, target 5%" in text
    assert "memory: median error 1.0%, largest 1.0%, 1 case, target 3%" in text
    assert "energy" not in text


def test_a_verification_without_time_says_so() -> None:
    assert verify_text(verify_document([])) == "nothing was verified: no time was left\n"


def test_a_pipe_gets_lines_a_terminal_gets_a_bar_and_quiet_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(display(quiet=True)) is Quiet
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    assert type(display(quiet=False)) is Lines
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert type(display(quiet=False)) is Live


def test_the_bar_shows_what_runs_what_came_out_and_the_time_left() -> None:
    from rich.console import Console

    live = Live()
    live.began("r.jsonl", "NVIDIA H200")
    live.planned(40, 400.0)
    live.started(Progress(label="attention 8192", done_s=100.0, left_s=300.0))
    live.measured(a_measurement(probe_id="g", flop_model=2.8e12))
    console = Console(width=100, record=True, file=__import__("io").StringIO())
    console.print(live._render())

    text = console.export_text()
    assert "NVIDIA H200: attention 8192, about 5 min 00 s left" in text
    assert "  g: 4 ms, 700 TFLOP/s" in text.splitlines()  # on a line of its own, below the bar

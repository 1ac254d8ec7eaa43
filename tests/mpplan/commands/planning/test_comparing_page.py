"""What docs/comparing.md shows is what the program prints."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from planner.units import TERA
from tests.planner.comparison.runs import LLAMA, TOKENS_PER_GPU
from tests.planner.comparison.test_conventions import counts_of, flop_per_token
from tests.planner.comparison.test_gap import PLAN, planned_step, timers_ms
from tests.planner.runlog.test_read import SAMPLES
from tests.planner.runlog.writers import LLAMA_8B, megatron_arguments, megatron_log, megatron_timers, text_of

PAGE = Path(__file__).parents[4] / "docs/comparing.md"
BLOCKS = re.compile(r"```console\n\$ (mpplan [^\n]+)\n(.*?)```", re.DOTALL)


def page_log() -> bytes:
    """The page's run: Llama-3-8B on 64 H100 whose loader is slow, and that was restarted once after step 3,000."""
    draw = np.random.default_rng(0)
    rate = flop_per_token(LLAMA, 8192, counts_of(LLAMA)[0]) * TOKENS_PER_GPU / TERA
    timers = megatron_timers(timers_ms(data=0.35))

    def part(lines: int, begin: int, at: object) -> tuple[list[str], object]:
        seconds = [float(s) for s in (planned_step()["total"] + 0.4) * (1.0 + 0.01 * draw.standard_normal(lines))]
        rates = [rate / s for s in seconds]
        return megatron_log(
            seconds, of=20_000, every=10, tflops=rates, begin=begin, **({} if at is None else {"at": at})
        )  # type: ignore[arg-type]

    before, at = part(300, 0, None)
    after, _ = part(200, 2900, at + timedelta(minutes=25))  # type: ignore[operator]
    return text_of(
        megatron_arguments(LLAMA_8B | {"train_iters": 20_000}),
        *([line, *timers] for line in before),
        ["  successfully loaded checkpoint from checkpoints [ t 1/1, p 1/1 ] at iteration 2900"],
        *([line, *timers] for line in after),
    )


@pytest.fixture
def folder(home):
    (home / "run.log").write_bytes(page_log())
    (home / "nemo.log").write_bytes((SAMPLES / "nemo-crash.log").read_bytes())
    (home / "plan.json").write_text(PLAN.read_text(encoding="utf-8"), encoding="utf-8")
    return home


def test_the_page_shows_what_the_program_prints(run, folder):
    blocks = BLOCKS.findall(PAGE.read_text(encoding="utf-8"))

    assert len(blocks) >= 3
    for command, shown in blocks:
        result = run(*shlex.split(command)[1:])
        assert (result.code, result.out) == (0, shown), command

"""Power beside steps: which samples count, what energy a step has, and when two logs cannot be compared."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError, UsageError
from planner.imported.formats.power import METERED_SD, NO_TIMES, UNTIMED_SD
from planner.imported.reading import ImportContext, Training
from planner.imported.source import SourceFile
from planner.imported.steps import read_steps
from tests.planner.imported.readings import context_of, reading, sample, text_file


@pytest.mark.parametrize("steps", ["megatron.log", "nanotron.log", "torchtitan.log", "steps.csv"])
def test_samples_between_the_first_step_and_the_last_give_the_energy_of_a_step(steps: str) -> None:
    (point,) = reading(sample("nvidia-smi.csv"), context_of(steps, precision="bf16")).points

    assert point.power.mean_w == pytest.approx(610.0, abs=0.5)  # 600 and 620 W; the 100 W before 10:00:10 are not in it
    assert point.energy.j_per_iteration == pytest.approx(610.0 * 2.0, rel=0.005)
    assert (point.setup.role, point.setup.precision, point.communication.world) == ("step", "bf16", 2)
    assert point.power_sd_ratio == METERED_SD


def test_without_times_all_samples_count_and_the_doubt_says_so() -> None:
    (point,) = reading(sample("nvidia-smi.csv"), context_of("hf_trainer.log")).points

    assert point.power.mean_w == pytest.approx((10 * 100.0 + 30 * 610.0) / 40)
    assert point.power_sd_ratio == UNTIMED_SD
    assert NO_TIMES in point.doubts


def test_a_log_with_a_zone_is_laid_beside_one_without_by_the_offset_alone() -> None:
    with pytest.raises(UsageError, match="have no time zone") as caught:
        reading(sample("nvidia-smi.csv"), context_of("steps.jsonl"))
    assert "--utc-offset" in str(caught.value.hint)

    (point,) = reading(sample("nvidia-smi.csv"), context_of("steps.jsonl", utc_offset_s=3600.0)).points

    assert point.power.mean_w == pytest.approx(610.0, abs=0.5)


def test_steps_of_another_hour_hold_no_samples_and_are_refused() -> None:
    with pytest.raises(InputFileError, match=r"at least 5 samples per GPU within the steps \(.* UTC\), found 0"):
        reading(sample("nvidia-smi.csv"), context_of("steps.jsonl", utc_offset_s=-3600.0))


TITAN = "[titan] 2026-11-20 10:{0} - root - INFO - step: {1}  loss:  6.0  tps: 7,585"


def test_samples_between_the_first_two_lines_of_a_log_without_durations_are_within_the_steps() -> None:
    lines = (("00:00,000", 1), ("00:40,000", 10), ("01:20,000", 20))
    logged = text_file("\n".join(TITAN.format(at, step) for at, step in lines))
    steps = read_steps(logged)

    def power(count: int) -> SourceFile:
        rows = [f"2026/11/20 10:00:{s:02d}.000, 0, 600 W" for s in range(2, 2 + count)]
        return text_file("\n".join(["timestamp, index, power.draw [W]", *rows]))

    (point,) = reading(power(6), ImportContext(training=Training(), steps=steps)).points
    assert point.power.mean_w == pytest.approx(600.0)
    with pytest.raises(InputFileError, match=r"\(2026-11-20 10:00:00 to 2026-11-20 10:01:20\), found 3"):
        reading(power(3), ImportContext(training=Training(), steps=steps))


def test_gpus_that_were_not_metered_are_a_doubt() -> None:
    (point,) = reading(sample("nvidia-smi.csv"), context_of("steps.csv", gpus=16)).points

    assert "2 of 16 GPUs were metered" in point.doubts


def test_one_gpu_with_too_few_samples_is_refused() -> None:
    rows = [f"2026/11/20 10:00:{s:02d}.000, 0, 600 W" for s in range(12, 38)]
    text = "\n".join(["timestamp, index, power.draw [W]", *rows, "2026/11/20 10:00:20.000, 1, 600 W"])

    with pytest.raises(InputFileError, match="found 1"):
        reading(text_file(text), context_of("steps.csv"))

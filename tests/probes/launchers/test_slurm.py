"""The batch script for Slurm, held against the options that its own commands list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probes.record.options import Options
from tests.probes.launchers.build import recipe

PUBLISHED = Path(__file__).parent / "published"


def directives(text: str) -> dict[str, str]:
    lines = [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]
    return dict(line.partition("=")[::2] for line in lines)


def options_of(command: str) -> set[str]:
    lines = (PUBLISHED / f"{command}-22.05.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if not line.startswith("#")}


def test_every_directive_is_an_option_of_sbatch_and_stands_before_the_first_command() -> None:
    text = recipe("slurm", nodes=2, account="ml", qos="high", time="1:00:00")
    lines = text.splitlines()

    assert set(directives(text)) <= options_of("sbatch")
    first_command = next(at for at, line in enumerate(lines) if line and not line.startswith("#"))
    assert not [line for line in lines[first_command:] if line.startswith("#SBATCH")]


def test_every_option_of_srun_is_one() -> None:
    (line,) = [line for line in recipe("slurm").splitlines() if line.startswith("srun ")]

    assert set(re.findall(r"--[a-z-]+", line)) <= options_of("srun")


def test_the_job_asks_for_whole_nodes_with_one_task_each_and_all_their_gpus() -> None:
    asked = directives(recipe("slurm", ranks=4, nodes=3, account="ml", qos="high"))

    assert asked == {
        "--job-name": "mpplan-probe",
        "--partition": "gpu",
        "--account": "ml",
        "--qos": "high",
        "--nodes": "3",
        "--ntasks-per-node": "1",
        "--gpus-per-node": "4",
        "--exclusive": "",
        "--mem": "0",
        "--time": "00:36:00",
        "--no-requeue": "",
        "--output": "mpplan-probe-%j.log",
    }


@pytest.mark.parametrize(
    ("probe", "time"),
    [
        (Options(suite="thorough", device="cuda"), "02:20:00"),  # twice an hour, and 20 minutes to start
        (Options(device="cuda", budget_s=90.0), "00:23:00"),
        (Options(device="cuda", budget_s=600.0, verify=True), "00:50:00"),
    ],
)
def test_the_time_limit_leaves_room_around_what_the_probe_takes(probe: Options, time: str) -> None:
    assert directives(recipe("slurm", probe))["--time"] == time


def test_on_cpus_no_gpu_is_asked_for() -> None:
    text = recipe("slurm", Options(device="cpu"), ranks=2)

    assert "--gpus-per-node" not in directives(text)
    assert "mpplan probe --suite default --device cpu -o" in text

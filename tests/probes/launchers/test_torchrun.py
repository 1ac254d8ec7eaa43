"""The command of one node, and a record that travels in a log."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from probes.launchers.base import ProbeJob
from probes.launchers.torchrun import PRINT_RECORD, UNPACK_RECORD, torchrun
from tests.probes.launchers.build import recipe

JOB = ProbeJob(nodes=2, ranks_per_node=8, arguments=("--suite", "quick"), limit_s=600.0, settings={})


def test_every_option_is_one_of_torchruns_own() -> None:
    run = pytest.importorskip("torch.distributed.run")
    known = {option for action in run.get_args_parser()._actions for option in action.option_strings}
    options, _, probe = torchrun(JOB, local_address='"$address"').partition("-m mpplan")

    assert set(re.findall(r"--[a-z-]+", options)) <= known
    assert probe == ' probe --suite quick -o "$record"'


def test_how_long_a_node_waits_for_the_others_can_be_said() -> None:
    assert '"is_host=$is_host,join_timeout=300,read_timeout=300"' in torchrun(JOB)
    assert '"is_host=$is_host,join_timeout=1800,read_timeout=1800"' in torchrun(JOB, join_timeout_s=1800)


@pytest.mark.skipif(sys.platform != "linux", reason="GNU base64")
def test_a_record_comes_whole_out_of_a_log_and_one_that_lost_a_line_is_an_error(tmp_path: Path) -> None:
    record = "".join(f'{{"line": {number}, "salt": {number**7}}}\n' for number in range(500))
    (tmp_path / "r.jsonl").write_text(record)
    log = bash(f"record=r.jsonl; echo measuring; {PRINT_RECORD}; echo done", "", tmp_path).splitlines(keepends=True)

    bash(UNPACK_RECORD, "".join(f"\x1b[36m(worker1, rank=1, pid=7)\x1b[0m {line}" for line in log), tmp_path)

    assert (tmp_path / "mpplan-probe.jsonl").read_text() == record
    with pytest.raises(subprocess.CalledProcessError):
        bash(UNPACK_RECORD, "".join(log[:3] + log[4:]), tmp_path)


def bash(command: str, log: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], input=log, capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout


@pytest.mark.parametrize("launcher", ["slurm", "skypilot", "kubernetes"])
def test_a_job_installs_what_the_fp8_recipes_of_a_gpu_need(launcher: str) -> None:
    assert "pip install --quiet 'mpplan[probe,float8]'" in recipe(launcher)

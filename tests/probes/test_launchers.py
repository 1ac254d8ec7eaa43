"""Every launcher: its job file is sound shell, asks torchrun for the right ranks, and brings one record back."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from planner.records.jsonl import read_measurements
from probes.launchers import LAUNCHERS
from probes.launchers.settings import SETTINGS
from probes.record.options import Options
from tests.probes.launchers.build import recipe

ROOT = Path(__file__).parents[2]
NAMES = [launcher.name for launcher in LAUNCHERS]
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="clusters run Linux: bash 4 and GNU base64")


def shells(name: str, text: str) -> list[str]:
    """The shell scripts in a job file; the last one runs the probe."""
    if name == "slurm":
        return [text]
    if name == "skypilot":
        task = yaml.safe_load(text)
        return [task["setup"], task["run"]]
    _, job = yaml.safe_load_all(text)
    return job["spec"]["template"]["spec"]["containers"][0]["args"]


def test_names_are_unique_and_settings_are_known_and_used() -> None:
    taken = {name for launcher in LAUNCHERS for name in launcher.takes}

    assert len(set(NAMES)) == len(NAMES)
    assert taken == {setting.name for setting in SETTINGS}
    assert all({need.setting for need in launcher.needs} <= set(launcher.takes) for launcher in LAUNCHERS)


@on_linux
@pytest.mark.parametrize("nodes", [1, 64])
@pytest.mark.parametrize("name", NAMES)
def test_bash_parses_every_script(name: str, nodes: int) -> None:
    for shell in shells(name, recipe(name, Options(device="cuda", precisions=("bf16",), verify=True), nodes=nodes)):
        done = subprocess.run(["bash", "-n"], input=shell, capture_output=True, text=True, check=False)

        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_torchrun_is_given_the_nodes_the_ranks_and_one_meeting_point(name: str) -> None:
    command = re.sub(r"\\\n\s*", "", shells(name, recipe(name, ranks=4, nodes=3))[-1])

    assert "python3 -m torch.distributed.run --nnodes 3 --nproc-per-node 4 " in command
    assert '--rdzv-backend c10d --rdzv-endpoint "$endpoint" --rdzv-id "$run_id" ' in command
    assert '-m mpplan probe --suite default -o "$record"' in command


@pytest.mark.parametrize("name", NAMES)
def test_a_job_touches_no_clock_and_no_power_limit(name: str) -> None:
    assert "nvidia-smi" not in recipe(name)


SAME_WAY_BACK = "kubernetes"
"""Its record comes back in the log, as SkyPilot's does; Slurm's is a file."""
STAND_INS = {
    "srun": '#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\nSLURM_NODEID=0 exec "$@"\n',
    "scontrol": "#!/bin/bash\necho localhost\n",
}
"""What a cluster of this one machine answers; everything else that the script calls is real."""


def free_port() -> int:
    for port in range(20000 + os.getpid() % 5000, 30000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("no port is free")


def environment(folder: Path, port: int) -> dict[str, str]:
    """The variables that each launcher sets, for one node which is this machine."""
    for name, text in STAND_INS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {
        "PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "OPENBLAS_NUM_THREADS": "1",
        "SLURM_JOB_ID": str(port - 20000),
        "SLURM_JOB_NODELIST": "localhost",
        "SLURM_SUBMIT_DIR": str(folder),
        "SKYPILOT_NODE_IPS": "127.0.0.1",
        "SKYPILOT_NODE_RANK": "0",
        "SKYPILOT_TASK_ID": "sky-2026-11-22-12-00-00-000000_mpplan-probe_1",
        "JOB_COMPLETION_INDEX": "0",
        "HOSTNAME": "localhost",
    }


@on_linux
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name == SAME_WAY_BACK else []) for name in NAMES]
)
def test_the_script_of_one_cpu_node_runs_and_its_record_comes_back_whole(name: str, tmp_path: Path) -> None:
    probe = Options(suite="quick", device="cpu", precisions=("fp32",), workloads=("launch",), budget_s=300.0)
    text, port = recipe(name, probe, ranks=1), free_port()
    # A machine outside the cluster has neither its names nor its volumes, and other tests may hold the port.
    replacements = {
        "mpplan-probe-0.mpplan-probe": "localhost",
        "$HOSTNAME.mpplan-probe": "localhost",
        ":29400": f":{port}",
        "record=/record/": f"record={tmp_path}/",
    }
    shell = shells(name, text)[-1]
    for pattern, instead in replacements.items():
        shell = shell.replace(pattern, instead)

    done = subprocess.run(
        ["bash", "-c", shell],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment(tmp_path, port),
        timeout=900,
    )

    assert done.returncode == 0, done.stderr
    record = tmp_path / "back" / "mpplan-probe.jsonl"
    record.parent.mkdir()
    if name == "slurm":
        (record,) = tmp_path.glob("mpplan-probe-*.jsonl")
    else:
        unpack(text, "".join(f"(head, rank=0, pid=1) {line}\n" for line in done.stdout.splitlines()), record.parent)
    lines = read_measurements(record)
    assert lines.damage == ()
    assert [line.probe_id for line in lines.measurements] == ["support/fp32", "canary", "launch/host", "canary"]


def unpack(text: str, log: str, folder: Path) -> None:
    """Do with a log what the top of the job file says."""
    (command,) = re.findall(r"^#.* logs .*? \| (sed .*)$", text, re.MULTILINE)
    subprocess.run(["bash", "-o", "pipefail", "-c", command], input=log, text=True, check=True, cwd=folder)

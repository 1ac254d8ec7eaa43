"""SkyPilot's task."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from planner.errors import UsageError
from tests.reports.launch.runs import file_of, yaml_of


def test_a_task_asks_for_the_plans_nodes_and_gpus() -> None:
    task = yaml_of("skypilot", "dense-512")

    assert (task["num_nodes"], task["resources"]["accelerators"]) == (64, "H100:8")
    assert task["resources"]["network_tier"] == "best"
    assert task["resources"]["use_spot"] is False
    assert "network_tier" not in yaml_of("skypilot", "dense")["resources"]


def test_gpus_of_amd_get_pytorchs_build_for_rocm() -> None:
    task, made = yaml_of("skypilot", "amd"), file_of("skypilot", "amd")

    assert task["resources"]["accelerators"] == "MI300X:8"
    assert "pip install --quiet torch --index-url https://download.pytorch.org/whl/rocm" in task["setup"]
    assert any("do not connect nodes" in note for note in made.notes)
    assert "pip install --quiet torch\n" in yaml_of("skypilot", "dense")["setup"]
    assert not any("connect nodes" in note for note in file_of("skypilot", "spot").notes)


def test_a_name_that_means_another_board_on_one_cloud_is_told() -> None:
    assert any("RunPod" in note and "H100-SXM" in note for note in file_of("skypilot", "dense").notes)
    assert not any("H100-SXM" in note for note in file_of("skypilot", "amd").notes)


def test_a_plan_on_spot_is_on_spot_and_says_how_it_goes_on() -> None:
    made = file_of("skypilot", "spot")

    assert "use_spot: true" in made.text
    assert any("sky jobs launch" in note for note in made.notes)


def test_strict_fp32_is_a_variable() -> None:
    assert yaml_of("skypilot", "dense", "fp32")["envs"]["NVIDIA_TF32_OVERRIDE"] == "0"


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_task_starts_torchrun_on_each_node_with_what_skypilot_says(tmp_path):
    torchrun = tmp_path / "torchrun"
    torchrun.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    torchrun.chmod(0o755)
    place = {
        "PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "TRAIN": "train.py --lr 1",
        "SKYPILOT_NUM_NODES": "2", "SKYPILOT_NODE_RANK": "1", "SKYPILOT_NUM_GPUS_PER_NODE": "8",
        "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2",
    }  # fmt: skip
    script = yaml_of("skypilot", "spot")["run"]
    done = subprocess.run(["bash", "-c", script], env=place, text=True, capture_output=True, check=True)

    assert done.stdout.strip() == (
        "--nnodes 2 --node-rank 1 --nproc-per-node 8 --master-addr 10.0.0.1 --master-port 29500 train.py --lr 1"
    )


def test_a_gpu_that_skypilot_has_no_name_for_is_refused():
    with pytest.raises(UsageError, match="the SkyPilot name of the GPU is not known"):
        file_of("skypilot", "unnamed-gpu")

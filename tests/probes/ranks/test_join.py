"""Ranks that find each other, or do not, in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.errors import UsageError
from probes.ranks.join import Arrival, mixed, place_from_environment, shared_gpu
from probes.ranks.team import Place
from probes.record.options import Options
from tests.probes.ranks.forked import held_port

ROOT = Path(__file__).parents[3]
LIMIT_S = 600.0
"""Only what hangs takes longer, however busy the machine is."""


def start(rank: int, world: int, port: int, path: Path, **changes: Any) -> subprocess.Popen[str]:
    values = {"device": "cpu", "suite": "quick", "path": str(path), "ranks": world, "join_s": LIMIT_S}
    options = Options(**(values | changes))
    placed = {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "probes.process.worker", options.to_json()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | placed,
    )  # fmt: skip


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_rank_that_never_arrives_is_named_after_the_stated_time(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with held_port() as port:
        process = start(0, 3, port, tmp_path / "r.jsonl", join_s=4.0)
        out, _ = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 4
    assert events(out)[-1] == {
        "event": "failed", "message": "node 0 rank 1, node 0 rank 2 did not arrive within 4 s",
        "hint": "look at its output; `--join-timeout` waits longer", "exit_code": 4,
    }  # fmt: skip
    assert not (tmp_path / "r.jsonl").exists()


def test_a_rank_that_cannot_take_part_says_why_through_rank_0(tmp_path: Path) -> None:
    """Rank 1 looks for a GPU that this machine does not have."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    path = tmp_path / "r.jsonl"
    with held_port() as port:
        first, second = start(0, 2, port, path), start(1, 2, port, path, device="cuda")
        out, _ = first.communicate(timeout=LIMIT_S)
        other, _ = second.communicate(timeout=LIMIT_S)

    assert (first.returncode, second.returncode) == (4, 4)
    assert events(out)[-1]["message"] == "node 0 rank 1: no NVIDIA GPU found"
    assert [event["event"] for event in events(other)] == ["follows"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device": "NVIDIA A100-SXM4-80GB"}, "node 1 rank 9 has NVIDIA A100-SXM4-80GB, rank 0 NVIDIA H200"),
        ({"torch": "2.9.1"}, "node 1 rank 9 has torch 2.9.1, rank 0 torch 2.11.0"),
        ({"driver": ""}, "node 1 rank 9 has driver none, rank 0 driver 580.1"),
        ({"mpplan": "0.2.0"}, "node 1 rank 9 has mpplan 0.2.0, rank 0 mpplan 0.3.0"),
    ],
)
def test_ranks_that_differ_are_named_with_what_differs(changes: dict[str, str], words: str) -> None:
    alike = {"device": "NVIDIA H200", "torch": "2.11.0", "driver": "580.1", "mpplan": "0.3.0"}
    arrived = [Arrival(rank=rank, **alike) for rank in range(9)] + [Arrival(rank=9, **(alike | changes))]

    assert mixed(arrived, Place(world=10, local_world=5)) == words
    assert mixed(arrived[:9], Place(world=9, local_world=9)) is None


def test_two_ranks_on_one_gpu_are_named() -> None:
    """As where each is shown the same one alone."""
    place = Place(world=4, local_world=2)
    arrived = [Arrival(rank=rank, gpu=gpu) for rank, gpu in enumerate(("a1", "b2", "c3", "c3"))]

    assert shared_gpu(arrived, place) == "node 1 rank 3 has the same GPU as rank 2"
    assert shared_gpu(arrived[:3], place) is None
    assert shared_gpu([Arrival(rank=0), Arrival(rank=1)], place) is None


def test_torchrun_says_where_a_process_is() -> None:
    environment = {"RANK": "11", "LOCAL_RANK": "3", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}

    assert place_from_environment(environment) == Place(rank=11, world=16, local_rank=3, local_world=8)
    assert place_from_environment({}) is None
    assert place_from_environment(environment | {"WORLD_SIZE": "1"}) is None


def test_nodes_with_unequal_numbers_of_ranks_are_refused() -> None:
    environment = {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "4"}

    with pytest.raises(UsageError, match="6 ranks with 4 on this node: every node must have the same number"):
        place_from_environment(environment)

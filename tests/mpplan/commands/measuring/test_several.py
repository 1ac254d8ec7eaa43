"""How many ranks a probe has."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpplan.commands.measuring.several import Several, ranks_asked_for, record_of_fewer
from planner.errors import InputFileError, UsageError
from tests.planner.fleet.fleets import ranks_point
from tests.planner.recorded import write_record

TORCHRUN = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "RANK": "9", "LOCAL_RANK": "1"}


@pytest.fixture(autouse=True)
def without_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TORCHRUN:
        monkeypatch.delenv(name, raising=False)


def asked(
    ranks: int | None = None, nnodes: int = 1, endpoint: str | None = None, join: str = "2m", gpu_index: int = 0
) -> Several:
    return ranks_asked_for(ranks, nnodes, endpoint, join, gpu_index)


def test_without_flags_one_process_measures_one_device() -> None:
    assert asked() == Several(ranks=1, nnodes=1, rdzv_endpoint=None, join_s=120.0)


def test_the_flags_say_ranks_nodes_and_where_these_meet() -> None:
    several = asked(8, 4, "node01:29500", "30s")

    assert several == Several(ranks=8, nnodes=4, rdzv_endpoint="node01:29500", join_s=30.0)


def test_torchrun_says_it_better_than_any_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)

    assert asked() == Several(ranks=8, nnodes=2, rdzv_endpoint=None, join_s=120.0, rank=9)
    assert asked(8, 2).rank == 9
    with pytest.raises(UsageError, match="torchrun has started 8 ranks on each of 2 nodes already"):
        asked(4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ranks": 8, "nnodes": 2}, "--nnodes 2 needs --rdzv-endpoint"),
        ({"nnodes": 2, "endpoint": "node01:29500"}, "--nnodes 2 needs --ranks"),
        ({"ranks": 8, "endpoint": "node01"}, "--rdzv-endpoint: expected HOST:PORT, found `node01`"),
        ({"ranks": 8, "endpoint": "node 01:29500"}, "--rdzv-endpoint: expected HOST:PORT"),
        ({"ranks": 8, "gpu_index": 3}, "--gpu-index selects a single GPU"),
        ({"ranks": 8, "join": "soon"}, "--join-timeout"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        asked(**changes)  # type: ignore[arg-type]


def recorded(folder: Path, ranks: int, **keys: object) -> Path:
    """A record of ranks that trained by themselves."""
    line = ranks_point(1, [0.1] * ranks, **({"device_kind": "cpu", "device_name": "Xeon"} | keys))
    return write_record(folder / "r.jsonl", line)


def test_a_record_of_fewer_ranks_predicts_those_of_more(tmp_path: Path) -> None:
    path = recorded(tmp_path, 2)

    assert record_of_fewer(str(path), asked(4), "cpu") == str(path)


@pytest.mark.parametrize(
    ("ranks", "kind", "keys", "words"),
    [
        (2, "cpu", {}, "world: expected fewer ranks than the 2 of this run, found 2"),
        (4, "cuda", {}, "device_kind: expected `cuda`, found `cpu`"),
        (4, "cpu", {"parallel": "ddp"}, "parallel: expected steps of several ranks, found none"),
    ],
)
def test_a_record_that_predicts_no_step_of_more_ranks_is_refused(
    tmp_path: Path, ranks: int, kind: str, keys: dict[str, object], words: str
) -> None:
    with pytest.raises(InputFileError, match=words) as caught:
        record_of_fewer(str(recorded(tmp_path, 2, **keys)), asked(ranks), kind)
    assert caught.value.hint


def test_one_rank_or_no_file_is_a_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="predicts steps of several ranks"):
        record_of_fewer(str(recorded(tmp_path, 2)), asked(), "cpu")
    with pytest.raises(UsageError, match="cannot read"):
        record_of_fewer(str(tmp_path / "none.jsonl"), asked(4), "cpu")


def test_only_rank_0_reads_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not be on the other nodes."""
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)

    assert record_of_fewer("/nowhere/r.jsonl", asked(), "cuda") == "/nowhere/r.jsonl"

"""Ranks that decide together: four real processes over gloo."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from probes.ranks.team import ALONE, Place, Team, kinds_of_groups
from tests.probes.ranks.forked import forking


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of four ranks found out."""
    pytest.importorskip("torch")
    out = tmp_path_factory.mktemp("team") / "told.json"
    command = ["-m", "tests.probes.ranks.tell", str(out)]
    with forking(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as ranks:
        _, stderr = ranks.communicate(timeout=600)
    assert ranks.returncode == 0, stderr[-4000:]
    answers: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    return answers


def test_all_go_by_what_rank_0_decided(told: list[dict[str, Any]]) -> None:
    assert [rank["agreed"] for rank in told] == [True] * 4
    assert [rank["of_first"] for rank in told] == [10.0] * 4
    assert [rank["shared"] for rank in told] == [{"from": 0}] * 4


def test_what_is_gathered_is_in_the_order_of_ranks(told: list[dict[str, Any]]) -> None:
    assert [rank["rank"] for rank in told] == [0, 1, 2, 3]
    assert [rank["maxima"] for rank in told] == [[3.0, 0.0]] * 4


def test_more_numbers_than_are_compared_at_once_are_compared_too(told: list[dict[str, Any]]) -> None:
    assert [rank["many"] for rank in told] == [[float(i) for i in range(150)]] * 4


def test_a_rank_that_fails_meets_the_others_wherever_they_are(told: list[dict[str, Any]]) -> None:
    assert [rank["failures"] for rank in told] == [[None, None, "no memory", None]] * 4
    assert [rank["no_failures"] for rank in told] == [[None] * 4] * 4


def test_neighbours_and_distant_ranks_form_the_groups_of_tensor_and_data_parallelism(
    told: list[dict[str, Any]],
) -> None:
    assert [rank["groups"]["world"] for rank in told] == [[0, 1, 2, 3]] * 4
    assert [rank["groups"]["tp2"] for rank in told] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert [rank["groups"]["dp2"] for rank in told] == [[0, 2], [1, 3], [0, 2], [1, 3]]


def test_a_sample_is_that_of_the_slowest_rank_and_each_keeps_its_own(told: list[dict[str, Any]]) -> None:
    """Rank 1 rests 300 ms, the others 5: so far apart that of nine rests one is shorter on any machine."""
    assert all(rank["samples_s"] == told[0]["samples_s"] for rank in told)
    assert min(told[0]["samples_s"]) >= 0.3
    assert min(told[1]["own_s"]) >= 0.3
    assert min(min(told[rank]["own_s"]) for rank in (0, 2, 3)) < 0.3


def test_clocks_of_one_node_agree(told: list[dict[str, Any]]) -> None:
    assert abs(told[0]["apart_s"]) < 1.0
    assert [rank["agreeing"] for rank in told] == [None] * 4


def test_the_rank_whose_clock_disagrees_is_named(told: list[dict[str, Any]]) -> None:
    words = "the clock of node 0 rank 2 is +3600 s from rank 0's: times of day differ, durations do not"

    assert [rank["an_hour_ahead"] for rank in told] == [words] * 4


def test_ranks_that_cannot_reach_each_other_go_on_alone() -> None:
    team = Team(Place(rank=1, world=2, local_rank=1, local_world=2), "gloo", control=object())

    assert team.part("the network is gone") == "node 0 rank 1: the network is gone"
    assert (team.agree(True), team.gather(3), team.maxima([2.0]), team.shared(4)) == (True, [3], [2.0], 4)


def test_a_process_alone_decides_by_itself() -> None:
    assert (ALONE.agree(True), ALONE.agree(False), ALONE.gather(3), ALONE.maxima([2.0])) == (True, False, [3], [2.0])
    assert (ALONE.size, ALONE.leads, ALONE.world().ranks) == (1, True, (0,))


def test_on_several_nodes_groups_are_of_a_node_or_across_them() -> None:
    place = Place(rank=0, world=16, local_rank=0, local_world=8)

    assert kinds_of_groups(place) == [
        ("world", 16, 1), ("node", 8, 1), ("cross", 2, 8),
        ("tp2", 2, 1), ("tp4", 4, 1), ("dp4", 4, 4), ("dp8", 8, 2),
    ]  # fmt: skip
    assert (place.nodes, place.name_of(11)) == (2, "node 1 rank 11")


def test_groups_that_do_not_divide_the_ranks_are_refused() -> None:
    with pytest.raises(ValueError, match="1 ranks do not divide into groups of 2 that are 1 apart"):
        Team().group("tp2", 2)


def test_a_rank_of_512_makes_its_own_group_of_each_kind_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    dist = pytest.importorskip("torch.distributed")
    made: list[list[int]] = []
    monkeypatch.setattr(dist, "new_group", lambda ranks, **_: made.append(ranks))
    place = Place(rank=77, world=512, local_rank=5, local_world=8)
    team = Team(place, "nccl", control=object())

    kinds = kinds_of_groups(place)
    for kind in kinds[1:]:
        team.group(*kind)

    assert len(made) == len(kinds) - 1 < 20  # of the 1,020 groups that all ranks make together
    assert all(77 in ranks for ranks in made)
    assert {len(ranks) for ranks in made} == {2, 4, 8, 16, 32, 64, 128, 256}

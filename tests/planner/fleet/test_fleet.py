"""The records of a fleet as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import InputFileError, UsageError
from planner.fleet.fleet import join
from planner.fleet.records import open_records
from planner.records.check import check_record
from planner.records.jsonl import read_measurements, to_line
from tests.planner.fleet.fleets import Gpu, by_id, joined, points, ranks_point, write_fleet
from tests.planner.recorded import H200, a_measurement, write_record

EIGHT = (Gpu(),) * 8


def test_the_merged_record_is_one_run_on_one_device_and_can_be_trusted(tmp_path):
    fleet = joined(tmp_path, *EIGHT)
    written = tmp_path / "fleet.jsonl"
    written.write_text("".join(to_line(line) + "\n" for line in fleet.measurements), encoding="utf-8")

    file = read_measurements(written)

    assert file.measurements == fleet.measurements
    assert file.problems == ()
    assert check_record(file).trustworthy
    assert {(line.run_id, line.device.uuid_hash) for line in fleet.measurements} == {
        (fleet.measurements[0].run_id, None)
    }
    assert [line.seq for line in fleet.measurements] == list(range(13))


def test_the_same_members_make_the_same_run_and_others_another(tmp_path):
    first = joined(tmp_path, *EIGHT).measurements[0].run_id

    assert joined(tmp_path, *EIGHT).measurements[0].run_id == first
    assert joined(tmp_path, *EIGHT, left_out=("node02",)).measurements[0].run_id != first


def test_a_member_that_is_left_out_is_in_no_line_and_still_judged(tmp_path):
    fleet = joined(tmp_path, *EIGHT, Gpu(slower=1.1), left_out=("node09",))

    assert by_id(fleet, "gemm/10").time.median_s == pytest.approx(0.01)
    assert "node09" not in by_id(fleet, "gemm/10").ranks.names
    assert (fleet.kept, fleet.members[8].left_out) == (8, True)
    (outlier,) = fleet.outliers
    assert (outlier.name, outlier.left_out, outlier.cost.gpus) == ("node09", True, 9)
    assert outlier.cost.cost_ratio == pytest.approx(1.1)


@pytest.mark.parametrize(("left_out", "words"), [
    (("node9",), "no member is called `node9`"),
    (("node01", "node02", "node03", "node04", "node05", "node06", "node07"), "of 8 members 1 is left"),
])  # fmt: skip
def test_names_that_are_unknown_or_leave_nobody_are_refused(tmp_path, left_out, words):
    with pytest.raises(UsageError, match=words) as caught:
        joined(tmp_path, *EIGHT, left_out=left_out)
    assert caught.value.hint


def test_one_record_of_one_gpu_is_no_fleet_and_one_of_several_ranks_is(tmp_path):
    with pytest.raises(UsageError, match="there is one member"):
        joined(tmp_path, Gpu())
    path = write_record(tmp_path / "node.jsonl", ranks_point(1, [0.1, 0.2]))

    assert join(open_records([path])).kept == 2


def without_points(folder, number: int, *probe_ids: str, **gpu: float):
    kept = [point for point in points(number, Gpu(**gpu)) if point.probe_id not in probe_ids]
    return write_record(folder / f"node{number:02d}.jsonl", *kept)


def test_a_point_that_few_lack_is_kept_while_the_slowest_has_it_and_both_is_said(tmp_path):
    paths = [*write_fleet(tmp_path, Gpu(), Gpu(slower=1.01)), without_points(tmp_path, 3, "gemm/5")]

    fleet = join(open_records(paths))

    assert by_id(fleet, "gemm/5").reason == "slowest of 2: node02; not measured by node03"
    (missing,) = fleet.missing
    assert (missing.probe_id, missing.kept, missing.lacking) == (
        "gemm/5", True, (("node03", "not in the record"),),
    )  # fmt: skip


def test_a_point_that_the_slowest_lacks_is_left_out_since_nobody_knows_its_time(tmp_path):
    paths = [*write_fleet(tmp_path, Gpu(), Gpu()), without_points(tmp_path, 3, "gemm/5", slower=1.2)]

    fleet = join(open_records(paths))

    assert "gemm/5" not in [line.probe_id for line in fleet.measurements]
    assert [(missing.probe_id, missing.kept) for missing in fleet.missing] == [("gemm/5", False)]


def test_a_contended_reading_is_set_aside_where_the_others_are_enough(tmp_path):
    paths = write_fleet(tmp_path, Gpu(), Gpu(), Gpu())
    lines = points(4, Gpu())
    lines[5] = a_measurement(**(H200 | {
        "probe_id": "gemm/5", "run_id": "run-4", "device_hash": f"{4:012x}", "time_median_s": 0.05,
        "time_ci_low_s": 0.05, "time_ci_high_s": 0.05, "quality": "contended", "torch_version": "2.9.0",
    }))  # fmt: skip

    fleet = join(open_records([*paths, write_record(tmp_path / "node04.jsonl", *lines)]))

    assert by_id(fleet, "gemm/5").time.median_s == pytest.approx(0.005)
    assert fleet.missing[0].lacking == (("node04", "measured while something else ran"),)


def test_where_everybody_was_contended_the_slowest_counts_and_says_so(tmp_path):
    fleet = joined(tmp_path, *[Gpu(changes={"quality": "contended"})] * 3)

    assert by_id(fleet, "gemm/5").sampling.quality == "contended"
    assert fleet.missing == ()


def test_what_runs_out_of_memory_on_one_member_does_so_in_the_fleet(tmp_path):
    paths = write_fleet(tmp_path, Gpu(), Gpu())
    lines = [point for point in points(3, Gpu()) if point.probe_id != "gemm/5"]
    oom = a_measurement(**(H200 | {"probe_id": "gemm/5", "run_id": "run-3", "device_hash": f"{3:012x}",
                                   "status": "oom", "reason": "out of memory", "time_median_s": None}))  # fmt: skip

    fleet = join(open_records([*paths, write_record(tmp_path / "node03.jsonl", *lines, oom)]))

    assert (by_id(fleet, "gemm/5").status, by_id(fleet, "gemm/5").reason) == ("oom", "in node03: out of memory")
    assert fleet.missing[0].lacking == (("node03", "oom: out of memory"),)


def node_of_ranks(folder, number: int, slower: float = 1.0, world: int = 4):
    """A node whose ranks are alike by themselves, and whose collectives may be slow."""
    alone_points = [ranks_point(number, [0.1] * world, probe_id=f"alone/{i}") for i in range(3)]
    joint = [
        ranks_point(
            number, [0.01 * slower] * world, probe_id=f"collective/{i}", kind="collective", parallel=None,
            op="all_reduce", group="world", backend="nccl", bytes=2.0**20,
        )
        for i in range(3)
    ]  # fmt: skip
    return write_record(folder / f"node{number:02d}.jsonl", *alone_points, *joint)


def test_a_node_whose_links_are_slow_is_named_as_a_whole(tmp_path):
    paths = [node_of_ranks(tmp_path, number) for number in range(1, 8)]

    fleet = join(open_records([*paths, node_of_ranks(tmp_path, 8, slower=1.5)]))

    (outlier,) = fleet.outliers
    assert (outlier.name, outlier.why[0].id) == ("node08", "slow_together")
    assert outlier.why[0].what == "50.0% slower than the median at 3 points of several ranks"
    assert (outlier.cost.cost_ratio, outlier.cost.gpus) == (pytest.approx(1.5), 32)
    line = by_id(fleet, "collective/0")
    assert (line.communication.op, line.communication.world, len(line.ranks.names)) == ("all_reduce", 4, 32)


def test_collectives_with_a_rank_that_is_left_out_are_not_used(tmp_path):
    paths = [node_of_ranks(tmp_path, number) for number in (1, 2, 3)]

    fleet = join(open_records(paths), ("node02: node 0 rank 1",))

    assert len(by_id(fleet, "alone/0").ranks.names) == 11
    assert len(by_id(fleet, "collective/0").ranks.names) == 8
    assert fleet.missing[0].lacking == (("node02", "measured together with a member that is left out"),)


def test_a_record_can_be_left_out_with_all_of_its_ranks(tmp_path):
    paths = [node_of_ranks(tmp_path, number) for number in (1, 2, 3)]

    assert join(open_records(paths), ("node02",)).kept == 8


def test_nodes_with_other_numbers_of_ranks_are_refused(tmp_path):
    paths = [node_of_ranks(tmp_path, 1), node_of_ranks(tmp_path, 2, world=2)]

    with pytest.raises(InputFileError, match=r"node02.jsonl: world: `collective/0`: expected 4 .*, found 2"):
        join(open_records(paths))


def test_records_that_share_no_point_are_refused(tmp_path):
    first = write_record(tmp_path / "a.jsonl", *points(1, Gpu())[:3])
    second = write_record(tmp_path / "b.jsonl", *points(2, Gpu())[5:])

    with pytest.raises(InputFileError, match="expected points that the other records have"):
        join(open_records([first, second]))


def rack(folder: Path, number: int, *gpus: Gpu) -> Path:
    """The merged record of GPUs that no other rack has."""
    distinct = [
        replace(gpu, changes={"run_id": f"run-{number}-{i}", "device_hash": f"gpu-{number}-{i}"} | gpu.changes)
        for i, gpu in enumerate(gpus)
    ]
    return write_record(folder / f"rack{number}.jsonl", *joined(folder / str(number), *distinct).measurements)


def test_a_merged_record_can_be_merged_again(tmp_path):
    first = rack(tmp_path, 1, Gpu(), Gpu(power_w=660.0))
    second = rack(tmp_path, 2, Gpu(), Gpu(), Gpu(slower=1.2))

    hall = join(open_records([first, second]))

    line = by_id(hall, "gemm/10")
    assert line.ranks.names[-1] == "rack2: node03"
    assert line.time.median_s == pytest.approx(0.012)
    assert line.power.mean_w == pytest.approx(612.0)  # (4 × 600 + 660) / 5
    assert line.merged.device_hashes == ("gpu-1-0", "gpu-1-1", "gpu-2-0", "gpu-2-1", "gpu-2-2")


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"run_id": "run-1-1"}, "contains the same run as"), ({"device_hash": "gpu-1-0"}, "is of the same GPU as")],
)
def test_a_record_that_a_merged_one_has_already_is_refused(tmp_path, changes, words):
    merged = rack(tmp_path, 1, Gpu(), Gpu())
    (repeated,) = write_fleet(tmp_path / "again", Gpu(changes=changes))

    for paths in ([merged, repeated], [repeated, merged]):
        with pytest.raises(UsageError, match=words) as caught:
            open_records(paths)
        assert "rack1.jsonl` is a merged record" in str(caught.value.hint)


def test_a_record_that_a_merged_one_of_merged_ones_has_already_is_refused(tmp_path):
    racks = [rack(tmp_path, number, Gpu(), Gpu()) for number in (1, 2)]
    hall = write_record(tmp_path / "hall.jsonl", *join(open_records(racks)).measurements)

    with pytest.raises(UsageError, match=r"rack2.jsonl` contains the same run as .*hall.jsonl"):
        open_records([hall, racks[1]])

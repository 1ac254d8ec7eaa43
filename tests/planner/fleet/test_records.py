"""Which records can be joined, and what is said of those that cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputFileError, UsageError
from planner.fleet.records import doubt_warnings, open_records, shortlist, version_warnings
from tests.planner.fleet.fleets import Gpu, points, ranks_point, write_fleet
from tests.planner.recorded import write_record


def refused(folder: Path, **changes: object) -> str:
    """What is said where the second record has these keys."""
    paths = write_fleet(folder, Gpu(), Gpu(changes=changes))
    with pytest.raises(InputFileError) as caught:
        open_records(paths)
    assert caught.value.hint is not None
    return str(caught.value).replace(f"{folder}/", "")


def test_members_are_named_after_their_files_and_ranks_after_both(tmp_path):
    single_gpu = write_record(tmp_path / "node01.jsonl", *points(1, Gpu()))
    two_ranks = write_record(tmp_path / "node02.jsonl", ranks_point(2, [0.1, 0.2]))

    records = open_records([single_gpu, two_ranks])

    assert [record.members for record in records] == [
        ("node01",),
        ("node02: node 0 rank 0", "node02: node 0 rank 1"),
    ]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    paths = [write_record(tmp_path / f"node{i}" / "record.jsonl", *points(i, Gpu())) for i in (1, 2)]

    assert [record.name for record in open_records(paths)] == ["node1-record", "node2-record"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device_name": "NVIDIA H100 80GB HBM3"},
         "node02.jsonl:1: device_name: expected `NVIDIA H200` as in node01.jsonl, found `NVIDIA H100 80GB HBM3`"),
        ({"memory_total_bytes": 75e9},
         "node02.jsonl:1: memory_total_bytes: expected `150754820096` as in node01.jsonl, found `75000000000`"),
        ({"suite_version": 2}, "node02.jsonl:1: suite_version: expected `1` as in node01.jsonl, found `2`"),
        ({"mig": True}, "node02.jsonl:1: mig: expected `False` as in node01.jsonl, found `True`"),
        ({"imported_tool": "nvidia-smi"},
         "node02.jsonl:1: imported_tool: expected a record that mpplan measured, found one imported from nvidia-smi"),
    ],
)  # fmt: skip
def test_a_record_of_something_else_is_refused_with_both_files_named(tmp_path, changes, words):
    assert refused(tmp_path, **changes) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"run_id": "run-1"}, "contains the same run as"), ({"device_hash": f"{1:012x}"}, "is of the same GPU as")],
)
def test_the_same_record_or_gpu_twice_is_refused(tmp_path, changes, words):
    with pytest.raises(UsageError, match=words):
        open_records(write_fleet(tmp_path, Gpu(), Gpu(changes=changes)))


def test_a_file_given_twice_is_refused(tmp_path):
    (path,) = write_fleet(tmp_path, Gpu())

    with pytest.raises(UsageError, match="two records are called"):
        open_records([path, path])


def test_an_empty_record_a_folder_and_a_missing_file_are_refused(tmp_path):
    (path,) = write_fleet(tmp_path, Gpu())
    empty = tmp_path / "empty.jsonl"
    empty.touch()

    with pytest.raises(InputFileError, match=r"empty\.jsonl: no usable line"):
        open_records([path, empty])
    with pytest.raises(InputFileError, match="expected a file, found a directory"):
        open_records([path, tmp_path])
    with pytest.raises(UsageError, match="cannot read"):
        open_records([path, tmp_path / "none.jsonl"])


def test_a_lower_limit_makes_no_other_gpu(tmp_path):
    records = open_records(write_fleet(tmp_path, Gpu(), Gpu(power_limit_w=450.0)))

    assert [record.stored.gpu for record in records] == ["h200-sxm-141gb", "h200-sxm-141gb"]


def test_other_software_is_said_with_who_has_it(tmp_path):
    records = open_records(write_fleet(tmp_path, Gpu(), Gpu(), Gpu(changes={"torch_version": "2.10.0"})))

    assert version_warnings(records) == [
        "torch is not the same everywhere, which may explain part of a difference: 2.9.0 in node01, node02; "
        "2.10.0 in node03"
    ]


def test_a_damaged_line_and_a_doubtful_record_are_named(tmp_path):
    paths = write_fleet(tmp_path, Gpu(), Gpu(changes={"quality": "throttled"}))
    with paths[0].open("a", encoding="utf-8") as file:
        file.write('{"schema":"mpplan.pro')

    warnings = doubt_warnings(open_records(paths))

    assert warnings[0].endswith(
        "node01.jsonl:14: expected one JSON object, the line is cut off; the other lines are used"
    )
    assert warnings[1] == "node02 cannot be trusted: 13 points measured while the device slowed itself down"


def test_a_long_list_of_names_is_cut():
    assert shortlist(["a", "b", "c"], 2) == "a, b and 1 more"

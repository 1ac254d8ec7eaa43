"""One table of nccl-tests: which collective it is of, and what must agree in its rows."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError
from planner.measured.network.rows import ROOTED, read_header

HEADER = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"


def table(*rows: str):
    read = read_header("nccl.txt:5", HEADER)
    for number, row in enumerate(rows, 6):
        read.read(f"nccl.txt:{number}", row.split())
    return read


@pytest.mark.parametrize(
    ("row", "ranks", "collective"),
    [
        # 1 GiB in 10 ms are 107.37 GB/s; of 16 ranks busbw is 1.875, 0.9375 or 1 times that (doc/PERFORMANCE.md)
        ("1073741824 268435456 float sum -1 10000 107.37 201.33 0 10000 107.37 201.33 0", 16, "all_reduce"),
        ("1073741824 268435456 float sum -1 10000 107.37 100.66 0 10000 107.37 100.66 0", 16, "reduce_scatter"),
        ("1073741824 268435456 float none -1 10000 107.37 100.66 0 10000 107.37 100.66 0", 16, "all_gather"),
        ("1073741824 268435456 float none -1 10000 107.37 100.66 0 10000 107.37 100.66 N/A", 16, "alltoall"),
        ("1073741824 268435456 float sum -1 10000 107.37 107.37 0 10000 107.37 107.37 N/A", 16, "sendrecv"),
        ("1073741824 268435456 float none 0 10000 107.37 107.37 0 10000 107.37 107.37 0", 16, ROOTED),
        ("1073741824 268435456 float sum 3 10000 107.37 107.37 0 10000 107.37 107.37 0", 16, ROOTED),
        # of 2 ranks an all-reduce and a send have the same factor: only the first is checked in place
        ("1073741824 268435456 float sum -1 10000 107.37 107.37 0 10000 107.37 107.37 0", 2, "all_reduce"),
        ("1073741824 268435456 float sum -1 10000 107.37 107.37 0 10000 107.37 107.37 N/A", 2, "sendrecv"),
    ],
)
def test_a_collective_is_known_by_its_factor_its_operation_its_root_and_what_was_checked(row, ranks, collective):
    assert table(row).collective_of(ranks) == collective


def test_a_time_and_bandwidths_that_disagree_are_refused_with_their_line():
    read = table("1073741824 268435456 float sum -1 20000 107.37 201.33 0 20000 107.37 201.33 0")

    with pytest.raises(InputFileError, match=r"^nccl.txt:6: algbw: expected 53.69 GB/s with 16 GPUs in all_reduce"):
        read.check("all_reduce", 16)


def test_ranks_that_are_missing_show_in_the_bus_bandwidth():
    read = table("1073741824 268435456 float sum -1 10000 107.37 201.33 0 10000 107.37 201.33 0")

    read.check("all_reduce", 16)
    with pytest.raises(InputFileError, match=r"busbw: expected 187.9 GB/s with 8 GPUs in all_reduce, found 201.33"):
        read.check("all_reduce", 8)

"""Output of nccl-tests, of several versions, whole and damaged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.errors import InputFileError, UsageError
from planner.measured.network.runs import read_nccl_tests
from tests.planner.nccl_output import FOOTER, H100, HEADER, output, rank_lines, row

OLD = """\
# nThread 1 nGpus 4 minBytes 8388608 maxBytes 33554432 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid  41234 on     gpu-07 device  0 [0x07] Tesla V100-SXM2-16GB
#   Rank  1 Pid  41234 on     gpu-07 device  1 [0x0a] Tesla V100-SXM2-16GB
#   Rank  2 Pid  41234 on     gpu-07 device  2 [0x47] Tesla V100-SXM2-16GB
#   Rank  3 Pid  41234 on     gpu-07 device  3 [0x4e] Tesla V100-SXM2-16GB
#
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     8388608       2097152   float     sum    115.0   72.94  109.42  5e-07    114.8   73.07  109.61  5e-07
    16777216       4194304   float     sum    210.0   79.89  119.84  5e-07    209.9   79.93  119.89  5e-07
    33554432       8388608   float     sum    400.0   83.89  125.83  5e-07    399.8   83.93  125.89  5e-07
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 118.4
#
"""
"""As versions of 2019 to 2021 print it: no group, no root, no name, errors instead of counts."""


def steady(size: float) -> float:
    """40 us and 100 GB/s."""
    return 4e-5 + size / 100e9


def read(folder: Path, text: str):
    file = folder / "nccl.txt"
    file.write_text(text, encoding="utf-8")
    return read_nccl_tests(file)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(InputFileError) as caught:
        read(folder, text)
    assert caught.value.hint
    return str(caught.value.message)


def test_ranks_nodes_sizes_and_times_are_read_as_printed(tmp_path):
    (run,) = read(tmp_path, output("all_reduce", 2, 8, steady, sizes=(2**20, 2**30)))

    assert (run.collective, run.ranks, run.nodes, run.ranks_per_node) == ("all_reduce", 16, 2, 8)
    assert run.device_name == H100
    assert run.sizes_bytes.tolist() == [1048576.0, 1073741824.0]
    assert run.times_s.tolist() == pytest.approx([50.49e-6, 10777.4e-6])  # 40 + 10.49 us and 40 + 10737.4 us
    assert run.spread_ratio == 0.0


def test_a_version_of_2021_is_read_without_group_root_and_name(tmp_path):
    (run,) = read(tmp_path, OLD)

    assert (run.collective, run.ranks, run.nodes) == ("all_reduce", 4, 1)  # busbw over algbw is 1.5 = 2 x 3/4
    assert run.times_s.tolist() == pytest.approx([115e-6, 210e-6, 400e-6])


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"])
@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_a_version_that_prints_no_name_is_known_by_its_columns(tmp_path, collective, nodes):
    (run,) = read(tmp_path, output(collective, nodes, 2, steady, named=False))

    assert run.collective == collective


def test_without_a_check_two_collectives_print_the_same_and_the_line_that_tells_them_is_asked_for(tmp_path):
    text = output("all_gather", 2, 8, steady, named=False, checked=False)

    assert "cannot tell all_gather from alltoall" in refused(tmp_path, text)
    (run,) = read(tmp_path, "# Collective test starting: all_gather_perf\n" + text)
    assert run.collective == "all_gather"


def test_runs_that_follow_one_another_stay_apart_and_repeated_ones_are_merged(tmp_path):
    repeated = output("all_reduce", 2, 8, lambda size: 1.1 * steady(size))
    text = output("all_reduce", 2, 8, steady) + "done\n" + output("all_gather", 4, 8, steady) + repeated
    all_reduce, all_gather = read(tmp_path, text)

    assert (all_gather.collective, all_gather.nodes, all_gather.spread_ratio) == ("all_gather", 4, 0.0)
    assert all_reduce.times_s[-1] == pytest.approx(1.05 * steady(2**33), rel=1e-3)  # the median of two
    assert all_reduce.spread_ratio == pytest.approx(0.0674, rel=0.05)  # ln(1.1) / sqrt(2)


def test_empty_messages_labels_of_launchers_and_debug_output_are_passed_over(tmp_path):
    text = output("all_gather", 2, 8, steady, sizes=(2**20, 2**30))
    empty = "  0  0  float  none  -1  0.25  0.00  0.00  0  0.24  0.00  0.00  0\n"
    text = text.replace(HEADER, HEADER + empty)
    text = text.replace(FOOTER, "host-0:6800:6911 [0] NCCL INFO comm 0x55 destroyed\n" + FOOTER)
    (plain,) = read(tmp_path, text)
    (labelled,) = read(tmp_path, "".join(f"[1,0]<stdout>:{line}" for line in text.splitlines(keepends=True)))
    (numbered,) = read(tmp_path, "".join(f" 0: {line}" for line in text.splitlines(keepends=True)))

    assert plain.sizes_bytes.tolist() == [2.0**20, 2.0**30]
    assert labelled.times_s.tolist() == numbered.times_s.tolist() == plain.times_s.tolist()


def test_columns_of_later_versions_are_found_by_name(tmp_path):
    # --per_iter_timing and a time stamp: more columns between those of the two times, and two words at the end
    text = output("all_reduce", 2, 8, steady, sizes=(2**20, 2**30))
    text = text.replace("#wrong", "#wrong   i_min   i_max   i_p99   i_cv%").replace("i_cv% \n", "i_cv%   timestamp\n")
    for size in (2**20, 2**30):
        plain = row("all_reduce", 16, size, steady(size))
        half = plain.rindex("       0", 0, len(plain) - 8) + 8
        extra = "    49.1    52.0    51.9     1.2"
        text = text.replace(plain, f"{plain[:half]}{extra}{plain[half:]}{extra}  2026-10-28 12:00:00")
    (run,) = read(tmp_path, text)

    assert run.times_s.tolist() == pytest.approx([50.49e-6, 10777.4e-6])


def test_ranks_split_into_groups_are_as_many_communicators(tmp_path):
    devices = rank_lines(2, 2)
    for rank in (1, 3):
        devices = devices.replace(f"Rank  {rank} Group  0", f"Rank  {rank} Group  1")
    (run,) = read(tmp_path, output("sendrecv", 2, 2, steady).replace(rank_lines(2, 2), devices))

    assert (run.ranks, run.nodes) == (2, 2)  # one GPU of each node


WHOLE = output("all_reduce", 2, 8, steady, sizes=(2**20, 2**25, 2**30))
BIG = row("all_reduce", 16, 2**30, steady(2**30))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: expected the table that nccl-tests prints"),
        ("PING host-0 (10.0.0.1) 56(84) bytes of data.\n64 bytes from host-0: icmp_seq=1\n", ":1: expected the table"),
        ('{"version": "2.17.6", "results": []}\n', ":1: expected the table"),
        (WHOLE.replace(FOOTER, ""), ":24: expected `# Avg bus bandwidth` below this table: the run was cut off"),
        (WHOLE[: WHOLE.index(BIG) + 70], ":28: expected 13 columns, found 7"),
        (WHOLE.replace(BIG, BIG[:-6] + "    12"), ":28: #wrong: expected 0, found 12: the results were wrong"),
        (WHOLE.replace(": 0 OK", ": 3 FAILED"), ":29: Out of bounds values: expected 0, found 3"),
        (WHOLE.replace(BIG, BIG.replace(" 10777.4", "     nan", 1)), ":28: time: expected a number, found `nan`"),
        (WHOLE.replace(BIG, BIG.replace(" 10777.4", "    0.00", 1)), ":28: time: expected microseconds above 0"),
        (WHOLE.replace(BIG, BIG.replace(" 10777.4", "  1e-320", 1)), ":28: time: expected microseconds above 0"),
        (WHOLE.replace(BIG, BIG.replace("10777", "17077", 1)), ":28: algbw: expected 62.88 GB/s"),
        (WHOLE.replace(HEADER, ""), ":23: expected the header of the table"),
        (WHOLE.replace(HEADER, HEADER.replace("algbw", "alg bw")), ":24: algbw: expected a column of this name"),
        (WHOLE.replace(rank_lines(2, 8), ""), ":7: expected two GPUs or more in the `# Rank` lines"),
        (WHOLE.replace(rank_lines(2, 8), rank_lines(2, 7)), ":24: busbw: expected 38.57 GB/s"),
        (WHOLE.replace("host-1", "host-0"), ":24: expected each GPU once"),
        (WHOLE.replace("host-1 device  7", "host-2 device  7"), ":24: expected as many GPUs on each node"),
        (output("all_reduce", 2, 8, steady, sizes=(2**30,)), ":26: expected messages of several sizes, found one"),
        (output("all_reduce", 2, 8, steady, sizes=()), ":24: expected rows below this header"),
        (WHOLE.replace("all_reduce_perf", "broadcast_perf"), ":24: expected all_reduce, all_gather"),
        (WHOLE.replace(FOOTER, "") + WHOLE, ":24: expected `# Avg bus bandwidth` below this table"),
    ],
)
def test_what_is_no_whole_and_right_run_is_refused_with_its_line(tmp_path, text, message):
    assert message in refused(tmp_path, text)


def test_a_binary_file_is_refused(tmp_path):
    file = tmp_path / "nccl.txt"
    file.write_bytes(b"\x7fELF\0\0")

    with pytest.raises(InputFileError, match=r"^nccl.txt:1: expected the text that nccl-tests prints, found a binary"):
        read_nccl_tests(file)


def test_a_missing_file_is_a_matter_of_usage_and_a_directory_is_no_valid_file(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        read_nccl_tests(tmp_path / "no-such-file.txt")
    with pytest.raises(InputFileError, match="expected a file, found a directory"):
        read_nccl_tests(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(WHOLE)), st.integers(0, 400), st.text(max_size=40))
def test_damaged_text_is_read_or_refused_and_never_fails_otherwise(tmp_path, start, length, instead):
    try:
        runs = read(tmp_path, WHOLE[:start] + instead.replace("\0", "") + WHOLE[start + length :])
    except InputFileError as error:
        place, runs = str(error.message).partition(" ")[0], ()
    else:
        place = "nccl.txt:1:"
    assert re.fullmatch(r"nccl\.txt:\d+:", place)
    assert all((run.times_s > 0).all() and len(run.sizes_bytes) > 1 for run in runs)


def test_a_long_log_is_read_line_by_line(tmp_path):
    noise = "host-0:6800:6911 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"
    (run,) = read(tmp_path, noise * 100_000 + WHOLE + noise * 100_000)

    assert run.ranks == 16

"""`mpplan probe`: what is asked, what is refused, and a real run on the CPU."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from mpplan.commands.measuring.probe import MOST_OFFERED, _newest_first, _used_instead
from mpplan.commands.measuring.several import Several
from planner.records.home import records_dir
from planner.records.jsonl import read_measurements
from planner.records.store import open_record, summarise
from tests.planner.recorded import a_canary, a_measurement, write_record

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
QUICK = ("probe", "--device", "cpu", "--suite", "quick", "--budget", "5m")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--suite", "huge"), "--suite: unknown suite `huge`"),
        (("--device", "tpu"), "--device: unknown device `tpu`"),
        (("--precision", "bf17"), "unknown precision `bf17`"),
        (("--workload", "gemmm"), "unknown workload `gemmm`"),
        (("--budget", "soon"), "--budget: `soon` is not a duration"),
        (("--resume",), "there is no record to continue"),
        (("--device", "cpu", "--gpu-index", "3"), "--gpu-index cannot be combined with --device cpu"),
        (("--device", "cpu", "--json", "-o", "-"), "--json and `-o -` would both print on stdout"),
        (("-o", "no/such/place.jsonl"), "cannot write `no/such/place.jsonl`"),
    ],
)
def test_a_value_that_cannot_be_is_refused_before_anything_starts(run, arguments, error) -> None:
    result = run("probe", *arguments)

    assert result.code == 2
    assert f"error: {error}" in result.err
    assert "hint: " in result.err


def test_a_record_of_a_part_is_said_not_to_take_the_place_of_the_older_one_that_measured_more(home) -> None:
    store = records_dir()
    write_record(store / "whole.jsonl", a_canary(), a_measurement(), a_measurement(probe_id="copy", kind="bandwidth"))
    day = {"timestamp_utc": "2026-11-25T12:00:00.000+00:00"}
    part = write_record(store / "part.jsonl", a_canary(**day), a_measurement(**day))
    elsewhere = write_record(home / "copy.jsonl", a_canary(**day), a_measurement(**day))

    used = [_used_instead(summarise(open_record(path)).facts) for path in (part, elsewhere, store / "whole.jsonl")]

    assert used == ["whole", "whole", None]


def test_what_is_resumed_is_the_newest_record_of_this_cpu_and_of_as_many_processes(home, monkeypatch) -> None:
    monkeypatch.setattr("probes.device.device.cpu_name", lambda: "This CPU")
    store, mine = records_dir(), {"device_name": "This CPU"}
    write_record(store / "mine.jsonl", a_measurement(**mine, timestamp_utc="2026-11-21T12:00:00.000+00:00"))
    write_record(store / "theirs.jsonl", a_measurement(timestamp_utc="2026-11-23T12:00:00.000+00:00"))
    ranks = {"rank_names": ("a rank 0", "a rank 1"), "timestamp_utc": "2026-11-24T12:00:00.000+00:00"}
    write_record(store / "ranks.jsonl", a_measurement(**mine, **ranks))

    of_ranks = (Several(ranks=n, nnodes=1, rdzv_endpoint=None, join_s=1.0) for n in (1, 2))
    (alone,), (together,) = (_newest_first("cpu", ranks) for ranks in of_ranks)

    assert (Path(alone).stem, Path(together).stem) == ("mine", "ranks")


def test_the_records_of_all_gpus_are_offered_newest_first_and_not_without_end(home) -> None:
    gpu, count = {"device_kind": "cuda", "device_name": "NVIDIA H200"}, MOST_OFFERED + 2
    for i in range(count):
        at = f"2026-11-21T{i // 60:02}:{i % 60:02}:00.000+00:00"
        write_record(records_dir() / f"r{i}.jsonl", a_measurement(**gpu, timestamp_utc=at))

    offered = _newest_first("cuda", Several(ranks=1, nnodes=1, rdzv_endpoint=None, join_s=1.0))

    assert [Path(path).stem for path in offered] == [f"r{i}" for i in range(count - 1, 1, -1)]


def test_an_existing_record_is_not_overwritten(run, home) -> None:
    (home / "r.jsonl").write_text("something\n")

    result = run("probe", "--device", "cpu", "-o", "r.jsonl")

    assert result.code == 2
    assert "`r.jsonl` exists already" in result.err
    assert (home / "r.jsonl").read_text() == "something\n"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("r.jsonl.gz", "name it `r.jsonl`"),
        ("r.gz", "name it `r.jsonl`"),
        ("r.json", "name it `r.jsonl`"),
        ("r", "name it `r.jsonl`"),
    ],
)
def test_a_record_that_grows_is_named_as_one_that_can_be_read_again(run, home, name, hint) -> None:
    result = run("probe", "--device", "cpu", "-o", name)

    assert result.code == 2
    assert f"hint: {hint}" in result.err
    assert not (home / name).exists()


def test_a_packed_record_is_not_resumed_but_left_as_it_is(run, home) -> None:
    packed = gzip.compress(b"something\n")
    (home / "r.jsonl.gz").write_bytes(packed)

    result = run("probe", "--device", "cpu", "--resume", "-o", "r.jsonl.gz")

    assert result.code == 2
    assert "error: --output: a record is not packed while it is measured" in result.err
    assert "hint: unpack it first, `gunzip r.jsonl.gz`, and name `r.jsonl`" in result.err
    assert (home / "r.jsonl.gz").read_bytes() == packed


@pytest.mark.parametrize("flag", ["--precision", "--workload"])
def test_a_list_without_a_name_is_not_taken_for_all(run, flag) -> None:
    result = run("probe", "--device", "cpu", flag, " , ")

    assert result.code == 2
    assert f"error: {flag}: expected a name, found nothing" in result.err


@needs_torch
def test_without_a_gpu_the_probe_says_so_and_offers_the_cpu(run) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    result = run("probe")

    assert result.code == 4
    assert "hint: " in result.err
    assert "`mpplan probe --device cpu`" in result.err


@needs_torch
def test_a_run_compares_precisions_and_keeps_its_record_in_the_store_and_where_it_was_told(run, home) -> None:
    asked = ("--workload", "end-to-end", "--precision", "fp32,tf32,bf16-autocast,fp8,mxfp8")
    result = run(*QUICK, *asked, "--json", "-o", "r.jsonl")

    assert result.code == 0
    document = json.loads(result.out)
    rows = {row["recipe"]: row for row in document["precisions"]}
    assert document["schema"] == "mpplan.probe-summary/1"
    assert document["gpu"] == "cpu-local"
    assert rows["fp32"]["speed_over_fp32"] == 1.0
    assert document["collectives"] == []  # one rank
    unsupported = {row["precision"] for row in document["unsupported"]}
    assert {"tf32", "fp8", "mxfp8"} <= unsupported <= {"tf32", "fp8", "mxfp8", "bf16"}  # BF16 by how slow it is
    timed = {"fp32", "bf16"} - unsupported
    assert ("bf16-autocast" in rows) is ("bf16" in timed)
    for row in (rows[recipe] for recipe in rows if recipe == "bf16-autocast"):
        assert row["speed_over_tf32"] is None
        assert row["energy_j_per_token"] is None
    record = read_measurements(home / "r.jsonl")
    steps = [point for point in record.measurements if point.kind == "end_to_end"]
    assert {point.setup.precision for point in steps} == timed
    assert all(p.numerics.loss_trace and p.memory.allocated_peak_bytes and p.energy.reason for p in steps)
    (kept,) = (home.parent / "home" / "mpplan" / "records").glob("*.jsonl")
    assert kept.read_text() == (home / "r.jsonl").read_text()


@needs_torch
def test_the_record_itself_can_go_to_stdout(run, home) -> None:
    result = run(*QUICK, "--workload", "launch", "--precision", "fp32", "-o", "-", "-q")

    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["probe_id"] for line in lines] == ["support/fp32", "canary", "launch/host", "canary"]


BUSY = """
import pathlib, sys, time

while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
while True:
    pass
"""
"""From when the record is there on: what the probe imports before takes longer than what it measures."""


@pytest.fixture
def all_cores_busy(home) -> Iterator[None]:
    command = [sys.executable, "-c", BUSY, str(home / "r.jsonl")]
    busy = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    yield
    for point in busy:
        point.kill()
        point.wait()


@needs_torch
def test_a_loaded_machine_is_said_to_be_loaded_and_the_record_is_not_trusted(run, home, all_cores_busy: None) -> None:
    arguments = ("--workload", "launch", "--precision", "fp32", "--threads", "1")

    result = run(*QUICK, *arguments, "-o", "r.jsonl", "--strict")

    record = read_measurements(home / "r.jsonl")
    timed = [point for point in record.measurements if point.time.median_s is not None]
    assert timed
    assert all((point.sampling.other_load_ratio or 0.0) > 0.4 for point in timed)
    assert "of the CPUs all along" in result.err
    assert result.code == 6

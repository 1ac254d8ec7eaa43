"""`mpplan check`: whether a record can be trusted, and what to run again."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from mpplan.commands.measuring.check import repair_hint
from planner.records.communication import RankFigures
from planner.records.home import records_dir
from planner.records.measurement import SCHEMA
from planner.records.store import open_record
from tests.planner.recorded import H200, a_canary, a_measurement, write_record


def h200(day: int, **changes: object) -> tuple:
    stamp = {"timestamp_utc": f"2026-11-{day:02d}T12:00:00.000+00:00"}
    points = [a_measurement(probe_id=f"p{i}", seq=i + 1, **(H200 | stamp | changes)) for i in range(4)]
    return a_canary(**H200, **stamp), *points


def test_a_good_record_is_said_to_be_good(run, home) -> None:
    path = write_record(home / "r.jsonl", *h200(1))

    result = run("check", str(path))

    assert (result.code, result.err) == (0, "")
    assert result.out == f"{path} can be trusted: NVIDIA H200, 5 points, 2026-11-01T12:00:00.000+00:00\n"


def test_a_contended_record_is_named_with_the_command_that_mends_it(run, home) -> None:
    path = write_record(home / "r.jsonl", *h200(1, quality="contended"))

    result = run("check", str(path))

    assert result.code == 0
    assert "cannot be trusted" in result.out
    assert "✗ 4 points measured while something else ran: p0, p1, p2, and 1 more" in result.out
    assert f"`mpplan probe --resume --workload gemm -o {path}`" in result.out


@pytest.mark.parametrize("text", ["", '{"schema": "mpplan.estimate/1"}\n', "id,model\n"], ids=["empty", "plan", "csv"])
def test_a_file_that_is_no_record_is_said_to_be_none_and_nothing_writes_over_it(run, home, text) -> None:
    (home / "other").write_text(text, encoding="utf-8")

    result = run("check", "other")

    assert result.code == 3
    assert "no usable line" in result.out
    assert "probe --resume" not in result.out + result.err
    assert "hint: records are what `mpplan probe` and `mpplan records import` write" in result.err
    assert json.loads(run("check", "other", "--json").out)["again"] is None


def test_the_command_for_a_cpu_record_names_the_cpu(run, home) -> None:
    path = write_record(home / "r.jsonl", a_canary(), a_measurement(seq=1, quality="contended"))

    assert "mpplan probe --device cpu --resume" in run("check", str(path)).out


def test_with_strict_a_record_that_is_not_to_be_trusted_is_exit_6(run, home) -> None:
    path = write_record(home / "r.jsonl", *h200(1, quality="contended"))

    result = run("check", str(path), "--strict")

    assert result.code == 6
    assert "hint: close everything else that runs" in result.err


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda text: text[:-60], ":5: expected one JSON object, the line is cut off"),
        (lambda text: text.replace(SCHEMA, "mpplan.probe/9", 1), f":1: schema: expected `{SCHEMA}`"),
        (lambda text: text.replace('"time_median_s":0.004', '"time_median_s":NaN', 1), ":1: time_median_s: expected a"),
        (lambda text: text.replace('"time_median_s":0.004', '"time_median_s":-1', 1), ":1: time_median_s: expected a"),
        (lambda text: text.replace("0d0e5f0e", "ffffffff", 1), ":1: run_id: two records in one file"),
        (lambda text: text.replace("NVIDIA H200", "NVIDIA B200", 1), ":1: device_name: measured on another device"),
    ],
    ids=["cut", "schema", "nan", "negative", "interleaved", "device"],
)
def test_a_damaged_file_is_judged_by_its_other_lines_and_exits_3(run, home, damage, named) -> None:
    path = write_record(home / "r.jsonl", *h200(1))
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")

    result = run("check", str(path))

    assert result.code == 3
    assert f"error: {path}{named}" in result.err
    assert "can be trusted: NVIDIA H200, 4 points" in result.out


def test_a_record_of_a_newer_mpplan_is_read_by_that(run, home) -> None:
    path = write_record(home / "r.jsonl", *h200(1))
    path.write_text(path.read_text(encoding="utf-8").replace(SCHEMA, "mpplan.probe/9"), encoding="utf-8")

    result = run("check", str(path))

    assert result.code == 3
    assert "hint: update mpplan to read it" in result.err


def test_what_is_only_damaged_is_not_blamed_on_other_work_and_what_is_packed_is_unpacked_first(run, home) -> None:
    lines = write_record(home / "r.jsonl", *h200(1)).read_bytes()
    (home / "cut.jsonl.gz").write_bytes(gzip.compress(lines[:-60]))

    result = run("check", "cut.jsonl.gz")

    assert "→ `gzip -dc cut.jsonl.gz > cut.jsonl`, then `mpplan probe --resume -o cut.jsonl`" in result.out
    assert "close everything else that runs" not in result.out


def test_a_record_of_several_cpu_threads_is_continued_with_as_many(tmp_path: Path) -> None:
    loud = a_measurement(kind="gemm", quality="contended", threads=4)
    record = open_record(write_record(tmp_path / "r.jsonl", loud))

    assert "--device cpu --threads 4 --resume" in repair_hint(tmp_path / "r.jsonl", record.verdict, record.file)


def test_a_record_of_one_point_has_one_point(run, home) -> None:
    path = write_record(home / "r.jsonl", *h200(1)[1:2])

    assert "NVIDIA H200, 1 point, " in run("check", str(path)).out


def test_check_as_json_holds_findings_problems_and_what_to_run(run, home) -> None:
    path = write_record(home / "r.jsonl", *h200(1, samples=3, quality="contended"))

    document = json.loads(run("check", str(path), "--json").out)

    assert document["schema"] == "mpplan.check/1"
    assert document["trustworthy"] is False
    assert [finding["id"] for finding in document["findings"]] == ["contended", "few-samples"]
    assert document["problems"] == []
    assert "mpplan probe --resume" in document["again"]


def test_what_resuming_would_keep_is_measured_anew(run, home) -> None:
    path = write_record(home / "r.jsonl", *h200(1, samples=3))  # a result to `--resume`, which measures nothing

    result = run("check", str(path))

    assert "cannot be trusted" in result.out
    assert f"measure again: `mpplan probe -o {home / 'r-again.jsonl'}`" in result.out
    assert "--resume" not in result.out


def test_a_doubt_that_leaves_a_record_good_asks_for_nothing(run, home) -> None:
    wide = a_measurement(probe_id="wide", seq=9, time_ci_low_s=0.002, time_ci_high_s=0.008, **H200)
    path = write_record(home / "r.jsonl", *h200(1), wide)

    assert "! 1 point with a confidence interval wider" in run("check", str(path)).out
    assert "→" not in run("check", str(path)).out
    assert json.loads(run("check", str(path), "--json").out)["again"] is None


def test_only_the_workloads_that_resuming_measures_again_are_named(run, home) -> None:
    wide = a_measurement(kind="attention", probe_id="w", seq=9, time_ci_low_s=0.002, time_ci_high_s=0.008, **H200)
    path = write_record(home / "r.jsonl", *h200(1, quality="contended"), wide)

    assert f"`mpplan probe --resume --workload gemm -o {path}`" in run("check", str(path)).out


def test_a_record_of_the_store_is_checked_by_its_name(run, home) -> None:
    path = write_record(records_dir() / "mine.jsonl", *h200(1))

    assert run("check", "mine").out.startswith(f"{path} can be trusted: NVIDIA H200, 5 points")
    unknown = run("check", "yours")
    assert (unknown.code, unknown.err) == (
        2, "error: no record `yours`\nhint: `mpplan records list` lists them\n",
    )  # fmt: skip


def test_a_missing_file_is_exit_2(run, home) -> None:
    result = run("check", "none.jsonl")

    assert result.code == 2
    assert "cannot read `none.jsonl`" in result.err


def test_a_fault_of_many_lines_is_told_once_and_of_very_many_lines_the_others_are_counted(run, home) -> None:
    (home / "junk.jsonl").write_text("junk\n" * 30_000, encoding="utf-8")

    result = run("check", "junk.jsonl")
    document = json.loads(run("check", "junk.jsonl", "--json").out)

    assert result.code == 3
    assert sum("✗ junk.jsonl" in line for line in result.out.splitlines()) == 2  # and that no line is usable
    assert "; also in 999 lines: 2, 3, 4, 5, 6, …" in result.out
    assert "✗ and 29,000 more" in result.out
    assert "(and 30,000 more)" in result.err
    assert (len(document["problems"]), document["problems_left_out"]) == (1001, 29_000)


def test_of_many_faults_the_first_twenty_are_named(run, home) -> None:
    good = write_record(home / "r.jsonl", *h200(1))
    line = json.loads(good.read_text().splitlines()[1])
    bad = [json.dumps(line | {"probe_id": f"b{n}", "time_median_s": -1.0 - n // 2}) for n in range(50)]
    good.write_text(good.read_text() + "\n".join(bad) + "\n", encoding="utf-8")

    lines = run("check", str(good)).out.splitlines()

    assert sum(f"✗ {good}" in line for line in lines) == 20
    assert any(line.endswith("found `-1.0`; also in 1 line: 7") for line in lines)
    assert "  ✗ and 10 more" in lines


def test_a_device_and_a_pipe_without_a_writer_are_no_records(run, home) -> None:
    os.mkfifo(home / "pipe.jsonl")

    device, pipe = run("check", "/dev/zero"), run("check", "pipe.jsonl")

    assert (device.code, device.out) == (3, "")
    assert "/dev/zero: expected a file, found a device" in device.err
    assert "no usable line" in pipe.out


def test_a_record_of_ranks_is_continued_with_as_many(tmp_path: Path) -> None:
    """Each of 2 nodes had 4."""
    names = tuple(f"node {rank // 4} rank {rank}" for rank in range(8))
    loud = replace(a_measurement(kind="collective", quality="contended"), ranks=RankFigures(names=names))
    record = open_record(write_record(tmp_path / "r.jsonl", loud))

    words = repair_hint(tmp_path / "r.jsonl", record.verdict, record.file)

    assert "mpplan probe --ranks 4 --nnodes 2 --rdzv-endpoint HOST:PORT --device cpu --resume" in words

"""`mpplan records`: what is there, which one plans rest on, and its removal."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.records.home import records_dir
from tests.planner.collective_points import collectives
from tests.planner.recorded import H200, a_canary, a_measurement, write_record

ROOT = Path(__file__).parents[4]

pytestmark = pytest.mark.usefixtures("nothing_ships")


@pytest.fixture
def store(home: Path) -> Path:
    return records_dir()


def h200(day: int, **changes: object) -> tuple:
    stamp = {"timestamp_utc": f"2026-11-{day:02d}T12:00:00.000+00:00"}
    points = [a_measurement(probe_id=f"p{i}", seq=i + 1, **(H200 | stamp | changes)) for i in range(4)]
    return a_canary(**H200, **stamp), *points


def test_without_records_the_list_says_how_to_make_one(run, store) -> None:
    result = run("records", "list")

    assert (result.code, result.out) == (0, "")
    assert "mpplan probe" in result.err


def test_the_list_marks_the_record_that_plans_rest_on(run, store) -> None:
    write_record(store / "old.jsonl", *h200(1))
    write_record(store / "new.jsonl", *h200(2))

    lines = run("records", "list").out.splitlines()

    assert lines[1].split()[:3] == ["*", "new", "h200-sxm-141gb"]
    assert lines[2].split()[:2] == ["old", "h200-sxm-141gb"]


def test_the_list_as_json_carries_the_findings(run, store) -> None:
    write_record(store / "one.jsonl", *h200(1, quality="contended"))

    document = json.loads(run("records", "list", "--json").out)

    (record,) = document["records"]
    assert document["schema"] == "mpplan.records/1"
    assert (record["gpu"], record["trustworthy"], record["used"]) == ("h200-sxm-141gb", False, False)
    assert record["findings"][0]["id"] == "contended"


def test_a_record_is_shown_point_by_point(run, store) -> None:
    write_record(store / "one.jsonl", *h200(1, flop_model=2e12))

    out = run("records", "show", "one").out

    assert "device    NVIDIA H200" in out
    assert "trusted   yes" in out
    line = next(line for line in out.splitlines() if line.startswith("p0"))
    assert line.split()[:5] == ["p0", "ok", "4", "1", "500"]  # 4 ms ± 1%, 2 TFLOP in 4 ms = 500 TFLOP/s


def test_a_record_file_is_shown_by_its_path(run, store, tmp_path) -> None:
    path = write_record(tmp_path / "copy.jsonl", *h200(1, flop_model=2e12))
    shown, missing = run("records", "show", str(path)), run("records", "show", str(tmp_path / "none.jsonl"))

    assert "device    NVIDIA H200" in shown.out
    assert (missing.code, "No such file" in missing.err) == (2, True)


def test_collectives_are_shown_as_straight_lines(run, store) -> None:
    points = collectives(lambda size: 20e-6 + size / 40e9)
    write_record(store / "ranks.jsonl", *points, *collectives(lambda size: 1e-5 + size / 3e11, group="node", nodes=1,
                                                               world=8))  # fmt: skip

    lines = run("records", "show", "ranks").out.splitlines()
    at = lines.index("collectives: time = alpha + bytes / beta, fitted over all sizes")

    assert lines[at + 1].split("  ")[0] == "op"
    assert lines[at + 2].split() == ["all_reduce", "world", "16", "2", "nccl", "21", "20", "40", "75", "0.0"]
    assert lines[at + 3].split() == ["all_reduce", "node", "8", "1", "nccl", "21", "10", "300", "525", "0.0"]


def test_collectives_as_json_carry_their_units_and_what_the_line_leaves(run, store) -> None:
    write_record(store / "ranks.jsonl", *collectives(lambda size: 20e-6 + size / 40e9))
    write_record(store / "alone.jsonl", *h200(1))

    (line,) = json.loads(run("records", "show", "ranks", "--json").out)["collectives"]

    assert line | {"latency_s": 20e-6, "bytes_per_s": 40e9, "bus_bytes_per_s": 75e9} == pytest.approx(line)
    assert {key: line[key] for key in ("op", "group", "backend", "world", "nodes", "sizes")} == {
        "op": "all_reduce", "group": "world", "backend": "nccl", "world": 16, "nodes": 2, "sizes": 21,
    }  # fmt: skip
    assert line["residual_ratio"] < 1e-9
    alone = json.loads(run("records", "show", "alone", "--json").out)
    assert (alone["schema"], alone["collectives"]) == ("mpplan.record/1", [])


def test_the_list_marks_the_record_of_a_gpu_and_that_of_its_network(run, store) -> None:
    write_record(store / "alone.jsonl", *h200(1))
    write_record(store / "ranks.jsonl", *collectives(lambda size: 20e-6 + size / 40e9))
    write_record(store / "older.jsonl", *collectives(lambda s: 2e-5 + s / 4e10, timestamp_utc="2026-11-01T00:00:00Z"))

    entries = json.loads(run("records", "list", "--json").out)["records"]

    assert {entry["name"]: entry["used"] for entry in entries} == {"alone": True, "ranks": True, "older": False}


def test_an_unknown_record_is_a_usage_error(run, store) -> None:
    result = run("records", "show", "none")

    assert result.code == 2
    assert "error: no record `none`" in result.err


def test_a_record_is_removed_when_asked_twice(run, store) -> None:
    path = write_record(store / "one.jsonl", *h200(1))

    result = run("records", "remove", "one", "--yes")

    assert (result.code, path.exists()) == (0, False)
    assert "removed one" in result.err


def test_a_record_that_is_being_measured_is_kept(run, store) -> None:
    path = write_record(store / "one.jsonl", *h200(1))
    program = (
        "import sys; from pathlib import Path; from probes.record.lock import RecordLock;"
        "lock = RecordLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as probe:
        assert probe.stdout is not None
        assert probe.stdout.readline() == b"held\n"
        result = run("records", "remove", "one", "--yes")
        probe.kill()

    assert (result.code, path.exists()) == (2, True)
    assert f"is being measured by process {probe.pid}" in result.err
    assert run("records", "remove", "one", "--yes").code == 0


@pytest.mark.parametrize(("answer", "code", "left"), [("", 2, True), ("n\n", 0, True), ("y\n", 0, False)])
def test_a_record_goes_only_where_somebody_says_so(run, store, monkeypatch, answer, code, left) -> None:
    path = write_record(store / "one.jsonl", *h200(1))
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))

    result = run("records", "remove", "one")

    assert (result.code, path.exists()) == (code, left)
    assert ("hint: `--yes` removes it without asking" in result.err) == (not answer)
    assert "interrupted" not in result.err
    assert ("kept one" in result.err) == (answer == "n\n")


@pytest.mark.parametrize(("command", "name"), [("remove", ""), ("remove", "on"), ("show", ""), ("show", "on")])
def test_part_of_a_name_or_none_of_it_chooses_no_record(run, store, command: str, name: str) -> None:
    path = write_record(store / "one.jsonl", *h200(1))

    result = run("records", command, name, *(["--yes"] if command == "remove" else []))

    assert (result.code, path.exists()) == (2, True)
    assert "hint: " in result.err


def test_the_beginning_of_a_name_is_enough_where_that_is_said(run, store) -> None:
    path = write_record(store / "one.jsonl", *h200(1))

    result = run("records", "remove", "on", "--prefix", "--yes")

    assert (result.code, path.exists()) == (0, False)


def test_of_a_record_and_its_packed_copy_each_is_named_by_its_file(run, store) -> None:
    plain = write_record(store / "one.jsonl", *h200(1))
    packed = store / "one.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))

    unclear = run("records", "remove", "one", "--yes")
    shown, gone = run("records", "show", "one.jsonl.gz"), run("records", "remove", "one.jsonl.gz", "--yes")

    assert (unclear.code, unclear.err.splitlines()[-1]) == (2, "hint: name one: one.jsonl, one.jsonl.gz")
    assert (shown.code, gone.code) == (0, 0)
    assert str(packed) in shown.out
    assert (plain.exists(), packed.exists()) == (True, False)
    assert run("records", "show", "two.jsonl").err.startswith("error: cannot read `two.jsonl`")


def test_what_is_no_record_is_listed_as_one_that_cannot_be_trusted(run, store) -> None:
    write_record(store / "one.jsonl", *h200(1))
    (store / "folder.jsonl").mkdir()
    os.mkfifo(store / "pipe.jsonl")
    (store / "gone.jsonl").symlink_to("nowhere")

    listed = run("records", "list")
    document = json.loads(run("records", "list", "--json").out)

    assert listed.code == 0
    assert {line.split()[0]: line.split()[-2] for line in listed.out.splitlines()[2:]} == {
        "folder": "no", "gone": "no", "pipe": "no",
    }  # fmt: skip
    assert "it is a directory" in listed.out
    assert "No such file or directory" in listed.out
    what = {record["name"]: record["problems"][0]["what"] for record in document["records"][1:]}
    assert what == {
        "folder": "it is a directory", "gone": "No such file or directory", "pipe": "it is a pipe",
    }  # fmt: skip
    assert run("records", "remove", "pipe", "--yes").code == 0
    assert run("records", "remove", "folder", "--yes").code == 2

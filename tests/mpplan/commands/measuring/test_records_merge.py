"""`mpplan records merge`: from a record per node to that of the fleet."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.planner.fleet.fleets import Gpu, write_fleet

FLEET = (*(Gpu(),) * 14, Gpu(slower=1.1), Gpu(temperature_c=84.0))


def nodes(folder: Path, *gpus: Gpu) -> list[str]:
    return [str(path.relative_to(folder)) for path in write_fleet(folder, *gpus)]


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_fleet_becomes_a_record_that_the_other_commands_understand(run, home) -> None:
    result = run("records", "merge", *nodes(home, *FLEET), "-o", "fleet.jsonl")

    assert (result.code, result.err) == (0, "wrote fleet.jsonl\n")
    checked = run("check", "fleet.jsonl")
    assert (checked.code, checked.out) == (
        0, "fleet.jsonl can be trusted: NVIDIA H200, 13 points, 2026-11-20T12:00:00.000+00:00\n",
    )  # fmt: skip
    planned = run(
        "estimate", "--params", "7B", "--precision", "bf16", "--gpus", "8", "--records", "fleet.jsonl", "--full"
    )
    assert planned.code == 0, planned.err
    assert "planned from your record `fleet`, at the rates of the slowest of 16 GPUs" in in_one_line(planned.out)


def test_the_answer_has_a_row_for_each_member_and_says_what_keeping_an_outlier_costs(run, home) -> None:
    out = run("records", "merge", *nodes(home, *FLEET)).out
    lines = out.splitlines()

    assert lines[0].split() == ["member", "points", "time", "W", "°C", "MHz", "limit", "W", "verdict"]
    assert lines[1].split() == ["node01", "13", "1.000", "600", "60", "1700", "700", "usual"]
    assert lines[15].split() == ["node15", "13", "1.100", "600", "60", "1700", "700", "slow"]
    text = in_one_line(out)
    assert "Merged 16 of 16 members: 13 points of NVIDIA H200." in text
    assert (
        "node15: 10.0% slower than the median over 13 points. Keeping it costs: every synchronous step takes 10.0% "
        "longer, as much as 1.5 of 16 GPUs, more than it does: `--leave-out 'node15'`." in text
    )
    assert "node16: 84 °C, 24 above the median under the same load. Keeping it makes no step longer" in text


def test_what_is_left_out_is_still_shown_and_no_step_waits_for_it(run, home) -> None:
    result = run("records", "merge", *nodes(home, *FLEET), "--leave-out", "node15", "-o", "fleet.jsonl")

    text = in_one_line(result.out)
    assert "slow, left out" in text
    assert "node15 is left out: 10.0% slower than the median over 13 points. Keeping it would cost:" in text
    slowest = [json.loads(line)["time_median_s"] for line in Path("fleet.jsonl").read_text("utf-8").splitlines()]
    assert slowest[1] == pytest.approx(0.001)


def test_of_two_members_the_ratio_is_said_and_nobody_is_named(run, home) -> None:
    out = in_one_line(run("records", "merge", *nodes(home, Gpu(), Gpu(slower=1.3))).out)

    assert "2 members are too few to call one slow or hot: node02 takes 1.300 times as long as node01." in out
    assert "slow," not in out


def test_json_is_one_document(run, home) -> None:
    result = run("records", "merge", *nodes(home, *FLEET), "-o", "fleet.jsonl", "--json")

    document = json.loads(result.out)
    assert (document["schema"], document["record"], document["gpu"]) == (
        "mpplan.fleet/1", "fleet.jsonl", "h200-sxm-141gb",
    )  # fmt: skip
    assert [(o["name"], o["why"][0]["id"]) for o in document["outliers"]] == [("node15", "slow"), ("node16", "hot")]
    assert document["outliers"][0]["cost_ratio"] == pytest.approx(1.1)


def test_a_record_that_is_there_is_never_written_over(run, home) -> None:
    names = nodes(home, Gpu(), Gpu())
    before = Path(names[0]).read_bytes()

    result = run("records", "merge", *names, "-o", names[0])

    assert result.code == 2
    assert "exists already" in result.err
    assert Path(names[0]).read_bytes() == before


def test_a_refusal_leaves_no_file(run, home) -> None:
    names = nodes(home, Gpu(), Gpu(changes={"device_name": "NVIDIA H100 80GB HBM3"}))

    result = run("records", "merge", *names, "-o", "fleet.jsonl")

    assert result.code == 3
    assert "node02.jsonl:1: device_name: expected `NVIDIA H200` as in node01.jsonl" in result.err
    assert sorted(path.name for path in home.iterdir()) == ["node01.jsonl", "node02.jsonl"]


def test_a_damaged_line_costs_that_line_and_is_named(run, home) -> None:
    names = nodes(home, *(Gpu(),) * 3)
    path = Path(names[2])
    path.write_text(path.read_text("utf-8").replace('"time_median_s":0.005', '"time_median_s":-1', 1), "utf-8")

    result = run("records", "merge", *names, "-o", "fleet.jsonl")

    assert result.code == 0
    assert "warning: node03.jsonl:6: time_median_s: expected a number that is not negative" in result.err
    assert "gemm/5 (node03: not in the record)" in in_one_line(result.out)


def test_a_packed_record_and_a_record_to_stdout_hold_the_same(run, home) -> None:
    names = nodes(home, Gpu(), Gpu())
    assert run("records", "merge", *names, "-o", "fleet.jsonl.gz").code == 0

    printed = run("records", "merge", *names, "-o", "-").out

    assert gzip.decompress(Path("fleet.jsonl.gz").read_bytes()).decode() == printed


def test_without_a_name_nothing_is_written_and_that_is_said(run, home) -> None:
    result = run("records", "merge", *nodes(home, Gpu(), Gpu()))

    assert "warning: nothing was written" in result.err
    assert len(list(home.iterdir())) == 2


def test_check_sends_whoever_doubts_a_fleet_to_the_records_it_is_of(run, home) -> None:
    run("records", "merge", *nodes(home, *(Gpu(changes={"quality": "throttled"}),) * 4), "-o", "fleet.jsonl")

    assert "measure the doubtful points again in the records" in in_one_line(run("check", "fleet.jsonl").out)

"""Several ranks through torchrun, for real: the record, a rank that dies, an interruption.

In `make long`: how close predictions come, and how well a figure repeats. That steps over two ranks are predicted and
run at all is in tests/contracts/test_fake_ranks.py.

Other tests run beside this module's, so that what a prediction is held to depends on what the record says of its cases.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import median

import pytest

from planner.errors import CannotMeasureError
from planner.measured.network.lines import CollectiveLine, collective_lines
from planner.records.communication import OPS
from planner.records.jsonl import MeasurementFile, read_measurements
from planner.records.measurement import Measurement
from probes.process.client import Ended, last_words, run_in_process
from probes.process.torchrun import check_rendezvous, first_failure, is_rank, ranks_of, torchrun
from probes.record.options import Options
from probes.verify.document import Case, verify_cases
from tests.probes.process.test_client import ROOT, Heard, start
from tests.probes.process.waiting import LIMIT_S, wait_until

MOST = (len(OPS) + 1) // 2
"""Operations of the five that have to agree where other tests run beside this one."""
ASKED = Options(device="cpu", suite="quick", precisions=("fp32",), ranks=2, budget_s=LIMIT_S, join_s=LIMIT_S)


def asked(path: Path) -> Options:
    return replace(ASKED, path=str(path))


@pytest.fixture(scope="module", autouse=True)
def needs_torch() -> None:
    pytest.importorskip("torch")


def processes_of(path: Path) -> list[str]:
    """Command lines of processes that measure into a record."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if str(path) in line and "probes.process.worker" in line]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Heard, MeasurementFile]:
    """Two ranks' collectives, while one is killed in the middle."""
    path = tmp_path_factory.mktemp("ranks") / "two.jsonl"

    class Killing(Heard):
        killed = False

        def measured(self, measurement: Measurement) -> None:
            super().measured(measurement)
            if measurement.kind == "collective" and not self.killed:
                self.killed = True
                ranks = [pid for pid in processes_of(path) if _environment(int(pid)).get("RANK") == "1"]
                os.kill(int(ranks[0]), signal.SIGKILL)

    heard = Killing()
    ended = run_in_process(replace(asked(path), workloads=("collective",)), heard)
    assert processes_of(path) == []
    return ended, heard, read_measurements(path)


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that two ranks measure; then what is predicted from it and run."""
    path = tmp_path_factory.mktemp("verified") / "two.jsonl"
    run_in_process(replace(asked(path), verify=True), Heard())
    return path


def _environment(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return dict(part.split("=", 1) for part in text.split("\0") if "=" in part)


def test_a_rank_that_is_killed_is_named_and_the_run_goes_on_in_new_processes(
    record: tuple[Ended, Heard, MeasurementFile],
) -> None:
    ended, heard, file = record

    assert (ended.crashes, ended.interrupted) == (1, False), heard.notes
    assert "rank 1 was ended by SIGKILL (the system ran out of memory?); continuing in a new process" in heard.notes
    assert file.problems_left_out == 0
    assert not [problem for problem in file.problems if not problem.used]
    assert len({point.run_id for point in file.measurements}) == 1


def test_every_collective_is_measured_with_its_ranks_and_rates(record: tuple[Ended, Heard, MeasurementFile]) -> None:
    _, _, file = record
    points = [point for point in file.latest() if point.kind == "collective"]

    assert {point.communication.op for point in points} == set(OPS)
    for point in points:
        at = point.communication
        assert point.status == "ok", point.reason
        assert (at.group, at.backend, at.world, at.nodes) == ("world", "gloo", 2, 1)
        assert point.ranks.names == ("node 0 rank 0", "node 0 rank 1")
        assert at.bytes is not None
        assert point.time.median_s is not None
        assert at.algorithm_bytes_per_s == pytest.approx(at.bytes / point.time.median_s)
        factor = {"all_reduce": 1.0, "send_recv": 1.0}.get(str(at.op), 0.5)  # 2(n-1)/n, 1, (n-1)/n of two ranks
        assert at.bus_bytes_per_s == pytest.approx(factor * (at.algorithm_bytes_per_s or 0.0))


def test_a_sample_is_never_faster_than_any_rank(record: tuple[Ended, Heard, MeasurementFile]) -> None:
    _, _, file = record
    points = [point for point in file.latest() if point.ranks.time_s]

    assert len(points) >= 15
    for point in points:
        assert point.time.median_s is not None
        assert point.time.median_s >= 0.999 * max(point.ranks.time_s), point.probe_id


def test_larger_messages_take_longer(record: tuple[Ended, Heard, MeasurementFile]) -> None:
    """By the fastest samples, which other work on the machine disturbs least; it may disturb those of one operation."""
    _, _, file = record
    times = {point.probe_id: point.time.min_s or 0.0 for point in file.latest() if point.kind == "collective"}

    sizes = {op: [times[f"collective/{op}/world/1x2/{size}"] for size in (1024, 4194304)] for op in OPS}
    assert sum(large > small for small, large in sizes.values()) >= len(OPS) - 1, sizes


@pytest.mark.long
def test_steps_of_two_ranks_follow_from_their_parts(verified: Path, tmp_path: Path) -> None:
    """DDP, its recomputation and FSDP2 from ranks that train alone, collectives and overlap: within a factor of two at
    the median, measured again where other work spoilt that. How close it comes on a quiet machine is in
    docs/several-gpus.md, with the command.
    """
    cases = _predicted(verified)
    if not _within_a_factor_of_two(cases):
        run_in_process(replace(asked(tmp_path / "second.jsonl"), verify=True), Heard())
        cases = _predicted(tmp_path / "second.jsonl")

    assert {case["name"].split("/")[2] for case in cases} == {"ddp", "fsdp2"}
    assert _within_a_factor_of_two(cases), cases


def _predicted(path: Path) -> list[Case]:
    return [case for case in verify_cases(read_measurements(path).latest()) if case["metric"] == "time"]


def _within_a_factor_of_two(cases: list[Case]) -> bool:
    return 0.5 <= median(case["error_ratio"] + 1.0 for case in cases) <= 2.0


@pytest.mark.long
def test_latency_and_rate_of_a_collective_repeat_within_their_own_spread(
    record: tuple[Ended, Heard, MeasurementFile], verified: Path, tmp_path: Path
) -> None:
    """Three standard errors of both, for most operations; what else runs may spoil a run: then of three, two agree."""
    runs = [_lines(record[2]), _lines(read_measurements(verified))]
    if _agreeing(runs) < MOST:
        run_in_process(replace(asked(tmp_path / "third.jsonl"), workloads=("collective",)), Heard())
        runs.append(_lines(read_measurements(tmp_path / "third.jsonl")))

    assert all(set(lines) == set(OPS) for lines in runs)
    assert _agreeing(runs) >= MOST, runs


def _lines(file: MeasurementFile) -> dict[str, CollectiveLine]:
    return {line.op: line for line in collective_lines(file.latest())}


def _agreeing(runs: list[dict[str, CollectiveLine]]) -> int:
    """Operations that two of the runs agree on."""
    return sum(any(_agree(first[op], second[op]) for first, second in combinations(runs, 2)) for op in OPS)


def _agree(first: CollectiveLine, second: CollectiveLine) -> bool:
    return within(first.latency_s, first.latency_sd_s, second.latency_s, second.latency_sd_s) and within(
        first.bytes_per_s, first.bytes_per_s_sd, second.bytes_per_s, second.bytes_per_s_sd
    )


def within(first: float | None, first_sd: float | None, second: float | None, second_sd: float | None) -> bool:
    """Whether two figures differ by no more than three of their spread; a rate that was not found differs from none."""
    if first is None or second is None:
        return True
    return abs(first - second) <= 3.0 * math.hypot(first_sd or 0.0, second_sd or 0.0)


def test_an_interruption_ends_every_rank_and_keeps_the_record(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    process = start(path, "--ranks", "2", "--workload", "collective", "--precision", "fp32", "--budget", "10m")
    wait_until(lambda: path.exists() and "collective/" in path.read_text(encoding="utf-8"), process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130, errors
    assert "error: interrupted" in errors
    assert any(point.kind == "collective" for point in read_measurements(path).measurements)
    assert processes_of(path) == []


@pytest.mark.long
def test_torchrun_itself_may_start_the_ranks(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "mpplan"]
    asked = [
        "probe",
        "--device",
        "cpu",
        "--suite",
        "quick",
        "--workload",
        "overlap",
        "--precision",
        "fp32",
        "--budget",
        "10m",
    ]
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, *asked, "-o", str(path)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=LIMIT_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    (point,) = (point for point in read_measurements(path).latest() if point.kind == "overlap")
    overlap = point.overlap
    assert overlap.product_alone_s is not None
    assert overlap.product_beside_s is not None
    assert overlap.both_s is not None
    assert overlap.product_slowdown_ratio == pytest.approx(overlap.product_beside_s / overlap.product_alone_s)
    assert overlap.both_s >= overlap.product_beside_s


TORCHRUN_STDERR = """\
============================================================
probes.process.worker FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_15:38:12
  host      : localhost
  rank      : 3 (local_rank: 1)
  exitcode  : {code} (pid: 6078)
  error_file: <N/A>
"""
"""The end of what torchrun of PyTorch 2.13 says when a rank fails."""


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        (TORCHRUN_STDERR.format(code=-9), "rank 3 was ended by SIGKILL (the system ran out of memory?)"),
        (TORCHRUN_STDERR.format(code=-11), "rank 3 was ended by SIGSEGV"),
        (TORCHRUN_STDERR.format(code=1), "rank 3 failed with exit code 1"),
        ("something else", None),
    ],
)
def test_the_rank_that_failed_first_is_told_from_torchruns_words(stderr: str, words: str | None) -> None:
    assert first_failure(stderr) == words


def test_a_rank_that_lost_the_others_says_more_than_torchrun_does() -> None:
    lost = "node 0 rank 3: DistBackendError: NCCL error"

    assert last_words(1, TORCHRUN_STDERR.format(code=75), lost) == f"lost {lost}"
    assert (
        last_words(1, TORCHRUN_STDERR.format(code=-9), lost)
        == "rank 3 was ended by SIGKILL (the system ran out of memory?)"
    )
    assert last_words(75, "", "CUDA error") == "the GPU was lost"


def test_nodes_that_did_not_meet_are_said_with_the_time_waited() -> None:
    options = replace(ASKED, nnodes=4, rdzv_endpoint="node01:29500")

    with pytest.raises(CannotMeasureError, match="fewer than 4 nodes joined at node01:29500 within 600 s"):
        check_rendezvous("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", options)
    with pytest.raises(CannotMeasureError, match="nothing answers at node01:29500"):
        check_rendezvous("RendezvousConnectionError: The connection has failed", options)
    check_rendezvous("all is well", options)


def test_nodes_meet_where_they_are_told_and_one_node_by_itself() -> None:
    single = torchrun(ASKED, "/logs")
    several = torchrun(replace(ASKED, nnodes=4, ranks=8, rdzv_endpoint="node01:29500"), "/logs")

    assert "--standalone" in single
    assert "--nproc-per-node=2" in single
    assert {"--nnodes=4", "--rdzv-endpoint=node01:29500", "--nproc-per-node=8"} <= set(several)
    assert "--max-restarts=0" in several


def test_a_process_knows_whether_torchrun_started_it() -> None:
    environment = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "RANK": "9"}

    assert is_rank(environment)
    assert ranks_of(environment) == (8, 2, 9)
    assert not is_rank({})
    assert not is_rank(environment | {"WORLD_SIZE": "1"})

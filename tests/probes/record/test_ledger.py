"""The record as it grows: appended, flushed, resumed, mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import UsageError
from planner.records.communication import RankFigures
from planner.records.figures import Sampling, TimeStatistics
from planner.records.jsonl import read_measurements
from planner.records.machine import DeviceIdentity, SoftwareVersions
from probes.record.figures import Figures
from probes.record.ledger import PointLedger
from probes.record.options import Options
from probes.record.provenance import SUITE_VERSION, Provenance
from probes.record.writer import UnderWay
from tests.probes.build import call, point

WHERE = Provenance(
    suite_version=SUITE_VERSION,
    device=DeviceIdentity(kind="cpu", name="Some CPU"),
    software=SoftwareVersions(torch_version="2.13.0"),
)
OK = Figures(status="ok", time=TimeStatistics(median_s=1.0), sampling=Sampling(quality="ok"))
A, B = point("a", call()), point("b", call())


OPENED: list[PointLedger] = []


@pytest.fixture(autouse=True)
def close_all() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def opened(options: Options, where: Provenance = WHERE) -> PointLedger:
    OPENED.append(PointLedger(options, where))
    return OPENED[-1]


def open_ledger(path: Path, *, resume: bool = False, **changes: object) -> PointLedger:
    return opened(Options(path=str(path), resume=resume, **changes))  # type: ignore[arg-type]


def test_a_line_is_on_the_disk_as_soon_as_it_is_written(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "r.jsonl")

    ledger.write(A, OK)

    assert [line.probe_id for line in read_measurements(tmp_path / "r.jsonl").measurements] == ["a"]


def test_a_record_that_exists_is_not_touched_without_resume(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("{}\n", encoding="utf-8")

    with pytest.raises(UsageError, match="exists already") as caught:
        open_ledger(tmp_path / "r.jsonl")

    assert "--resume" in str(caught.value.hint)


def test_a_record_of_a_cpu_is_continued_with_as_many_threads(tmp_path: Path) -> None:
    def with_threads(count: int) -> Provenance:
        return replace(WHERE, device=replace(WHERE.device, threads=count))

    begun = opened(Options(path=str(tmp_path / "r.jsonl")), with_threads(2))
    begun.write(A, OK)
    begun.close()
    resumed = Options(path=str(tmp_path / "r.jsonl"), resume=True)

    with pytest.raises(UsageError, match="started with 2 CPU threads, this is a run with one CPU thread") as caught:
        opened(resumed, with_threads(1))

    assert "continue it with `--threads 2`" in str(caught.value.hint)
    assert opened(resumed, with_threads(2)).run_id == begun.run_id


def test_resuming_keeps_the_run_and_skips_what_is_done(tmp_path: Path) -> None:
    first = open_ledger(tmp_path / "r.jsonl")
    first.write(A, OK)
    first.close()

    resumed = open_ledger(tmp_path / "r.jsonl", resume=True)
    resumed.write(B, OK)

    assert resumed.run_id == first.run_id
    assert (resumed.is_done(A), resumed.is_done(point("c", call()))) == (True, False)
    lines = read_measurements(tmp_path / "r.jsonl")
    assert [(line.probe_id, line.seq) for line in lines.measurements] == [("a", 0), ("b", 1)]
    assert lines.problems == ()


def test_resuming_after_power_loss_cuts_the_unfinished_line_off(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = open_ledger(path)
    first.write(A, OK)
    first.write(B, OK)
    first.close()
    path.write_bytes(path.read_bytes()[:-25])

    resumed = open_ledger(path, resume=True)
    resumed.write(B, OK)

    assert [line.probe_id for line in read_measurements(path).measurements] == ["a", "b"]
    assert read_measurements(path).problems == ()


@pytest.mark.parametrize(
    ("figures", "done"),
    [
        (OK, True),
        (Figures(status="oom", reason="x"), True),
        (Figures(status="unsupported", reason="x"), True),
        (Figures(status="error", reason="x"), False),
        (replace(OK, sampling=Sampling(quality="contended")), False),
        (replace(OK, sampling=Sampling(quality="throttled")), False),
    ],
)
def test_resume_measures_again_what_is_doubtful(tmp_path: Path, figures: Figures, done: bool) -> None:
    first = open_ledger(tmp_path / "r.jsonl")
    first.write(A, figures)
    first.close()

    assert open_ledger(tmp_path / "r.jsonl", resume=True).is_done(A) is done


def test_resume_measures_again_what_another_version_of_the_suite_measured(tmp_path: Path) -> None:
    first = opened(Options(path=str(tmp_path / "r.jsonl")), replace(WHERE, suite_version=SUITE_VERSION + 1))
    first.write(A, OK)
    first.close()

    assert not open_ledger(tmp_path / "r.jsonl", resume=True).is_done(A)


def test_after_a_crash_what_failed_is_not_tried_a_second_time(tmp_path: Path) -> None:
    first = open_ledger(tmp_path / "r.jsonl")
    first.write(A, Figures(status="error", reason="x"))
    first.close()

    assert open_ledger(tmp_path / "r.jsonl", resume=True, skip_failed=True).is_done(A)


def test_a_record_of_another_device_or_torch_is_not_continued(tmp_path: Path) -> None:
    first = open_ledger(tmp_path / "r.jsonl")
    first.write(A, OK)
    first.close()

    with pytest.raises(UsageError, match=r"started with torch_version `2\.13\.0`, this is `2\.11\.0`"):
        opened(
            Options(path=str(tmp_path / "r.jsonl"), resume=True),
            replace(WHERE, software=SoftwareVersions(torch_version="2.11.0")),
        )


def test_of_the_records_of_several_gpus_the_newest_of_this_one_is_continued(tmp_path: Path) -> None:
    def of_gpu(digits: str) -> Provenance:
        return replace(WHERE, device=DeviceIdentity(kind="cuda", name="NVIDIA H200", uuid_hash=digits))

    newest_first = ["of_b.jsonl", "missing.jsonl", "of_a.jsonl", "older_of_a.jsonl"]
    for name in ("older_of_a", "of_a", "of_b"):
        begun = opened(Options(path=str(tmp_path / f"{name}.jsonl")), of_gpu(name[-1] * 12))
        begun.write(A, OK)
        begun.close()
    path, *others = (str(tmp_path / name) for name in newest_first)
    options = Options.from_json(Options(path=path, others=tuple(others), resume=True).to_json())

    chosen = opened(options, of_gpu("a" * 12))

    assert chosen.path == tmp_path / "of_a.jsonl"
    assert chosen.is_done(A)
    with pytest.raises(UsageError, match="device_hash `bbbbbbbbbbbb`, this is `cccccccccccc`"):
        opened(options, of_gpu("c" * 12))


def test_a_record_is_continued_by_as_many_ranks_as_began_it(tmp_path: Path) -> None:
    names = RankFigures(names=("node 0 rank 0", "node 0 rank 1"))
    ledger = open_ledger(tmp_path / "r.jsonl", ranks=2)
    ledger.write(point("collective/x", call()), replace(OK, ranks=names))
    ledger.close()

    with pytest.raises(UsageError, match="started with 2 ranks, this is a run of one process"):
        open_ledger(tmp_path / "r.jsonl", resume=True)
    assert "collective/x" in open_ledger(tmp_path / "r.jsonl", resume=True, ranks=2).known


def test_a_record_goes_to_the_store_under_a_name_of_its_own_and_to_the_named_file(tmp_path: Path) -> None:
    options = Options(path=str(tmp_path / "mine.jsonl"), store=str(tmp_path / "store"))
    ledger = opened(options)
    ledger.write(A, OK)

    (kept,) = (tmp_path / "store").glob("*.jsonl")

    assert kept.name.startswith("some-cpu-")
    assert kept.name.endswith(f"{ledger.run_id[:8]}.jsonl")
    assert kept.read_text() == (tmp_path / "mine.jsonl").read_text()


def test_resuming_a_named_file_goes_on_with_its_copy_in_the_store(tmp_path: Path) -> None:
    options = Options(path=str(tmp_path / "mine.jsonl"), store=str(tmp_path / "store"), resume=True)
    for written in (A, B):
        ledger = opened(options)
        ledger.write(written, OK)
        ledger.close()

    (kept,) = (tmp_path / "store").glob("*.jsonl")

    assert kept.read_text() == (tmp_path / "mine.jsonl").read_text()
    assert len(read_measurements(kept).measurements) == 2


def test_a_place_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="cannot write"):
        open_ledger(tmp_path / "file" / "r.jsonl")


def test_a_line_holds_neither_host_nor_user_nor_path(tmp_path: Path) -> None:
    import getpass
    import socket

    pytest.importorskip("torch")
    from probes.device.device import open_device
    from probes.record.provenance import provenance

    ledger = opened(Options(path=str(tmp_path / "r.jsonl")), provenance(open_device("cpu")))
    ledger.write(A, OK)

    line = (tmp_path / "r.jsonl").read_text(encoding="utf-8")
    words = set(json.dumps(json.loads(line)).replace('"', " ").split())
    assert socket.gethostname() not in words
    assert getpass.getuser() not in words
    assert str(tmp_path) not in line
    assert str(Path.home()) not in line
    assert "uuid" not in line.lower()


def test_the_note_of_what_is_under_way_is_left_by_a_process_that_dies_and_only_then(tmp_path: Path) -> None:
    note = UnderWay(tmp_path / "r.jsonl")
    assert note.left_behind() == ()

    note.begin(["a", "b"])
    assert UnderWay(tmp_path / "r.jsonl").left_behind() == ("a", "b")

    note.end()
    assert UnderWay(tmp_path / "r.jsonl").left_behind() == ()

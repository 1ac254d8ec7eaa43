"""The probe process, for real: its events, its death, its record; and that the parent never imports torch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import MpplanError, UsageError
from planner.records.jsonl import read_measurements
from planner.records.measurement import Measurement
from probes.process.client import Ended, run_in_process
from probes.record.options import Options
from probes.session.listener import Progress
from tests.probes.process.waiting import LIMIT_S, wait_for_lines, wait_until

ROOT = Path(__file__).parents[3]


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.labels: list[str] = []
        self.measured_ids: list[str] = []
        self.notes: list[str] = []

    def began(self, path: str, device_name: str) -> None:
        self.path = path

    def planned(self, groups: int, estimate_s: float) -> None:
        self.groups = groups

    def started(self, progress: Progress) -> None:
        self.labels.append(progress.label)

    def measured(self, measurement: Measurement) -> None:
        self.measured_ids.append(measurement.probe_id)

    def noted(self, text: str) -> None:
        self.notes.append(text)


def options(path: Path, **changes: object) -> Options:
    values: dict[str, object] = {
        "device": "cpu", "suite": "quick", "workloads": ("launch",), "precisions": ("fp32",), "path": str(path),
        "budget_s": LIMIT_S,
    }  # fmt: skip
    return Options(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module", autouse=True)
def needs_torch() -> None:
    pytest.importorskip("torch")


def test_options_cross_to_the_process_unchanged(tmp_path: Path) -> None:
    asked = options(tmp_path / "r.jsonl", budget_s=3.5, seed=7)

    assert Options.from_json(asked.to_json()) == asked


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Heard, Path]:
    """A run to its end, with a store that cannot be written."""
    folder, heard = tmp_path_factory.mktemp("whole"), Heard()
    (folder / "store").write_text("a file, so that no folder can be made in its place")
    return run_in_process(options(folder / "r.jsonl", store=str(folder / "store" / "records")), heard), heard, folder


def test_a_run_in_its_own_process_tells_everything_and_writes_the_record(whole: tuple[Ended, Heard, Path]) -> None:
    ended, heard, folder = whole

    assert (ended.interrupted, ended.crashes, ended.path) == (False, 0, str(folder / "r.jsonl"))
    assert heard.measured_ids == ["support/fp32", "canary", "launch/host", "canary"]
    record = read_measurements(folder / "r.jsonl")
    assert [point.probe_id for point in record.measurements] == heard.measured_ids
    assert record.measurements[2].time.median_s is not None
    assert record.measurements[2].time.median_s < 1e-3  # a kernel, not a batch of them
    assert not (folder / "r.jsonl.underway").exists()


def test_a_store_that_cannot_be_written_costs_the_copy_and_not_the_run(whole: tuple[Ended, Heard, Path]) -> None:
    ended, heard, folder = whole

    assert ended.crashes == 0
    assert [note for note in heard.notes if "no copy is kept in the store" in note]
    assert len(read_measurements(folder / "r.jsonl").measurements) == 4


def test_a_mistake_in_the_process_comes_back_as_the_error_it_is(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("x\n")

    with pytest.raises(MpplanError, match="exists already") as caught:
        run_in_process(options(tmp_path / "r.jsonl"), Heard())

    assert caught.value.exit_code == UsageError.exit_code


def test_a_machine_without_a_gpu_cannot_measure_one(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(MpplanError, match=r"no NVIDIA GPU|built without CUDA") as caught:
        run_in_process(options(tmp_path / "r.jsonl", device="cuda"), Heard())

    assert caught.value.exit_code == 4
    assert "--device cpu" in str(caught.value.hint)


def test_a_budget_that_is_used_up_leaves_groups_out_and_says_which_and_the_parent_never_imports_torch(
    tmp_path: Path,
) -> None:
    program = (
        "import sys; from probes.process.client import run_in_process; from probes.record.options import Options;"
        "from probes.session.listener import Silence;"
        f"ended = run_in_process(Options(device='cpu', suite='quick', workloads=('bandwidth',), precisions=('fp32',),"
        f" budget_s=0.001, path={str(tmp_path / 'r.jsonl')!r}), Silence());"
        "print(ended.left_out, sorted({'torch', 'transformers', 'torchao'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)

    assert done.stdout.strip() == "('memory bandwidth',) []"
    assert read_measurements(tmp_path / "r.jsonl").measurements  # of the precision, which the parent hears of


def start(path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mpplan", "probe", "--device", "cpu", "-o", str(path), *arguments]
    environment = os.environ | {"XDG_DATA_HOME": str(path.parent / "data"), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)], ids=["SIGINT", "SIGTERM"]
)
def test_an_interruption_keeps_and_names_what_was_measured(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "r.jsonl"
    process = start(path, "--workload", "gemm", "--precision", "fp32")
    wait_for_lines(path, 3, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    assert "error: interrupted" in errors
    asked = "--precision fp32 --workload gemm"
    assert f"continue with `mpplan probe --device cpu {asked} --resume -o {path}`" in errors
    record = read_measurements(path)
    assert len(record.measurements) >= 3
    assert not [problem for problem in record.problems if not problem.used]


def children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


def test_a_probe_process_that_is_killed_is_replaced_and_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    process = start(path, "--suite", "quick", "--budget", "5m", "--workload", "bandwidth,launch", "--precision", "fp32")
    note = path.with_name("r.jsonl.underway")

    def copying() -> bool:
        with suppress(FileNotFoundError):  # there only while a point is under way
            return "bandwidth/copy" in note.read_text(encoding="utf-8")
        return False

    wait_until(copying, process)
    (worker,) = children(process.pid)
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 0
    assert "ended by SIGKILL" in errors
    points = {point.probe_id: point for point in read_measurements(path).latest()}
    assert (points["bandwidth/copy"].status, points["launch/host"].status) == ("ok", "ok")  # one by one, none dies
    assert len({point.run_id for point in points.values()}) == 1


def running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(listed.stdout.strip()) and not listed.stdout.strip().startswith("Z")


def test_a_process_that_no_parent_holds_goes_when_its_pipe_closes(tmp_path: Path) -> None:
    """Without the signal that Linux sends: the pipe alone."""
    program = (
        "import signal, time; from probes.process import worker; worker.PR_SET_PDEATHSIG = 2\n"  # PR_GET_PDEATHSIG
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as in a kernel that hears no signal\n"
        "worker.ORPHAN_GRACE_S = 0.5; worker.end_with_parent(); print('ready', flush=True); time.sleep(300)"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == b"ready\n"
    assert child.poll() is None

    child.stdin.close()

    assert child.wait(timeout=LIMIT_S) == 130
    child.stdout.close()


def test_a_record_has_one_probe_at_a_time_which_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = start(path, "--suite", "thorough", "--workload", "gemm", "--precision", "fp32")
    try:
        wait_for_lines(path, 3, first)
        (worker,) = children(first.pid)
        second = start(path, "--resume", "--workload", "gemm", "--precision", "fp32")
        (kept,) = (tmp_path / "data" / "mpplan" / "records").glob("*.jsonl")
        third = start(kept, "--resume", "--workload", "gemm", "--precision", "fp32")  # the copy is the same run
        (_, errors), (_, third_errors) = (probe.communicate(timeout=LIMIT_S) for probe in (second, third))
    finally:
        first.kill()
        first.communicate(timeout=LIMIT_S)

    assert second.returncode == third.returncode == UsageError.exit_code
    assert f"error: `{path}` is being measured by process {worker}" in errors
    assert "hint: wait until it has ended" in errors
    assert f"error: `{kept}` is being measured by process {worker}" in third_errors
    wait_until(lambda: not running(worker))
    assert not (tmp_path / "r.jsonl.underway").exists()  # no point is blamed for it
    record = read_measurements(path)
    assert len({point.run_id for point in record.measurements}) == 1
    assert not [problem for problem in record.problems if not problem.used]


def test_a_record_whose_probe_was_killed_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    process = start(path, "--suite", "quick", "--budget", "5m", "--workload", "gemm", "--precision", "fp32")
    wait_for_lines(path, 2, process)
    (worker,) = children(process.pid)
    process.kill()
    os.kill(worker, signal.SIGKILL)
    process.communicate(timeout=LIMIT_S)
    wait_until(lambda: not running(worker))

    ended = run_in_process(options(path, resume=True), Heard())

    assert not ended.interrupted
    assert "launch/host" in {point.probe_id for point in read_measurements(path).measurements}


def test_a_store_that_cannot_be_written_is_an_error_where_it_is_the_only_place(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")

    asked = replace(options(tmp_path / "r.jsonl", store=str(tmp_path / "store")), path=None)
    with pytest.raises(MpplanError, match="cannot write") as caught:
        run_in_process(asked, Heard())

    assert caught.value.exit_code == UsageError.exit_code


def test_a_full_disk_is_said_once_and_what_was_measured_is_kept(tmp_path: Path) -> None:
    """A limit on the size of files does what a full disk does: the write fails after part of a line.

    Of the four lines of this record, of 0.8 to 1.5 kB each, three fit.
    """
    path = tmp_path / "r.jsonl"
    command = [
        sys.executable, "-m", "mpplan", "probe", "--device", "cpu", "--suite", "quick", "--workload",
        "launch", "--precision", "fp32", "-o", str(path),
    ]  # fmt: skip
    program = (
        "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4200, 4200));"
        f"sys.argv = {command[2:]!r}; runpy.run_module('mpplan', run_name='__main__')"
    )
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=ROOT, check=False,
        timeout=LIMIT_S,
    )  # fmt: skip

    assert done.returncode == UsageError.exit_code
    assert done.stderr.count("error: ") == 1
    assert f"error: cannot write `{path}`: File too large" in done.stderr
    assert "hint: make room, then continue with `--resume`" in done.stderr
    assert "continuing in a new process" not in done.stderr
    record = read_measurements(path)
    assert len(record.measurements) >= 1
    assert not [problem for problem in record.problems if not problem.used]
    assert path.read_bytes().endswith(b"\n")


class Aborting(Options):
    """Options of a process that ends by SIGABRT after it has said that all is done."""

    @property
    def worker(self) -> str:
        return "tests.probes.process.aborting_worker"


def test_a_process_that_dies_after_it_has_written_everything_is_not_run_again(tmp_path: Path) -> None:
    heard = Heard()

    ended = run_in_process(Aborting(device="cpu", path=str(tmp_path / "r.jsonl")), heard)

    assert (ended.crashes, ended.interrupted, ended.path) == (0, False, "record.jsonl")
    assert heard.notes == []

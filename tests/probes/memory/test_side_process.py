"""Memory tracked in another process: the same peaks as in this one, and a reason where there is none."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from probes.memory.side_process import InlineTracker, SideTracker, TrackedCase, TrackingError, open_tracker, serve
from probes.models.cases import ModelCase
from tests.probes.build import CPU, H200

ROOT = Path(__file__).parents[3]
TINY_CASE = TrackedCase(
    model=ModelCase(family="llama", size="tiny", layers=1, batch=1, seq_len=64), recipe_id="bf16-autocast"
)
LARGE_CASE = TrackedCase(
    model=ModelCase(family="llama", size="llama-3.2-3b", layers=28, batch=1, seq_len=4096), recipe_id="fp8"
)
UNKNOWN = TrackedCase(model=ModelCase(family="llama", size="nobody's", layers=1, batch=1, seq_len=64), recipe_id="fp32")


@pytest.fixture(scope="module")
def tracker() -> Iterator[SideTracker]:
    tracker = SideTracker(CPU, 0, limit_s=600.0)
    tracker.start([UNKNOWN, TINY_CASE, TINY_CASE])
    yield tracker
    tracker.close()


def test_another_process_counts_what_this_one_would(tracker: SideTracker) -> None:
    assert tracker.processes() == 1
    assert tracker.result(TINY_CASE) == InlineTracker(CPU, 0).result(TINY_CASE)


def test_a_case_that_cannot_be_tracked_has_its_reason_and_costs_no_other(tracker: SideTracker) -> None:
    with pytest.raises(TrackingError, match="KeyError"):
        tracker.result(UNKNOWN)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no procfs")
def test_the_cpu_time_of_the_other_process_is_known_while_it_runs(tracker: SideTracker) -> None:
    assert 0.1 < tracker.cpu_s() < 600.0  # it imports torch and builds a model


def test_a_process_that_dies_is_named_and_counts_as_none() -> None:
    tracker = SideTracker(CPU, 0, limit_s=600.0)
    assert tracker.cpu_s() == 0.0
    tracker.start([TINY_CASE])
    assert tracker._process is not None
    tracker._process.kill()

    with pytest.raises(TrackingError, match="has ended"):
        tracker.result(TINY_CASE)
    tracker._process.join()
    assert tracker.processes() == 0
    tracker.close()
    assert tracker.cpu_s() == 0.0  # from here on, the system adds it to this process's children


MEASURING = """
import sys
from probes.memory.side_process import SideTracker, TrackedCase
from tests.probes.memory.test_side_process import CPU, LARGE_CASE, TINY_CASE

if __name__ == "__main__":
    tracker = SideTracker(CPU, 0, limit_s=600.0)
    tracker.start([TINY_CASE, LARGE_CASE])
    tracker.result(TINY_CASE)
    print(tracker._process.pid, flush=True)
    sys.stdin.read()
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the signal is Linux's")
def test_a_tracker_ends_at_once_with_the_process_that_measures_even_if_that_is_killed() -> None:
    words = [sys.executable, "-c", MEASURING]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as measuring:
        assert measuring.stdout is not None
        pid = int(measuring.stdout.readline())
        assert is_running(pid)
        measuring.kill()
        measuring.wait()
        end = time.monotonic() + 2.0
        while is_running(pid) and time.monotonic() < end:
            time.sleep(0.05)

    assert not is_running(pid)


def test_a_result_is_waited_for_no_longer_than_the_limit() -> None:
    tracker = SideTracker(CPU, 0, limit_s=0.0)
    tracker.start([TINY_CASE])

    with pytest.raises(TrackingError, match="more than 0 s"):
        tracker.result(TINY_CASE)
    tracker.close()


def test_a_tracker_that_was_not_started_says_so() -> None:
    with pytest.raises(TrackingError, match="not started"):
        SideTracker(H200, 0).result(TINY_CASE)


def test_memory_is_tracked_beside_a_gpu_and_in_the_process_that_measures_a_cpu() -> None:
    assert isinstance(open_tracker(H200, 0), SideTracker)
    assert isinstance(open_tracker(CPU, 0), InlineTracker)


def test_what_a_case_fails_with_is_sent_in_its_place() -> None:
    ours, theirs = Pipe(duplex=False)

    serve(theirs, CPU, 0, [UNKNOWN])

    case, result = ours.recv()
    assert (case, type(result)) == (UNKNOWN, str)
    assert "nobody's" in result


def test_the_gpu_whose_memory_is_tracked_is_the_current_one_of_the_tracking_process() -> None:
    from tests.probes.fake_cuda.board import Board
    from tests.probes.fake_cuda.installed import fake_cuda

    second = replace(H200, index=1)
    ours, theirs = Pipe(duplex=False)
    with fake_cuda(board=Board(number=1, index=1, count=2), whole_models=False, counts=False) as gpu:
        serve(theirs, second, 0, [UNKNOWN])

    assert gpu.is_current
    ours.close()

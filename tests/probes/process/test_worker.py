"""The probe process by itself: what it says on stdout is events and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from probes.record.options import Options

ROOT = Path(__file__).parents[3]


def worker(options: Options, *, no_torch: bool = False) -> subprocess.CompletedProcess[str]:
    """Run it; `no_torch` as on a machine where torch is not installed."""
    hide = "import sys; sys.modules['torch'] = None; " if no_torch else "import sys; "
    program = f"{hide}sys.argv[1:] = [{options.to_json()!r}]; from probes.process.worker import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)


def test_without_torch_it_says_what_to_install(tmp_path) -> None:
    done = worker(Options(device="cpu", path=str(tmp_path / "r.jsonl")), no_torch=True)

    (event,) = (json.loads(line) for line in done.stdout.splitlines())
    assert (done.returncode, event["event"], event["exit_code"]) == (4, "failed", 4)
    assert "pip install 'mpplan[probe]'" in event["hint"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_every_line_is_an_event_from_the_first_to_the_last(tmp_path) -> None:
    path = str(tmp_path / "r.jsonl")

    done = worker(Options(device="cpu", suite="quick", workloads=("launch",), precisions=("fp32",), path=path))

    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert events[0] == "began"
    assert events[-1] == "ended"
    assert "measured" in events


def test_an_interruption_that_python_drops_ends_the_process_all_the_same() -> None:
    program = (
        "import os, signal, time, weakref; from probes.process import worker; worker.INTERRUPTED_GRACE_S = 0.5\n"
        "worker._end_in_time(); signal.signal(signal.SIGTERM, worker._interrupt)\n"
        "class Thing: pass\n"
        "thing = Thing(); weakref.finalize(thing, lambda: os.kill(os.getpid(), signal.SIGTERM)); del thing\n"
        "time.sleep(600)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=500)

    assert done.returncode in (130, 1)  # 1 where Python did raise it

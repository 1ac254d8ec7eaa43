"""Every line that only a GPU takes runs on the fake one, or in a test of its part, or is listed with the reason.

`fake_cuda/gpu_lines.py` finds those lines, `unrun_gpu_lines.csv` lists what only a real GPU can run. A line is named by
its file, function and text, so that what is edited elsewhere renames none.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import coverage
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.probes.fake_cuda.gpu_lines import Line, gpu_lines
from tests.probes.fake_cuda.once import LINES, once, shared_folder
from tests.probes.fake_cuda.suite_run import run_whole_suite
from tests.probes.fake_cuda.traced import SOURCE
from tests.probes.ranks.fake_run import run_broken, run_mixed, run_quick

ROOT = Path(__file__).parents[2]
LISTED = Path(__file__).with_name("unrun_gpu_lines.csv")
PARTS = (
    "device",
    "energy",
    "memory/test_peaks.py",
    "memory/test_side_process.py",
    "numerics/lowering/test_block_products.py",
    "numerics/lowering/test_recipes.py",
    "numerics/lowering/test_tried.py",
    "numerics/test_training.py::test_a_gpu_drops_the_same_from_the_same_start",
    "numerics/session/test_suite.py::test_a_gpu_that_is_lost_in_a_task_ends_the_run_as_that_and_not_as_the_tasks_fault",
    "precisions",
    "ranks/test_failure_reports.py",
    "record/test_provenance.py",
    "sensors/test_nvml.py",
    "session/test_doctor.py",
    "session/test_heat.py",
    "test_precisions.py",
    "test_workloads.py",
    "timing/test_device_gate.py",
    "timing/test_graphs.py",
    "workloads/test_gemm.py",
)
"""Tests of parts of the GPU's path, with what stands for its libraries: failures, and plans of long suites."""


def run_parts(folder: Path) -> int:
    """Run the tests of parts in a process that measures its lines; its exit code."""
    tests = [str(ROOT / "tests" / "probes" / name) for name in PARTS]
    words = [sys.executable, "-m", "pytest", "-p", "tests.probes.fake_cuda.traced", "-p", "no:cacheprovider", *tests]
    words += ["--basetemp", str(folder / "tests"), "-k", "not cpu_suite and not another_process"]
    return subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode


@pytest.fixture(scope="module")
def run_lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    """The lines that ran, by file within `probes/`."""
    assert once(tmp_path_factory, "parts", run_parts, with_lines=True) == 0, "a test of a part fails"
    makers = {"ranks": run_quick, "broken": run_broken, "mixed": run_mixed, "whole suite": run_whole_suite}
    for name, make in makers.items():  # what another module may be making comes last
        once(tmp_path_factory, name, make, with_lines=True)
    ran: dict[str, set[int]] = defaultdict(set)
    for path in shared_folder(tmp_path_factory).glob(f"*/{LINES}/*"):
        data = coverage.CoverageData(basename=str(path))
        data.read()
        for file in data.measured_files():
            ran[Path(file).relative_to(SOURCE).as_posix()].update(data.lines(file) or ())
    return ran


@pytest.fixture(scope="module")
def of_gpu() -> dict[Line, set[int]]:
    return gpu_lines(SOURCE)


@pytest.fixture(scope="module")
def listed() -> dict[Line, str]:
    with LISTED.open(encoding="utf-8", newline="") as file:
        return {Line(row["file"], row["function"], row["line"]): row["reason"] for row in csv.DictReader(file)}


@pytest.mark.long
def test_every_line_of_a_gpu_runs_or_is_listed_with_its_reason(run_lines, of_gpu, listed) -> None:
    unrun = {line for line, numbers in of_gpu.items() if not numbers <= run_lines[line.file]}

    assert sorted(unrun - set(listed)) == [], "let the fake GPU run these, or list them with the reason"


@pytest.mark.long
def test_every_listed_line_is_one_of_a_gpu_that_does_not_run_and_has_a_reason(run_lines, of_gpu, listed) -> None:
    unrun = {line for line, numbers in of_gpu.items() if not numbers <= run_lines[line.file]}

    assert sorted(set(listed) - unrun) == []
    assert all(len(reason) > 20 for reason in listed.values())


SOURCE_OF_TWO_DEVICES = """
def both(device):
    if device.kind == "cpu":
        return slow(device)
    if ready(device) and not device.kind != "cuda":
        prepare()
    return fast() if device.kind == "cuda" else slow(device)


def slow(device):
    return 2


def fast():
    return 1


def prepare():
    free()


def free():
    pass


def anyone():
    torch.cuda.synchronize()
    free_all()
"""


def test_the_lines_of_a_gpu_are_found_by_what_leads_to_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE_OF_TWO_DEVICES, encoding="utf-8")

    assert {(line.function, line.text) for line in gpu_lines(tmp_path)} == {
        ("both", 'if ready(device) and not device.kind != "cuda":'),  # a CPU has left by then
        ("both", "prepare()"),
        ("both", 'return fast() if device.kind == "cuda" else slow(device)'),
        ("fast", "return 1"),
        ("prepare", "free()"),
        ("free", "pass"),
        ("anyone", "torch.cuda.synchronize()"),
    }


def test_most_of_what_a_gpu_takes_is_found(of_gpu: dict[Line, set[int]]) -> None:
    functions = {(line.file, line.function) for line in of_gpu}

    assert len(of_gpu) > 700
    assert functions >= {
        ("device/clock.py", "CudaClock.batch"),
        ("device/device.py", "Device.as_current"),
        ("memory/peaks.py", "_peak_cuda"),
        ("memory/side_process.py", "SideTracker.result"),
        ("sensors/nvml.py", "NvmlSensor.read"),
        ("timing/graphs.py", "captured"),
        ("workloads/block.py", "_gpu_cases"),
    }

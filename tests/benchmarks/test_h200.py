"""The scripts for a GPU session: comparing two records, and a command that is cut off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

from benchmarks.h200.fitness import unfit
from planner.records.jsonl import read_measurements
from tests.planner.recorded import H200, a_measurement, write_record

FOLDER = Path(__file__).parents[2] / "benchmarks" / "h200"


def script(name: str) -> ModuleType:
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def timed(name: str, seconds: float, half: float = 0.005):
    interval = {"time_ci_low_s": seconds * (1 - half), "time_ci_high_s": seconds * (1 + half)}
    return a_measurement(probe_id=name, time_median_s=seconds, **interval, **H200)


def test_two_records_agree_within_their_intervals_and_one_percent(tmp_path: Path) -> None:
    # intervals of ±0.5% each: √2 · 0.5% + 1% = 1.7% are allowed
    first = write_record(tmp_path / "1.jsonl", timed("a", 1.0), timed("b", 1.0), timed("only", 1.0))
    second = write_record(tmp_path / "2.jsonl", timed("a", 1.016), timed("b", 1.03))

    comparison = script("compare_records").compare(first, second)

    assert (comparison["points"], comparison["agree"], comparison["only_in_first"]) == (2, 1, ["only"])
    worst = comparison["largest"][0]
    assert (worst["probe_id"], worst["agree"]) == ("b", False)
    assert worst["difference_ratio"] == pytest.approx(0.03)
    assert worst["allowed_ratio"] == pytest.approx(0.0171, abs=1e-4)


def fit_record(path: Path, *, energy_source: str = "counter", fp8: str = "ok") -> Path:
    """What a quick suite on an H200 leaves, in short."""
    support = dict.fromkeys(("fp32", "tf32", "fp16", "bf16-autocast", "bf16-fsdp"), "ok") | {"fp8": fp8}
    lines = [
        a_measurement(
            probe_id=f"support/{name}", kind="support", recipe=name, status=status, time_median_s=None,
            reason=None if status == "ok" else "a small matrix product failed: no kernel", **H200,
        )
        for name, status in support.items()
    ]  # fmt: skip
    kinds = ("bandwidth", "attention", "power", "gemm", "block", "end_to_end")
    sources = {"energy_source": energy_source, "energy_reason": "the energy counter does not tick"}
    lines += [a_measurement(probe_id=kind, kind=kind, **(sources if kind == "power" else {}), **H200) for kind in kinds]
    return write_record(path, *lines)


def test_a_machine_with_every_recipe_and_the_energy_counter_is_fit(tmp_path: Path) -> None:
    assert unfit(fit_record(tmp_path / "r.jsonl"), "cuda") == []


def test_a_machine_without_the_counter_or_a_recipe_stops_the_campaign_and_says_why(tmp_path: Path) -> None:
    by_field = fit_record(tmp_path / "r.jsonl", energy_source="instant")
    without_fp8 = fit_record(tmp_path / "s.jsonl", fp8="unsupported")

    assert unfit(by_field, "cuda") == [
        "energy comes from `instant`, not from the counter: the energy counter does not tick"
    ]
    assert unfit(without_fp8, "cuda") == [
        "fp8 is `unsupported` where `ok` is expected: a small matrix product failed: no kernel"
    ]
    assert unfit(tmp_path / "none.jsonl", "cuda") == ["the quick suite wrote no record; the log says why"]


def campaign(command: str, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(FOLDER / "campaign.py"), command, "--out", str(out), "--device", "cpu", *more]
    return subprocess.run(words, capture_output=True, text=True, timeout=900, check=False)


def a_wheel(folder: Path) -> Path:
    """A package that no machine has, as a wheel (PEP 427)."""
    folder.mkdir()
    info = "mpplan_rehearsal-1.0.dist-info"
    with ZipFile(folder / "mpplan_rehearsal-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("mpplan_rehearsal.py", "BROUGHT = True\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: mpplan-rehearsal\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return folder


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.mark.long
@needs_torch
def test_a_rehearsal_of_the_smoke_brings_its_wheels_and_writes_into_its_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, home = tmp_path / "out", tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    done = campaign("smoke", out, "--minutes", "8", "--wheels", str(a_wheel(tmp_path / "wheels")))

    assert done.returncode == 0, done.stdout
    assert (out / "packages" / "mpplan_rehearsal.py").exists()
    assert json.loads((out / "doctor.json").read_text(encoding="utf-8"))["schema"] == "mpplan.doctor/1"
    kept = read_measurements(out / "quick.jsonl.gz")
    assert kept.measurements == read_measurements(out / "quick.jsonl").measurements
    assert not list(home.iterdir())


@needs_torch
def test_a_step_that_is_killed_with_all_its_processes_leaves_a_whole_record(tmp_path: Path) -> None:
    record = tmp_path / "out" / "suite-1.jsonl"
    words = [sys.executable, str(FOLDER / "campaign.py"), "plans", "--out", str(record.parent), "--device", "cpu"]

    with subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        end = time.monotonic() + 900.0
        while process.poll() is None and time.monotonic() < end:
            if record.exists() and record.read_bytes().count(b"\n") >= 3:
                break
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)

    kept = read_measurements(record)
    assert len(kept.measurements) >= 3
    assert all("cut off" in problem.what for problem in kept.damage)  # at most the line under way


@needs_torch
def test_a_verification_on_another_device_than_the_records_is_refused_with_all_that_it_brought_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, home = tmp_path / "out", tmp_path / "home"
    out.mkdir()
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    write_record(out / "suite-1.jsonl", timed("gemm/a", 1.0))

    done = campaign("verify", out, "--minutes", "8", "--wheels", str(a_wheel(tmp_path / "wheels")))

    assert done.returncode == 2
    assert "stop: the record is of another GPU" in done.stdout
    assert (out / "packages" / "mpplan_rehearsal.py").exists()
    kept = read_measurements(out / "suite-1.jsonl.gz")
    assert kept.measurements == read_measurements(out / "suite-1.jsonl").measurements
    assert not list(home.iterdir())


def test_without_a_gpu_its_power_at_rest_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "clocks.json"
    monkeypatch.setattr(sys, "argv", ["measure_clocks.py", str(out), "--device", "cpu"])

    script("measure_clocks").main()

    assert "reason" in json.loads(out.read_text(encoding="utf-8"))


def test_gradients_are_measured_beside_their_product_in_every_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "gradients.json"
    monkeypatch.setattr(sys, "argv", ["measure_gradients.py", str(out), "--device", "cpu"])

    script("measure_gradients").main()

    rows = json.loads(out.read_text(encoding="utf-8"))["products"]
    assert [row["recipe"] for row in rows] == ["fp32", "bf16-autocast"]
    for row in rows:
        roles = [row[f"{role}_tflop_per_s"] for role in ("forward", "dgrad", "wgrad")]
        assert min(roles) > 0.0
        assert row["gradients_over_forward"] == pytest.approx(roles[0] * (1 / roles[1] + 1 / roles[2]) / 2)

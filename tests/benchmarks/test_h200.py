"""The scripts for a GPU session: comparing two records, judging claims, and a command that is cut off."""

from __future__ import annotations

import csv
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

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
    # intervals of ±0.5 % each: √2 · 0.5 % + 1 % = 1.7 % are allowed
    first = write_record(tmp_path / "1.jsonl", timed("a", 1.0), timed("b", 1.0), timed("only", 1.0))
    second = write_record(tmp_path / "2.jsonl", timed("a", 1.016), timed("b", 1.03))

    found = script("compare_records").compare(first, second)

    assert (found["points"], found["agree"], found["only_in_first"]) == (2, 1, ["only"])
    worst = found["largest"][0]
    assert (worst["probe_id"], worst["agree"]) == ("b", False)
    assert worst["difference_ratio"] == pytest.approx(0.03)
    assert worst["allowed_ratio"] == pytest.approx(0.0171, abs=1e-4)


def step(recipe: str, seconds: float, peak: float, joules: float, **changes: object):
    values: dict[str, object] = {
        "probe_id": f"{recipe}{changes}", "kind": "end_to_end", "model": "llama-llama-3.2-1b", "layers": 4,
        "seq_len": 4096, "micro_batch": 1, "recipe": recipe, "recompute": "none", "compiled": False,
        "time_median_s": seconds, "memory_allocated_peak_bytes": peak, "energy_j_per_iteration": joules,
    }  # fmt: skip
    return a_measurement(**(values | H200 | changes))


def block(seconds: float, peak: float, recompute: str):
    extra = "/recompute" if recompute == "full" else ""
    return a_measurement(
        probe_id=f"block/8b/L4/bf16-fsdp{extra}", kind="block", recipe="bf16-fsdp", recompute=recompute,
        time_median_s=seconds, memory_allocated_peak_bytes=peak, memory_persistent_bytes=4e9, **H200,
    )  # fmt: skip


def test_claims_are_held_against_what_a_record_says(tmp_path: Path) -> None:
    record = write_record(
        tmp_path / "r.jsonl",
        step("fp32", 0.8, 10e9, 400.0),
        step("tf32", 0.2, 10e9, 120.0),
        step("bf16-fsdp", 0.1, 7e9, 66.0),
        step("fp8", 0.08, 7e9, 50.0),
        block(0.100, 12e9, "none"),
        block(0.130, 6e9, "full"),
    )

    judged = script("measure_claims").judge(record)
    found = {claim["id"]: [one["measured"] for one in claim["measured"]] for claim in judged}

    assert found["c10"] == [pytest.approx(4.0)]  # TF32 against FP32
    assert found["c11"] == [pytest.approx(1.25)]  # FP8 against BF16, whole step
    assert pytest.approx(0.45) in found["c13"]  # 66 J instead of 120 J
    assert found["c18"] == [pytest.approx(0.75)]  # 2 GB of activations instead of 8 GB
    assert found["c19"] == [pytest.approx(0.30)]
    assert found["c05"] == []  # no BERT in this record


def test_every_claim_of_the_table_has_a_way_to_measure_it() -> None:
    with (FOLDER / "claims.csv").open(encoding="utf-8", newline="") as lines:
        ids = [row["id"] for row in csv.DictReader(lines)]

    assert ids == list(script("measure_claims").HOW)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_a_command_that_runs_out_of_time_leaves_a_whole_record_in_few_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    out = tmp_path / "out"
    command = [sys.executable, str(FOLDER / "session.py"), "verify", "--out", str(out)]

    done = subprocess.run(
        [*command, "--device", "cpu", "--minutes", "0.7"], capture_output=True, text=True, timeout=600, check=False
    )

    assert done.returncode == 0
    files = list(out.iterdir())
    assert len(files) <= 8
    assert all(path.stat().st_size <= 16 * 2**20 for path in files)
    record = read_measurements(out / "verify.jsonl")
    assert record.measurements
    assert not [problem for problem in record.problems if not problem.used]


def test_a_first_record_of_another_gpu_does_not_cost_the_verification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = script("session")
    first = tmp_path / "suite-1.jsonl"
    first.write_text("a record\n", encoding="utf-8")
    session = module.Session(tmp_path / "out", "cuda", 8.0, first)
    asked: list[tuple[str, ...]] = []

    def probe(name: str, record: Path, *more: str) -> int:
        asked.append(more)
        return 2 if "--resume" in more else 0  # as `mpplan probe` refuses a record of another device

    monkeypatch.setattr(session, "run", lambda *command, **settings: 0)
    monkeypatch.setattr(session, "probe", probe)

    module.verify(session)

    assert ["--resume" in more for more in asked] == [True, False]
    assert not (tmp_path / "out" / "verify.jsonl").exists()  # made anew by the probe

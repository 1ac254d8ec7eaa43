"""A compressed record among the package's own data is evidence of its own kind, after the user's."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from mpplan.api.answer import estimate
from mpplan.app import main
from planner.evidence import EvidenceKind
from planner.measured.device import measured_rates
from planner.measured.layers.host import with_host
from planner.measured.terms import measured_terms
from planner.rates.ladder import resolve_rates
from planner.records import home, store
from planner.records.figures import PredictedFigures
from planner.records.jsonl import read_measurements
from planner.records.measurement import Measurement
from planner.records.store import open_record
from probes.verify.predict import predict
from tests.planner.build import cluster, recipe
from tests.planner.recorded import H200, a_canary, a_measurement, kernels, write_record

NAME = "h200-sxm-141gb-2026-11-27"
H100_NAME = "h100-sxm5-80gb-2026-11-27"


def compressed(path: Path, *points: Measurement) -> Path:
    """The record as a campaign leaves it: `name.jsonl.gz`."""
    plain = write_record(path.with_suffix(""), *points)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return path


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue with one record, and an empty store of the user's."""
    shipped = tmp_path / "catalog" / "records"
    for module in (home, store):
        monkeypatch.setattr(module, "SHIPPED", shipped)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    compressed(shipped / f"{NAME}.jsonl.gz", a_canary(**H200), *kernels())
    return tmp_path


def kinds_of_records(calibration: str | None = None) -> dict[str, EvidenceKind]:
    answer = estimate(params="7B", precision="bf16", gpu="h200-sxm-141gb", gpus=8, calibration=calibration)
    return {source.id: source.kind for source in answer.evidence if source.id.startswith("record:")}


def test_a_shipped_record_is_used_as_shipped_evidence(catalogue: Path) -> None:
    (record,) = [record for record in store.list_records() if record.gpu == "h200-sxm-141gb"]

    assert (record.name, record.shipped, record.facts.trustworthy) == (NAME, True, True)
    assert kinds_of_records() == {"record:0d0e5f0e": EvidenceKind.SHIPPED}


def test_the_users_own_record_of_that_gpu_comes_first(catalogue: Path) -> None:
    own = [replace(point, run_id="own") for point in (a_canary(**H200), *kernels())]
    write_record(catalogue / "data" / "mpplan" / "records" / "mine.jsonl", *own)

    assert kinds_of_records() == {"record:own": EvidenceKind.MEASURED}


def learned_on(gpu: str, folder: Path) -> str:
    """Learn from two runs on a GPU; return the path of the calibration."""
    runs = folder / "runs.csv"
    rows = [
        {"id": f"run-{gpus}", "metric": "tokens_per_s_per_gpu", "value": "9000", "gpu": gpu,
         "n_gpus": str(gpus), "model": "Llama3.1-8B", "precision": "bf16", "micro_batch": "1",
         "global_batch_seqs": "64", "seq_len": "8192"}
        for gpus in (8, 16)
    ]  # fmt: skip
    with runs.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    learned = folder / "stack.json"
    assert main(["calibrate", str(runs), "-o", str(learned), "-q"]) == 0
    return str(learned)


def test_what_own_runs_taught_comes_before_a_shipped_record(catalogue: Path) -> None:
    assert kinds_of_records(calibration=learned_on("h200-sxm-141gb", catalogue)) == {}


def test_own_runs_on_another_gpu_leave_the_shipped_record_in_use(catalogue: Path) -> None:
    """They say nothing about this GPU; the plan otherwise changed by what the record says, and blamed the runs."""
    learned = learned_on("h100-sxm5-80gb", catalogue)

    assert kinds_of_records(calibration=learned) == {"record:0d0e5f0e": EvidenceKind.SHIPPED}
    write_record(catalogue / "data" / "mpplan" / "records" / "other.jsonl", a_measurement())
    assert kinds_of_records(calibration=learned) == {"record:0d0e5f0e": EvidenceKind.SHIPPED}


# From here on the records that really ship.


def test_records_that_ship_are_named_for_their_gpu_and_can_be_trusted() -> None:
    records = [open_record(path, shipped=True) for path in sorted(home.SHIPPED.rglob("*.jsonl.gz"))]

    assert {record.path.parent.name for record in records} == {"records", "named"}
    for record in records:
        assert record.verdict.trustworthy, record.verdict.findings
        assert record.file.damage == ()
        assert record.name == f"{record.gpu}-{(record.date or '')[:10]}"


def test_a_plan_on_another_gpu_reads_no_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert home.any_records(["h200-sxm-141gb"])
    assert not home.any_records(["h100-sxm5-80gb"])


def test_a_plan_takes_the_record_of_an_h100_only_where_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    def kinds(**named: str) -> set[EvidenceKind]:
        answer = estimate(params="7B", precision="bf16", gpu="h100-sxm5-80gb", gpus=8, **named)
        return {source.kind for source in answer.evidence if source.id.startswith("record:")}

    assert kinds() == set()
    assert kinds(records=H100_NAME) == {EvidenceKind.SHIPPED}


@pytest.mark.parametrize(
    ("policy", "term", "within"),
    [
        ("bf16", "linear_flop_per_s", 0.05),
        ("fp8", "linear_flop_per_s", 0.13),
        ("bf16", "attention_flop_per_s", 0.10),
        ("fp8", "attention_flop_per_s", 0.03),
    ],
)
def test_what_publications_say_of_an_h100_is_what_was_measured_on_one(policy: str, term: str, within: float) -> None:
    # the fit of the published rates knows nothing of this record
    asked = recipe(stack="tuned", policy=policy)
    base = resolve_rates(cluster("h100-sxm5-80gb"), asked).terms
    rates = measured_rates(read_measurements(home.SHIPPED / "named" / f"{H100_NAME}.jsonl.gz").latest())

    assert measured_terms(rates, asked, base)[term].value == pytest.approx(base[term].value, rel=within)


Verified = dict[str, tuple[Measurement, PredictedFigures]]


def predicted_anew(path: Path) -> Verified:
    """Steps of a record that were never run before, predicted anew from the anchors of then."""
    points = read_measurements(path).latest()
    by_id = {point.probe_id: point for point in points}
    known = [point for point in points if point.kind != "verify"]
    rates = with_host(measured_rates(known), known)
    return {
        point.probe_id.removeprefix("verify/"): (
            point,
            predict(point, None, [(by_id[name], None) for name in point.predicted.probe_ids], rates),
        )
        for point in points
        if point.kind == "verify"
    }


@pytest.fixture(scope="module")
def verified() -> Verified:
    return predicted_anew(home.SHIPPED / f"{NAME}.jsonl.gz")


@pytest.fixture(scope="module")
def verified_on_h100() -> Verified:
    return predicted_anew(home.SHIPPED / "named" / f"{H100_NAME}.jsonl.gz")


def error(case: tuple[Measurement, PredictedFigures]) -> float:
    point, now = case
    assert now.time_s is not None
    assert point.time.median_s is not None
    return now.time_s / point.time.median_s - 1.0


def test_steps_that_the_gpu_bounds_are_predicted_from_its_record(verified: Verified) -> None:
    bound_by_host = {"llama-llama-3.2-1b-L16-s2048b1/fp8", "resnet-resnet-50-L50-s224b256/bf16-autocast"}
    errors = [abs(error(case)) for name, case in verified.items() if name not in bound_by_host]

    assert len(verified) == 7
    assert median(errors) <= 0.05
    assert max(errors) <= 0.08


def test_steps_that_the_host_bounds_are_predicted_from_what_launching_takes(verified_on_h100: Verified) -> None:
    by_host = ("llama-llama-3.2-1b-L16-s2048b1/fp8", "llama-llama-3.2-1b-L16-s2048b1/bf16-fsdp")

    assert len(verified_on_h100) == 6
    assert median(abs(error(case)) for case in verified_on_h100.values()) <= 0.08
    assert all(abs(error(verified_on_h100[name])) <= 0.09 for name in by_host)


def test_their_memory_was_predicted_to_a_few_thousandths(verified: Verified, verified_on_h100: Verified) -> None:
    for point, _ in (*verified.values(), *verified_on_h100.values()):
        then, peak = point.predicted.memory_bytes, point.memory.allocated_peak_bytes
        assert then is not None
        assert peak is not None
        assert then == pytest.approx(peak, rel=3e-3)

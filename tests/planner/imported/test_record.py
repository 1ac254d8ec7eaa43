"""Readings as the lines of one record: the GPU, the source, the doubts; and what a plan makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputFileError, UsageError
from planner.imported.formats import format_of
from planner.imported.reading import ImportContext
from planner.imported.record import ImportedFile, device_of, to_measurements
from planner.imported.source import SourceFile
from planner.measured.device import evidence_of, measured_rates
from planner.records.check import check_record
from planner.records.jsonl import read_measurements
from planner.records.store import newest_record, open_record, summarise
from tests.planner.imported.readings import context_of, sample, text_file
from tests.planner.imported.traces import H100, Trace, add_attention, of_products
from tests.planner.recorded import BANDWIDTH, H200, RATE, a_measurement, write_record


def imported(source: SourceFile, context: ImportContext | None = None) -> ImportedFile:
    form = format_of(source)
    return ImportedFile(source=source, form=form, reading=form.read(source, context or ImportContext()))


def trace(name: str = "NVIDIA H100 80GB HBM3", of: Trace | None = None) -> ImportedFile:
    content = (of or of_products()).written(deviceProperties=[H100 | {"name": name}])
    return imported(SourceFile(name="trace.json", content=content))


def test_the_gpu_is_found_by_its_name_and_memory() -> None:
    device = device_of([trace()], None)

    assert (device.gpu, device.name) == ("h100-sxm5-80gb", "NVIDIA H100 80GB HBM3")


def test_a_gpu_that_no_file_names_must_be_named() -> None:
    zeus = imported(sample("zeus.csv"))

    with pytest.raises(UsageError, match="no file says which GPU") as caught:
        device_of([zeus], None)
    assert "--gpu" in str(caught.value.hint)
    assert device_of([zeus], "h100-sxm5-80gb").gpu == "h100-sxm5-80gb"


def test_a_name_that_no_row_bears_is_kept_with_a_doubt() -> None:
    file = trace("NVIDIA GeForce RTX 9999")
    device = device_of([file], None)

    (line, *_) = to_measurements([file], device, "0.0")

    assert device.gpu is None
    assert "no GPU in the catalogue is called" in line.imported.doubts[-1]


@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "h200-sxm-141gb"])
def test_a_file_of_another_gpu_than_was_named_is_refused(gpu: str) -> None:
    with pytest.raises(InputFileError, match=r"trace\.json:1: expected a file of"):
        device_of([trace()], gpu)


def test_files_of_two_gpus_make_no_record() -> None:
    with pytest.raises(InputFileError, match="expected files of one GPU"):
        device_of([trace(), trace("NVIDIA H200")], None)


@pytest.mark.parametrize("energy_j", ["1.2", "1200000"])  # kilojoules and millijoules for joules, of a second
def test_a_power_that_no_gpu_draws_is_a_slip_of_units_and_refused(energy_j: str) -> None:
    text = f"start_time,window_name,elapsed_time,gpu0_energy\n1,step,1.0,{energy_j}\n"
    files = [imported(text_file(text, "zeus.csv"))]

    with pytest.raises(InputFileError, match=r"zeus\.csv:1: expected 5 to 5000 W per GPU"):
        to_measurements(files, device_of(files, "h100-sxm5-80gb"), "0.1.0")


def test_the_lines_say_their_source_and_no_more_of_it_than_that(tmp_path: Path) -> None:
    files = [imported(sample("nvidia-smi.csv"), context_of("megatron.log"))]
    path = write_record(tmp_path / "r.jsonl", *to_measurements(files, device_of(files, None), "0.1.0"))

    (line,) = read_measurements(path).measurements

    assert (line.imported.tool, line.imported.file, line.imported.date) == (
        "nvidia-smi", "nvidia-smi.csv", "2026-11-20T10:00:00",
    )  # fmt: skip
    assert line.imported.sha256 == sample("nvidia-smi.csv").sha256
    assert (line.imported.gpu, line.software.mpplan_version) == ("h100-sxm5-80gb", "0.1.0")
    assert str(tmp_path) not in path.read_text(encoding="utf-8")


def test_the_same_files_make_the_same_record_but_for_the_time() -> None:
    files = [trace()]
    first, second = (to_measurements(files, device_of(files, None), "0.1.0") for _ in range(2))

    assert [(line.run_id, line.probe_id) for line in first] == [(line.run_id, line.probe_id) for line in second]


def test_check_names_the_tool_and_every_doubt_of_an_imported_record(tmp_path: Path) -> None:
    files = [trace()]
    path = write_record(tmp_path / "r.jsonl", *to_measurements(files, device_of(files, None), "0.1.0"))

    verdict = check_record(read_measurements(path))

    texts = [finding.what for finding in verdict.findings if finding.id == "imported"]
    assert texts[0] == "8 points imported from torch-trace, not measured by mpplan"
    assert set(files[0].reading.doubts) <= set(texts)
    assert verdict.trustworthy


def test_an_imported_record_is_never_chosen_by_itself(tmp_path: Path) -> None:
    files = [trace()]
    path = write_record(tmp_path / "r.jsonl", *to_measurements(files, device_of(files, None), "0.1.0"))

    summary = summarise(open_record(path))

    assert (summary.gpu, summary.facts.imported, summary.facts.trustworthy) == ("h100-sxm5-80gb", "torch-trace", True)
    assert newest_record("h100-sxm5-80gb", [summary]) is None


def test_measured_and_imported_lines_do_not_share_a_file(tmp_path: Path) -> None:
    files = [trace()]
    lines = to_measurements(files, device_of(files, None), "0.1.0")
    own = a_measurement(run_id=lines[0].run_id, **(H200 | {"device_name": lines[0].device.name}))

    file = read_measurements(write_record(tmp_path / "r.jsonl", *lines, own))

    assert len(file.measurements) == len(lines)
    assert [(problem.line, problem.key) for problem in file.damage] == [(len(lines) + 1, "imported_tool")]


def test_a_record_cannot_claim_a_gpu_that_does_not_exist(tmp_path: Path) -> None:
    line = a_measurement(**(H200 | {"imported_tool": "x", "imported_gpu": "no-such-gpu"}))

    assert open_record(write_record(tmp_path / "r.jsonl", line)).gpu == "h200-sxm-141gb"


def test_a_plan_gets_the_rates_of_a_traces_kernels_with_their_doubts() -> None:
    kernels = of_products()
    for length in (2048, 8192, 16384):
        for _ in range(6):
            add_attention(kernels, length, 2.0 * 32 * 128 * length**2 / 400e12, 5.0 * 32 * 128 * length**2 / 350e12)
    files = [trace(of=kernels)]

    rates = measured_rates(to_measurements(files, device_of(files, None), "0.1.0"))

    assert rates.matmul_flop_per_s["bf16"].value == pytest.approx(RATE, rel=0.01)
    assert rates.operand_bytes_per_s["bf16"].value == pytest.approx(BANDWIDTH, rel=0.05)
    assert rates.matmul_flop_per_s["bf16"].relative_sd >= 0.1
    assert rates.attention_forward_flop_per_s["bf16"].value == pytest.approx(400e12, rel=0.01)
    evidence = evidence_of(rates)
    assert (evidence.source, evidence.public) == ("torch-trace (trace.json)", False)
    assert "imported, not measured by mpplan" in evidence.what

"""Record files: what is usable is used, what is not is named with its line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from planner.errors import UsageError
from planner.records.flat import nest
from planner.records.jsonl import read_measurements, record_bytes, to_line
from planner.records.measurement import SCHEMA, Measurement


def a_measurement(**changes: object) -> Measurement:
    values: dict[str, object] = {
        "suite_version": 1,
        "run_id": "0d0e5f0e-run",
        "probe_id": "gemm/1024x1024x1024/forward/bf16",
        "seq": 0,
        "status": "ok",
        "kind": "gemm",
        "precision": "bf16",
        "time_median_s": 0.004,
        "time_ci_low_s": 0.00396,
        "time_ci_high_s": 0.00404,
        "quality": "ok",
        "other_load_ratio": 0.01,
        "recipe_flags": ("scaled_mm",),
        "environment": {"OMP_NUM_THREADS": "2"},
        "loss_trace": (2.5, 2.25),
        "device_kind": "cpu",
        "device_name": "Some CPU",
    }
    return nest(values | changes)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def edited(measurement: Measurement, **changes: object) -> str:
    return json.dumps(json.loads(to_line(measurement)) | changes)


def problems_of(path: Path) -> list[str]:
    return [problem.describe("r.jsonl") for problem in read_measurements(path).problems]


def test_a_line_reads_back_as_the_measurement_that_was_written(tmp_path: Path) -> None:
    point = a_measurement()

    read = read_measurements(write(tmp_path / "r.jsonl", to_line(point)))

    assert read.measurements == (point,)
    assert read.problems == ()


def test_a_line_leaves_out_what_is_unknown() -> None:
    document = json.loads(to_line(a_measurement()))

    assert "power_mean_w" not in document
    assert document["schema"] == SCHEMA


def test_a_nan_is_never_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_line(a_measurement(time_median_s=float("nan")))


def test_the_last_line_cut_off_costs_only_that_line(tmp_path: Path) -> None:
    line = to_line(a_measurement())
    path = tmp_path / "r.jsonl"
    path.write_text(line + "\n" + line[: len(line) // 2], encoding="utf-8")

    assert len(read_measurements(path).measurements) == 1
    assert problems_of(path) == ["r.jsonl:2: expected one JSON object, the line is cut off"]


def test_a_line_of_another_schema_version_is_named_and_left_out(tmp_path: Path) -> None:
    point = a_measurement()
    path = write(tmp_path / "r.jsonl", edited(point, schema="mpplan.probe/9"), to_line(point))

    assert len(read_measurements(path).measurements) == 1
    assert problems_of(path) == [
        f"r.jsonl:1: schema: expected `{SCHEMA}`, found `mpplan.probe/9`, which a newer mpplan writes"
    ]


def test_of_two_interleaved_records_the_longer_is_used_and_the_other_named_line_by_line(tmp_path: Path) -> None:
    usual_run, other_run = a_measurement(run_id="aaaaaaaa-1"), a_measurement(run_id="bbbbbbbb-2")
    path = write(
        tmp_path / "r.jsonl", *(to_line(point) for point in (usual_run, other_run, usual_run, other_run, usual_run))
    )

    assert {point.run_id for point in read_measurements(path).measurements} == {"aaaaaaaa-1"}
    assert problems_of(path) == [
        f"r.jsonl:{line}: run_id: two records in one file: run `bbbbbbbb` among the lines of run `aaaaaaaa`"
        for line in (2, 4)
    ]


def test_a_line_of_another_device_is_set_aside(tmp_path: Path) -> None:
    usual_device, other_device = a_measurement(), a_measurement(device_name="NVIDIA A100-SXM4-80GB")
    path = write(tmp_path / "r.jsonl", to_line(usual_device), to_line(usual_device), to_line(other_device))

    assert len(read_measurements(path).measurements) == 2
    assert problems_of(path) == [
        "r.jsonl:3: device_name: measured on another device, `NVIDIA A100-SXM4-80GB`, than most of the file, `Some CPU`"
    ]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"time_median_s": float("nan")}, "time_median_s: expected a finite number, found `nan`"),
        ({"time_median_s": -0.1}, "time_median_s: expected a number that is not negative, found `-0.1`"),
        ({"time_median_s": 0}, "time_median_s: expected a number greater than 0, found `0`"),
        ({"time_median_s": "fast"}, "time_median_s: expected a number, found `fast`"),
        ({"time_median_s": 1e-20}, "time_median_s: expected at least 1e-09 s, found `1e-20`"),
        (
            {"time_ci_high_s": 1e4},
            "time_ci_high_s: expected at most 100 times time_median_s, 0.004, found `10000`",
        ),
        ({"flop_model": 0}, "flop_model: expected a number greater than 0, found `0`"),
        ({"bytes_min": 0}, "bytes_min: expected a number greater than 0, found `0`"),
        ({"time_median_s": None}, "time_median_s: expected with status `ok`, but missing"),
        ({"tokens": 1.5}, "tokens: expected a whole number, found `1.5`"),
        ({"compiled": "no"}, "compiled: expected true or false, found `no`"),
        ({"recipe_flags": "x"}, "recipe_flags: expected a list, found `x`"),
        ({"environment": []}, "environment: expected an object, found `[]`"),
        ({"loss_trace": [1.0, float("inf")]}, "loss_trace: expected a finite number, found `inf`"),
        ({"probe_id": None}, "probe_id: expected, but missing"),
    ],
)
def test_a_figure_that_cannot_be_is_named_and_its_line_left_out(
    tmp_path: Path, changes: dict[str, object], problem: str
) -> None:
    path = write(tmp_path / "r.jsonl", to_line(a_measurement()), edited(a_measurement(), **changes))

    assert len(read_measurements(path).measurements) == 1
    assert problems_of(path) == [f"r.jsonl:2: {problem}"]


def test_a_contended_point_is_used_with_a_wider_range_and_named(tmp_path: Path) -> None:
    quiet, contended = a_measurement(), a_measurement(quality="contended", other_load_ratio=0.4)
    path = write(tmp_path / "r.jsonl", to_line(contended))

    (read,) = read_measurements(path).measurements

    assert quiet.time_relative_sd == pytest.approx(0.01 / 1.96)
    assert read.time_relative_sd == pytest.approx(3**0.5 * 0.01 / 1.96)
    assert problems_of(path) == [
        "r.jsonl:1: quality: `gemm/1024x1024x1024/forward/bf16` was measured while 40% of the machine did something"
        " else; used with a wider range"
    ]


def test_a_temperature_may_be_below_zero(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", to_line(a_measurement(temperature_start_c=-3.0)))

    assert problems_of(path) == []


@pytest.mark.parametrize("text", ["", "\n\n", "[]\n", "null\n", "{}\n", "\x00\n", "[" * 100_000 + "\n"])
def test_a_file_without_a_usable_line_says_so_and_never_raises(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text, encoding="utf-8")

    assert read_measurements(path).measurements == ()
    assert "r.jsonl: no usable line" in problems_of(path)


def test_bytes_that_are_no_text_cost_only_their_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\xff\xfe\n" + to_line(a_measurement()).encode() + b"\n")

    assert len(read_measurements(path).measurements) == 1
    assert problems_of(path) == ["r.jsonl:1: expected UTF-8 text"]


def test_a_compressed_record_is_read_and_one_cut_off_keeps_its_whole_lines(tmp_path: Path) -> None:
    lines = "".join(to_line(a_measurement(probe_id=f"p{i}", seq=i)) + "\n" for i in range(2000)).encode()
    whole, cut = tmp_path / "r.jsonl.gz", tmp_path / "cut.jsonl.gz"
    whole.write_bytes(gzip.compress(lines))
    cut.write_bytes(gzip.compress(lines)[:-2000])

    assert len(read_measurements(whole).measurements) == 2000
    assert 0 < len(read_measurements(cut).measurements) < 2000
    assert "the file ends early" in problems_of(cut)[-1]


def test_a_record_that_is_called_packed_and_is_not_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl.gz", to_line(a_measurement()))

    assert any("1: expected a gzip archive, as the name says" in problem for problem in problems_of(path))


def test_a_mark_of_the_byte_order_costs_no_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(to_line(a_measurement()) + "\n", encoding="utf-8-sig")

    assert len(read_measurements(path).measurements) == 1
    assert problems_of(path) == []


def test_a_point_measured_again_replaces_the_earlier_one(tmp_path: Path) -> None:
    first, repeated = a_measurement(time_median_s=1.0), a_measurement(time_median_s=2.0, seq=1)
    path = write(tmp_path / "r.jsonl", to_line(first), to_line(repeated))

    assert [point.time.median_s for point in read_measurements(path).latest()] == [2.0]


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_measurements(tmp_path / "none.jsonl")


def test_a_record_as_bytes_is_packed_where_its_name_says_so() -> None:
    plain = record_bytes([a_measurement()], "r.jsonl")

    assert plain.decode() == to_line(a_measurement()) + "\n"
    assert gzip.decompress(record_bytes([a_measurement()], "r.jsonl.gz")) == plain

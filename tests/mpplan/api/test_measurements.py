"""`--records`: files and folders that the user names, whole, cut off, of another GPU, or nothing at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpplan.api.measurements import chosen_records, damage, named_records
from mpplan.api.record_shelf import RecordShelf
from planner.errors import InputFileError, UsageError
from planner.records import store
from planner.records.flat import nest
from planner.records.jsonl import to_line
from reports.text.messages import word
from tests.planner.collective_points import collectives
from tests.planner.recorded import SHAPES, a_canary, a_measurement, gemm, kernels, write_record

H200 = {"device_kind": "cuda", "device_name": "NVIDIA H200", "memory_total_bytes": 150_754_820_096.0}
"""As the driver names it: 143 771 MiB."""
A100 = {"device_kind": "cuda", "device_name": "NVIDIA A100-SXM4-80GB", "memory_total_bytes": 85_520_809_984.0}


def line(number: int, **changes: object) -> str:
    values: dict[str, object] = {
        "suite_version": 1,
        "run_id": "5f0c",
        "probe_id": f"gemm/{number}",
        "seq": number,
        "status": "ok",
        "kind": "gemm",
        "precision": "bf16",
        "time_median_s": 0.001,
        "time_ci_low_s": 0.00099,
        "time_ci_high_s": 0.00101,
        "samples": 30,
        "quality": "ok",
        "other_load_ratio": 0.0,
        "timestamp_utc": f"2026-01-02T03:04:{number:02d}Z",
    }
    return to_line(nest(values | H200 | changes)) + "\n"  # type: ignore[arg-type]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "h200.jsonl"
    path.write_text("".join(line(number) for number in range(8)), encoding="utf-8")
    return path


@pytest.fixture
def cut(whole: Path) -> Path:
    path = whole.with_name("cut.jsonl")
    path.write_text(whole.read_text(encoding="utf-8")[:-100], encoding="utf-8")
    return path


def test_a_file_of_the_asked_gpu_is_taken(whole):
    (record,) = named_records(str(whole), ["h200-sxm-141gb"])

    assert record.path == whole
    assert damage([record]) == ()


def test_a_file_is_read_once_for_an_answer(whole, monkeypatch):
    paths = []
    read = store.read_measurements
    monkeypatch.setattr(store, "read_measurements", lambda path: paths.append(path) or read(path))

    chosen = chosen_records(RecordShelf(str(whole)), ["h200-sxm-141gb"])

    assert [record.path for record in chosen.all] == paths == [whole]


def test_a_folder_gives_its_record_of_each_asked_gpu(whole):
    (record,) = named_records(str(whole.parent), ["h100-sxm5-80gb", "h200-sxm-141gb"])

    assert record.gpu == "h200-sxm-141gb"


def test_a_folder_without_one_says_so(whole):
    with pytest.raises(UsageError, match="no trustworthy record of h100-sxm5-80gb"):
        named_records(str(whole.parent), ["h100-sxm5-80gb"])


def test_a_file_of_another_gpu_is_refused(whole):
    for gpus in (["h100-sxm5-80gb"], ["h100-sxm5-80gb", "a100-sxm4-80gb"]):
        with pytest.raises(InputFileError, match="NVIDIA H200"):
            named_records(str(whole), gpus)


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"none\.jsonl"):
        named_records(str(tmp_path / "none.jsonl"), ["h200-sxm-141gb"])


@pytest.mark.parametrize("kind", ["overlap", "parallel_step", "waiting"])
def test_a_record_of_ranks_without_a_collective_gives_no_rate_and_says_what_it_holds(tmp_path, kind):
    path = write_record(tmp_path / "ranks.jsonl", *collectives(lambda size: 2e-5, kind=kind))

    with pytest.raises(InputFileError, match=f"expected kernels or collectives between GPUs, found only {kind}"):
        named_records(str(path), ["h200-sxm-141gb"])


def test_a_record_of_what_training_showed_alone_is_no_fault_and_gives_no_rate_of_any_gpu(tmp_path):
    point = a_measurement(
        kind="numerics",
        time_median_s=None,
        time_ci_low_s=None,
        time_ci_high_s=None,
        precision="fp8",
        recipe="fp8",
        **H200,
    )
    path = write_record(tmp_path / "numerics.jsonl", point)

    assert named_records(str(path), ["h200-sxm-141gb"]) == named_records(str(path), ["h100-sxm5-80gb"]) == ()


def test_a_record_of_gloo_is_no_record_of_a_gpu_even_where_it_is_named(tmp_path):
    on_cpu = {"backend": "gloo", "device_kind": "cpu", "device_name": "Some CPU"}
    path = write_record(tmp_path / "gloo.jsonl", *collectives(lambda size: 2e-5 + size / 1e9, **on_cpu))

    with pytest.raises(InputFileError, match="expected a record of `h200-sxm-141gb`, found `Some CPU`"):
        named_records(str(path), ["h200-sxm-141gb"])
    with pytest.raises(InputFileError, match="between GPUs, found only collective"):
        named_records(str(path), ["cpu-local"])


def test_a_file_with_kernels_and_collectives_gives_both_and_one_with_either_gives_that(tmp_path):
    mixed = write_record(tmp_path / "both.jsonl", *kernels(), *collectives(lambda size: 2e-5 + size / 4e10))
    ranks = write_record(tmp_path / "ranks.jsonl", *collectives(lambda size: 2e-5 + size / 4e10))
    alone = write_record(tmp_path / "alone.jsonl", *kernels())
    given = [chosen_records(RecordShelf(str(path)), ["h200-sxm-141gb"]) for path in (mixed, ranks, alone)]

    assert [(len(chosen.records), len(chosen.networks)) for chosen in given] == [(1, 1), (0, 1), (1, 0)]
    assert len(given[0].all) == 1


def test_lines_after_a_cut_are_named_and_the_others_used(cut):
    (record,) = named_records(str(cut), ["h200-sxm-141gb"])

    assert len(record.file.measurements) == 7
    assert [line.split(": ")[0] for line in damage([record])] == [f"{cut}:8"]


def test_estimate_uses_the_usable_lines_of_a_cut_file_names_the_lost_one_and_exits_3(run, cut):
    result = run(
        "estimate", "--params", "7B", "--gpus", "8", "--gpu", "h200-sxm-141gb", "--records", str(cut), "--json"
    )
    error, hint = result.err.splitlines()[-2:]

    assert result.code == 3
    assert json.loads(result.out)["schema"] == "mpplan.estimate/2"
    assert error.startswith(f"error: {cut}:8: ")
    assert "mpplan check" in hint


def test_estimate_refuses_a_file_without_one_usable_line(run, home):
    (home / "broken.jsonl").write_text('{"schema": "mpplan.pro', encoding="utf-8")
    result = run("estimate", "--params", "7B", "--gpus", "8", "--records", "broken.jsonl")

    assert result.code == 3
    assert result.out == ""
    assert result.err.startswith("error: broken.jsonl")


def test_a_point_that_was_measured_again_replaces_the_earlier_one(run, tmp_path):
    asked = ("estimate", "--params", "7B", "--gpus", "8", "--gpu", "h200-sxm-141gb", "--precision", "bf16", "--json")
    slow, later = [gemm(*shape, noise=2.0) for shape in SHAPES], kernels()
    steps = {}
    for name, points in {"slow": [*slow, *later[len(SHAPES) :]], "resumed": [*slow, *later], "alone": later}.items():
        write_record(tmp_path / f"{name}.jsonl", *points)
        answer = json.loads(run(*asked, "--records", str(tmp_path / f"{name}.jsonl")).out)
        steps[name] = next(plan["step_s"]["total"] for plan in answer["plans"] if plan["precision"] == "bf16")

    assert steps["resumed"] == steps["alone"]
    assert steps["slow"] > 1.5 * steps["alone"]


def test_a_plan_says_that_a_newer_record_is_of_a_part_and_which_command_completes_it(tmp_path: Path) -> None:
    whole = [point for point in kernels() if point.kind != "attention"]
    write_record(tmp_path / "store" / "whole.jsonl", *whole, a_canary(**H200))
    day = {"timestamp_utc": "2026-11-25T12:00:00.000+00:00"}
    write_record(tmp_path / "store" / "part.jsonl", *(gemm(*shape, **day) for shape in SHAPES), a_canary(**H200, **day))

    chosen = chosen_records(RecordShelf(str(tmp_path / "store")), ["h200-sxm-141gb"])

    assert {gpu: record.name for gpu, record in chosen.records.items()} == {"h200-sxm-141gb": "whole"}
    assert [word(notice) for notice in chosen.notices][1] == (
        "your newer record `part` lacks bandwidth, which `whole` measured, so the older one is used: `mpplan probe "
        "--resume` completes the newer one, --records uses it as it is"
    )


@pytest.mark.parametrize(
    ("slower", "threads", "told"),
    [
        (
            1.5,
            None,
            "more time in your record `new` than in `old` of 2026-11-20: check that nothing limited the clock; ",
        ),
        (
            0.5,
            None,
            "less time in your record `new` than in `old` of 2026-11-20: check that nothing limited the clock then; ",
        ),
        (1.2, None, None),
        (1.5, 2, None),
    ],
)
def test_a_plan_says_that_the_record_before_tells_of_another_speed(tmp_path, slower, threads, told) -> None:
    day = {"timestamp_utc": "2026-11-25T12:00:00.000+00:00", "threads": threads}
    later = [gemm(*shape, noise=slower - 1.0, **day) for shape in SHAPES]
    write_record(tmp_path / "store" / "old.jsonl", *(gemm(*shape) for shape in SHAPES), a_canary(**H200))
    write_record(tmp_path / "store" / "new.jsonl", *later, a_canary(**H200, **day))

    chosen = chosen_records(RecordShelf(str(tmp_path / "store")), ["h200-sxm-141gb"])
    messages = [
        word(notice) for notice in chosen.notices if notice.key in ("warning.record_slower", "warning.record_faster")
    ]

    assert chosen.records["h200-sxm-141gb"].name == "new"
    assert messages == [] if told is None else told in messages[0]
    if told is not None:
        assert messages[0].startswith("at the 8 points that both measured, kernels take 50% ")


def test_a_plan_says_which_records_are_dated_after_today(tmp_path: Path) -> None:
    day = {"timestamp_utc": "2099-01-02T03:04:05.678+00:00"}
    write_record(tmp_path / "ahead.jsonl", *(gemm(*shape, **day) for shape in SHAPES), a_canary(**H200, **day))

    told = [word(notice) for notice in chosen_records(RecordShelf(str(tmp_path)), ["h200-sxm-141gb"]).notices]

    assert told[0].endswith("planned from your record `ahead` (9 points, 2099-01-02)")
    assert told[1] == (
        "dated after today, and so used only if there is no other record: `ahead` (2099-01-02); check the clock, or "
        "remove them with `mpplan records remove`"
    )


def test_a_named_record_that_cannot_be_trusted_is_used_and_said_to_be(tmp_path: Path) -> None:
    contended = [gemm(*shape, quality="contended") for shape in SHAPES]
    loud = write_record(tmp_path / "loud.jsonl", a_canary(**H200), *contended)

    told = [notice.key for notice in chosen_records(RecordShelf(str(loud)), ["h200-sxm-141gb"]).notices]

    assert told == ["warning.own_record", "warning.record_untrusted"]

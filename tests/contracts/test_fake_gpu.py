"""The default suite and a verification on a fake H200: every workload gives points, and all of it fits its time.

The verification has a target of each of a few families here, and all of them in `make long`.
What the fake GPU stands for is in `fake_cuda/`; its rates are made up, so that no figure of it is asserted here.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from planner.measured.device import measured_rates
from probes.record.options import BUDGETS_S
from probes.verify.cases import anchors, targets
from probes.verify.document import verify_document
from probes.verify.run import BUDGETS_S as VERIFY_S
from probes.workloads import WORKLOADS
from probes.workloads.expected import START_S
from tests.probes.build import H200, plan
from tests.probes.fake_cuda.once import once
from tests.probes.fake_cuda.suite_run import OUT_OF_MEMORY, UNCAPTURABLE, SuiteRun, run_suite, run_whole_suite


@pytest.fixture(scope="module", params=["few", pytest.param("all", marks=pytest.mark.long)])
def run(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> SuiteRun:
    """With few targets of a verification, or with all; what those of its lines ask for is made with them."""
    if request.param == "few":
        return once(tmp_path_factory, "suite", run_suite)
    return once(tmp_path_factory, "whole suite", run_whole_suite, with_lines=True)


def test_every_workload_gives_points_and_nothing_is_left_out(run: SuiteRun) -> None:
    measured = Counter(line.setup.workload for line in run.lines.values() if line.status == "ok")

    assert run.outcome.lost_device is None
    assert run.outcome.left_out == ()
    assert set(measured) >= {workload.name for workload in WORKLOADS}


def test_only_what_was_made_to_fail_fails(run: SuiteRun) -> None:
    failed = {name: line.status for name, line in run.lines.items() if line.status != "ok"}

    assert failed == {OUT_OF_MEMORY: "oom", "support/mxfp8": "unsupported"}


def test_the_suite_and_the_verification_end_within_their_times(run: SuiteRun) -> None:
    assert run.suite_s <= BUDGETS_S["cuda"]["default"]
    assert run.verify_s <= VERIFY_S["cuda"]


def test_what_is_expected_of_a_workload_is_about_what_it_takes(run: SuiteRun) -> None:
    # the clock of the fake GPU converges at once, a real one may need all of its cap; soaking is no workload's
    for name, expected_s in run.expected_s.items():
        if name not in ("bandwidth", "idle"):
            assert 0.5 * expected_s - 2.0 <= run.took_s[name] <= 1.15 * expected_s + 2.0, name


def test_the_expected_times_of_the_suite_with_its_start_fit_eight_minutes(run: SuiteRun) -> None:
    assert sum(run.expected_s.values()) + START_S <= BUDGETS_S["cuda"]["default"]


def test_all_that_a_verification_runs_is_expected_to_fit_its_time() -> None:
    measured = plan(H200, has_sensor=True)
    planned = targets(measured)
    needed = [case for case in anchors(measured) if case.family in {target.family for target in planned}]

    assert len(planned) == 13
    assert sum(case.estimate_s for case in [*needed, *planned]) <= VERIFY_S["cuda"]


def test_a_product_that_cannot_be_captured_is_measured_launch_by_launch(run: SuiteRun) -> None:
    line = run.lines[UNCAPTURABLE]

    assert line.status == "ok"
    assert "cuda_graph" not in line.setup.recipe_flags
    assert "cuda_graph" in run.lines[UNCAPTURABLE.replace("bf16-autocast", "fp16")].setup.recipe_flags


def test_a_failed_capture_leaves_the_stream_of_all_later_work_as_it_was(run: SuiteRun) -> None:
    assert not run.left_on_a_stream


def test_a_composition_ratio_follows_for_the_main_recipes(run: SuiteRun) -> None:
    ratios = measured_rates(run.lines.values()).composition_ratio

    assert {("bf16-fsdp", False), ("fp8", False), ("fp8", True)} <= {(r.recipe, r.compiled) for r in ratios}


def test_every_target_is_predicted_and_run(run: SuiteRun) -> None:
    done = [line for line in run.lines.values() if line.kind == "verify"]

    assert len(done) == run.targets
    for line in done:
        assert line.predicted.time_s is not None, line.probe_id
        assert line.predicted.memory_bytes is not None, line.probe_id


def test_a_verification_that_is_asked_for_again_measures_nothing_again(run: SuiteRun) -> None:
    done = [name for name, line in run.lines.items() if line.kind == "verify"]

    assert sorted(line.probe_id for line in run.second_lines) == sorted(done)
    assert run.second_verify_s == 0.0


def test_memory_is_predicted_to_three_percent(run: SuiteRun) -> None:
    # the one real figure here: bytes of the small models' tensors, as measured and as tracked in another process
    summary = verify_document(run.lines.values())["summary"]["memory"]

    assert summary["n"] == run.targets
    assert summary["median_abs_error"] <= 0.03


def test_energy_windows_are_read_from_the_counter_and_agree_with_the_power_field(run: SuiteRun) -> None:
    windows = [line for line in run.lines.values() if line.power.mean_w is not None and line.kind != "idle"]

    assert len(windows) >= 20
    assert {line.energy.source for line in windows} == {"counter"}
    assert Counter(line.energy.quality for line in windows)["ok"] >= 0.9 * len(windows)


def test_the_record_is_json_that_holds_no_identifier_of_the_gpu(run: SuiteRun, tmp_path: Path) -> None:
    from planner.records.jsonl import to_line

    text = "\n".join(to_line(line) for line in run.lines.values())

    assert all(json.loads(line) for line in text.splitlines())
    assert "11111111-2222" not in text

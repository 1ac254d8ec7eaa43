"""The check on ourselves: cases that were never run, predictions made before, and an account of the errors."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from probes.record.figures import Figures
from probes.timing.trial import PointGroup
from probes.verify.cases import anchors, targets
from probes.verify.document import verify_document
from probes.verify.predict import mean_power, predict_memory
from probes.verify.run import share_s
from probes.workloads import WORKLOADS
from probes.workloads.expected import START_S
from tests.planner.recorded import H200 as H200_FACTS
from tests.planner.recorded import a_measurement
from tests.probes.build import CPU, H200, plan

PLANS = {"cpu": plan(CPU), "cuda": plan(H200, has_sensor=True)}


@pytest.mark.parametrize("kind", PLANS)
def test_no_target_is_among_the_anchors_or_in_a_suite(kind: str) -> None:
    run_before = {(case.model.name, case.recipe.id) for case in anchors(PLANS[kind])}
    suite = {
        point.probe_id for workload in WORKLOADS for group in workload.groups(PLANS[kind]) for point in group.points
    }
    planned = targets(PLANS[kind])

    assert not {(case.model.name, case.recipe.id) for case in planned} & run_before
    assert not {f"end_to_end/{case.model.name}/{case.recipe.id}" for case in planned} & suite
    assert len({(case.model.name, case.recipe.id) for case in planned}) == len(planned)


@pytest.mark.parametrize("kind", PLANS)
def test_every_target_has_at_least_two_anchors_of_its_family(kind: str) -> None:
    families = [case.family for case in anchors(PLANS[kind])]

    assert all(families.count(case.family) >= 2 for case in targets(PLANS[kind]))


def test_the_gpu_targets_are_deeper_wider_longer_and_in_every_precision() -> None:
    planned = targets(PLANS["cuda"])
    llamas = [case.model for case in planned if case.model.family == "llama"]

    assert 12 <= len(planned) <= 14
    assert {case.recipe.precision for case in planned} == {"fp32", "tf32", "fp16", "bf16", "fp8"}
    assert {case.model.family for case in planned} == {"llama", "bert", "resnet"}
    assert {model.size for model in llamas} == {"llama-3.2-1b", "llama-3.2-3b"}
    assert (min(model.seq_len for model in llamas), max(model.seq_len for model in llamas)) == (2048, 16384)
    assert {model.recompute for model in llamas} == {model.compiled for model in llamas} == {True, False}


def test_the_first_eight_gpu_targets_already_cover_every_precision_and_family() -> None:
    first = targets(PLANS["cuda"])[:8]

    assert {case.recipe.precision for case in first} == {"fp32", "tf32", "fp16", "bf16", "fp8"}
    assert {case.model.family for case in first} == {"llama", "bert", "resnet"}


def test_verification_on_a_gpu_is_expected_to_take_five_minutes_at_most() -> None:
    suite = {
        point.probe_id for workload in WORKLOADS for group in workload.groups(PLANS["cuda"]) for point in group.points
    }
    new = [c for c in anchors(PLANS["cuda"]) if f"end_to_end/{c.model.name}/{c.recipe.id}" not in suite]

    expected = sum(case.estimate_s for case in [*new, *targets(PLANS["cuda"])])

    assert expected <= 300.0


class Asked:
    """A session that is asked only what is planned and what is known."""

    def __init__(
        self, budget_s: float | None, groups: list[PointGroup], known: dict[str, object], spent_s: float = 0.0
    ) -> None:
        self.options = SimpleNamespace(budget_s=budget_s, measure=True, spent_s=spent_s)
        self.plan, self.device, self.elapsed_s = PLANS["cuda"], H200, 0.0
        self.ledger = SimpleNamespace(known=known, is_done=lambda point: point.probe_id in known)
        self.groups = lambda: groups


def test_a_time_limit_is_shared_by_what_suite_and_verification_are_expected_to_take() -> None:
    suite = [group for workload in WORKLOADS for group in workload.groups(PLANS["cuda"])]
    in_suite = {point.probe_id for group in suite for point in group.points}
    new = [c for c in anchors(PLANS["cuda"]) if f"end_to_end/{c.model.name}/{c.recipe.id}" not in in_suite]
    own_s = sum(case.estimate_s for case in [*new, *targets(PLANS["cuda"])])
    suite_s = sum(group.estimate_s for group in suite)

    assert share_s(Asked(None, suite, {})) == 0.0
    assert share_s(Asked(500.0, suite, {})) == pytest.approx((500.0 - START_S) * own_s / (own_s + suite_s))
    assert share_s(Asked(500.0, [], {})) == pytest.approx(500.0 - START_S)


def test_what_was_kept_for_a_verification_is_kept_when_the_process_dies_before_it() -> None:
    suite = [group for workload in WORKLOADS for group in workload.groups(PLANS["cuda"])]
    dead = Asked(508.0, suite[-9:], {}, spent_s=364.0)
    dead.elapsed_s = 364.0

    assert share_s(dead) == pytest.approx(508.0 - 364.0 - START_S)


def test_a_verification_that_is_done_takes_no_time() -> None:
    done = {f"verify/{case.model.name}/{case.recipe.id}": object() for case in targets(PLANS["cuda"])}

    assert share_s(Asked(500.0, [], done)) == 0.0


def anchor(tracked: float, measured: float, **changes: object) -> tuple:
    point = a_measurement(
        probe_id=f"a{tracked}", kind="end_to_end", memory_allocated_peak_bytes=measured, **(H200_FACTS | changes)
    )
    return point, tracked


def test_memory_is_bookkeeping_scaled_as_measured_peaks_stand_to_theirs() -> None:
    known = [anchor(1e9, 1.05e9), anchor(2e9, 2.10e9)]

    assert predict_memory(10e9, known) == pytest.approx(10.5e9)


def test_a_fixed_amount_beside_the_tensors_is_not_scaled_with_them() -> None:
    known = [anchor(1e9, 1e9 + 64e6), anchor(4e9, 4e9 + 64e6)]

    assert predict_memory(20e9, known) == pytest.approx(20e9 + 64e6, rel=1e-6)


def test_memory_without_a_measured_peak_is_not_predicted() -> None:
    assert predict_memory(1e9, []) is None


def test_power_is_the_mean_of_good_windows_only() -> None:
    points = [
        a_measurement(power_mean_w=600.0, energy_quality="ok", energy_window_s=3.0, **H200_FACTS),
        a_measurement(power_mean_w=640.0, energy_quality="ok", energy_window_s=1.0, **H200_FACTS),
        a_measurement(power_mean_w=100.0, energy_quality="inconsistent", energy_window_s=3.0, **H200_FACTS),
    ]

    assert mean_power(points) == pytest.approx(610.0)
    assert mean_power(points[2:]) is None


def verified(name: str, predicted_s: float, measured_s: float, **changes: object):
    values: dict[str, object] = {
        "probe_id": f"verify/{name}", "kind": "verify", "predicted_time_s": predicted_s, "time_median_s": measured_s,
        "predicted_memory_bytes": 99.0, "memory_allocated_peak_bytes": 100.0,
    }  # fmt: skip
    return a_measurement(**(values | H200_FACTS | changes))


def test_the_document_has_one_entry_per_case_and_metric_with_its_error() -> None:
    document = verify_document([verified("a/bf16", 1.03, 1.0), verified("b/bf16", 0.98, 1.0)])

    assert document["schema"] == "mpplan.verify/1"
    assert [(case["name"], case["metric"]) for case in document["cases"]] == [
        ("a/bf16", "time"), ("a/bf16", "memory"), ("b/bf16", "time"), ("b/bf16", "memory"),
    ]  # fmt: skip
    assert document["cases"][0]["error_ratio"] == pytest.approx(0.03)
    assert document["summary"]["time"] == {
        "n": 2, "median_abs_error": pytest.approx(0.025), "max_abs_error": pytest.approx(0.03),
    }  # fmt: skip
    assert document["summary"]["energy"] == {"n": 0, "median_abs_error": None, "max_abs_error": None}


def test_energy_is_compared_where_both_are_known() -> None:
    point = verified("a/bf16", 1.0, 1.0, predicted_energy_j=640.0, energy_j_per_iteration=600.0)

    (case,) = [case for case in verify_document([point])["cases"] if case["metric"] == "energy"]

    assert case["error_ratio"] == pytest.approx(640 / 600 - 1)


def test_a_case_that_ran_under_load_is_named_and_one_that_did_not_run_is_listed() -> None:
    document = verify_document(
        [
            verified("loud/bf16", 1.0, 2.0, quality="contended"),
            verified("big/fp32", 1.0, 1.0, status="oom", reason="not enough memory on the device", time_median_s=None),
        ]
    )

    assert document["contended"] == ["loud/bf16"]
    assert document["not_run"] == [{"name": "big/fp32", "status": "oom", "reason": "not enough memory on the device"}]


def test_a_case_predicted_from_loud_anchors_is_not_held_against_the_prediction() -> None:
    from probes.verify.document import DISTURBED_ANCHORS

    document = verify_document([verified("a/bf16", 1.02, 1.0), verified("b/bf16", 3.0, 1.0, reason=DISTURBED_ANCHORS)])

    assert document["contended"] == ["b/bf16"]
    assert document["summary"]["time"]["n"] == 2
    assert document["summary_quiet"]["time"] == {
        "n": 1, "median_abs_error": pytest.approx(0.02), "max_abs_error": pytest.approx(0.02),
    }  # fmt: skip


def test_memory_that_bookkeeping_cannot_tell_is_not_predicted_and_spoils_no_other_anchor() -> None:
    known = a_measurement(probe_id="a", memory_allocated_peak_bytes=2e9, **H200_FACTS)

    assert predict_memory(None, [(known, 1e9)]) is None
    assert predict_memory(3e9, [(known, None)]) is None


def test_a_target_that_cannot_be_predicted_is_a_result_and_the_next_one_is_checked() -> None:
    pytest.importorskip("torch")
    from probes.verify.run import _checked
    from tests.probes.build import call, point

    class Checker:
        """Fails as the bookkeeping does at a kernel without rules for fake tensors."""

        def __init__(self) -> None:
            self.session = self
            self.written: list[Figures] = []

        def check(self, case: object, point: object) -> list:
            raise NotImplementedError("no rule for aten::_some_kernel")

        def write(self, point: object, figures: Figures) -> Figures:
            self.written.append(figures)
            return figures

    checker = Checker()

    _checked(checker, targets(PLANS["cpu"])[0], point("verify/x", call()))  # type: ignore[arg-type]

    assert checker.written == [Figures(status="error", reason="NotImplementedError: no rule for aten::_some_kernel")]


def test_parameters_are_counted_without_a_step() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from probes.memory.tracker import count_params

    model = targets(PLANS["cuda"])[0].model

    assert count_params(model) == 1_235_814_400  # Llama 3.2 1B, as published with its weights


def test_anchors_for_which_there_was_no_time_leave_a_target_without_a_prediction_not_with_an_error() -> None:
    from types import SimpleNamespace

    from probes.verify.run import _Checker

    gpu = PLANS["cuda"]
    ledger = SimpleNamespace(known={}, is_done=lambda point: False)
    session = SimpleNamespace(plan=gpu, ledger=ledger, measure=lambda group, left_s: [])  # the time is over
    case = targets(gpu)[0]

    assert _Checker(session, anchors(gpu))._measured(case) == []  # type: ignore[arg-type]

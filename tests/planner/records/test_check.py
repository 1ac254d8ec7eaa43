"""What makes a record doubtful, and when the whole of it is not to be trusted."""

from __future__ import annotations

import pytest

from planner.hardware.catalogue import find_gpu
from planner.records.check import Verdict, check_record, doubtful
from planner.records.jsonl import MeasurementFile
from planner.records.measurement import Measurement
from planner.records.problem import RecordProblem
from tests.planner.recorded import H200, a_canary, a_measurement


def verdict_on(*measurements: Measurement, problems: tuple[RecordProblem, ...] = ()) -> Verdict:
    return check_record(MeasurementFile(measurements=measurements, problems=problems))


def points(count: int, **changes: object) -> list[Measurement]:
    return [a_measurement(probe_id=f"p{i}", seq=i + 1, **changes) for i in range(count)]


def test_a_quiet_record_is_trusted_without_findings() -> None:
    verdict = verdict_on(a_canary(), *points(9))

    assert verdict == Verdict(trustworthy=True, points=10, findings=())


@pytest.mark.parametrize(
    ("fault", "finding", "what"),
    [
        ({"quality": "contended"}, "contended", "1 point measured while something else ran"),
        ({"quality": "throttled"}, "throttled", "1 point measured while the device slowed itself down"),
        ({"samples": 4}, "few-samples", "1 point with fewer than 5 samples"),
        ({"time_ci_high_s": 0.0045}, "wide", "1 point with a confidence interval wider than ±5%"),
        ({"energy_quality": "inconsistent"}, "energy", "1 point whose energy counter and power differ"),
        ({"alloc_retries": 2}, "alloc-retries", "1 point whose allocator had to retry: times not used"),
    ],
)
def test_one_bad_point_among_nine_is_named_but_the_record_is_trusted(
    fault: dict[str, object], finding: str, what: str
) -> None:
    verdict = verdict_on(a_canary(), *points(9), a_measurement(probe_id="bad", seq=20, **fault))

    assert [(f.id, f.what, f.probe_ids) for f in verdict.findings] == [(finding, what, ("bad",))]
    assert verdict.trustworthy


def product(seconds: float, **changes: object) -> Measurement:
    """A square of 8192 in BF16, which takes an H200 about 1.5 ms."""
    spread = {"time_ci_low_s": seconds, "time_ci_high_s": seconds}
    return a_measurement(
        probe_id="gemm/large", seq=1, flop_model=2.0 * 8192**3, time_median_s=seconds, **spread, **changes
    )


def on_h200(*measurements: Measurement) -> Verdict:
    file = MeasurementFile(measurements=(a_canary(**H200), *measurements), problems=())
    return check_record(file, find_gpu("h200-sxm-141gb"))


@pytest.mark.parametrize("seconds", [1.3e-3, 1e-2], ids=["sound", "a tenth of its peak"])
def test_a_rate_that_a_gpu_can_have_is_no_finding(seconds: float) -> None:
    assert on_h200(product(seconds, **H200)).findings == ()


def test_a_rate_that_no_card_has_makes_the_record_doubtful() -> None:
    verdict = on_h200(product(1e-5, **H200))

    assert [finding.id for finding in verdict.findings] == ["beyond-peak"]
    assert "1 point above 3 times the peak of NVIDIA H200" in verdict.findings[0].what
    assert not verdict.trustworthy


def test_a_gpu_whose_large_products_or_copies_reach_next_to_nothing_is_not_trusted() -> None:
    copy = a_measurement(kind="bandwidth", probe_id="bandwidth/copy", bytes_min=2e9, time_median_s=0.1,
                         time_ci_low_s=0.1, time_ci_high_s=0.1, **H200)  # fmt: skip

    verdict = on_h200(product(1.0, **H200), copy)

    assert [finding.id for finding in verdict.findings] == ["below-peak", "below-peak"]
    assert "no product reaches more than 0.11% of the peak of NVIDIA H200" in verdict.findings[0].what
    assert not verdict.trustworthy


def test_a_small_product_may_be_slow_and_a_device_of_no_row_is_not_held_against_one() -> None:
    assert on_h200(a_measurement(flop_model=2.0 * 256**3, seq=1, **H200)).findings == ()
    assert verdict_on(a_canary(), product(1.0)).findings == ()


def test_a_record_with_a_third_of_its_points_contended_is_not_trusted() -> None:
    contended = [a_measurement(probe_id=f"c{i}", seq=20 + i, quality="contended") for i in range(5)]

    verdict = verdict_on(a_canary(), *points(9), *contended)

    assert not verdict.trustworthy
    assert verdict.findings[0].kinds == ("gemm",)


def test_points_between_a_good_and_a_drifted_canary_are_drifted_too() -> None:
    # GPU limit 3 %: the last canary runs 4 % slower than the median of the three
    record = [
        a_canary(seq=0, time_median_s=1.00, device_kind="cuda"),
        a_measurement(probe_id="early", seq=1, device_kind="cuda"),
        a_canary(seq=2, time_median_s=1.00, device_kind="cuda"),
        a_measurement(probe_id="late", seq=3, device_kind="cuda"),
        a_canary(seq=5, time_median_s=1.04, device_kind="cuda"),
    ]

    (finding,) = verdict_on(*record).findings

    assert finding.id == "drift"
    assert finding.probe_ids == ("late", "canary")


def test_a_first_canary_that_was_disturbed_does_not_condemn_the_record() -> None:
    record = [
        a_canary(seq=0, time_median_s=3.0, quality="contended"),
        a_measurement(probe_id="p", seq=2),
        a_canary(seq=1, time_median_s=1.0),
        a_canary(seq=3, time_median_s=1.0),
    ]

    assert "drift" not in [finding.id for finding in verdict_on(*record).findings]


def test_a_record_without_a_canary_says_so() -> None:
    assert [finding.id for finding in verdict_on(*points(3)).findings] == ["no-canary"]


def test_damaged_lines_are_named() -> None:
    problem = RecordProblem(line=7, key=None, what="expected one JSON object")

    (finding,) = verdict_on(a_canary(), *points(3), problems=(problem,)).findings

    assert (finding.id, finding.what) == ("damaged", "1 line cannot be used (7)")


def test_a_record_without_any_time_is_not_trusted() -> None:
    verdict = verdict_on(a_measurement(status="unsupported", time_median_s=None, reason="no FP8 units"))

    assert not verdict.trustworthy
    assert [finding.id for finding in verdict.findings] == ["empty"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"quality": "contended"}, True),
        ({"quality": "throttled"}, True),
        ({"alloc_retries": 1}, True),
        ({"status": "error"}, True),
        ({"status": "oom"}, False),
        ({"status": "unsupported"}, False),
    ],
)
def test_resume_measures_again_what_is_doubtful_and_not_what_is_a_result(
    changes: dict[str, object], expected: bool
) -> None:
    assert doubtful(a_measurement(**changes)) is expected


@pytest.mark.parametrize(("load", "trusted"), [(0.25, True), (0.55, False)])
def test_a_cpu_that_others_used_all_along_was_never_quiet(load: float, trusted: bool) -> None:
    # a core of two that is busy half the time leaves quiet moments; one that always is does not
    canary = {"clock": "canary", "other_load_ratio": load, "device_kind": "cpu"}
    verdict = verdict_on(a_canary(), *points(9, **canary))

    assert verdict.trustworthy is trusted
    warnings = [f.what for f in verdict.findings if f.id == "loaded"]
    whole = "other processes used 55% of the CPUs all along: times are longer than on a quiet machine"
    assert warnings == ([] if trusted else [whole])

"""Parity of the plans: which finding counts, what is published beside it, and what a nat costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.answer.plan import Plan
from planner.evidence import Estimate
from planner.measured.training import PrecisionFinding
from planner.records.figures import TrainingNumerics
from planner.safety.parity import parities
from planner.safety.tasks import LANGUAGE, VISION
from tests.reports import sample

BF16 = next(plan for plan in sample.answer().plans if plan.precision == "bf16")
assert BF16.cost_usd is not None
assert BF16.gpu_hours is not None


def plan(precision: str, usd: float, hours: float) -> Plan:
    return replace(
        BF16, precision=precision, policy=precision, cost_usd=Estimate.exactly(usd), gpu_hours=Estimate.exactly(hours)
    )


def finding(precision: str = "fp8", low: float = 0.01, mid: float = 0.02, high: float = 0.03, **more: object):
    values = {
        "task": "char-lm", "instrument": "parity", "baseline": "bf16", "emulated": False, "metric": "loss",
        "difference_low": low, "difference_mid": mid, "difference_high": high, "margin": 0.02,
        "verdict": "cannot_tell", "seeds": 8, "steps": 400,
    } | more  # fmt: skip
    return PrecisionFinding(
        precision=precision, recipe=precision, device_kind="cuda", device_name="NVIDIA H200", probe_id="numerics/x",
        figures=TrainingNumerics(**values), gpu="h200-sxm-141gb",  # type: ignore[arg-type]
    )  # fmt: skip


PLANS = (plan("bf16", 10_000.0, 4_000.0), plan("fp8", 7_000.0, 3_000.0), plan("nvfp4", 5_000.0, 2_000.0))


def by_precision(*findings: PrecisionFinding, plans: tuple[Plan, ...] = PLANS, kind: str = LANGUAGE):
    return {row.precision: row for row in parities(plans, findings, "typical", kind)}


def higher_loss(precision: str = "fp8", **more: object) -> PrecisionFinding:
    """A loss that is higher by more than the margin."""
    return finding(precision, 0.1, 0.2, 0.3, **({"verdict": "not_equivalent", "baseline": "fp32"} | more))


def test_where_nothing_was_run_a_published_difference_is_quoted_and_else_nothing():
    known = by_precision()

    assert [known[name].basis for name in ("bf16", "fp8", "nvfp4")] == ["not_tested", "not_tested", "published"]
    assert known["nvfp4"].published.difference == 0.050
    # (10,000 - 5,000) USD and (4,000 - 2,000) GPU-hours over 0.050 nats, both against BF16
    assert known["nvfp4"].per_nat.usd_per_nat == pytest.approx(100_000)
    assert known["nvfp4"].per_nat.gpu_hours_per_nat == pytest.approx(40_000)


def test_a_loss_that_is_surely_higher_is_divided_by_and_what_is_published_stays_beside_it():
    known = by_precision(higher_loss(), higher_loss("nvfp4"))

    assert known["fp8"].basis == known["nvfp4"].basis == "measured"
    # (10,000 - 7,000) USD against the plan in BF16, though FP32 is what the loss was held against
    assert (known["fp8"].per_nat.baseline, known["fp8"].per_nat.usd_per_nat) == ("bf16", pytest.approx(3_000 / 0.2))
    assert (known["nvfp4"].per_nat.basis, known["nvfp4"].per_nat.nats) == ("measured", 0.2)
    assert known["nvfp4"].published.model == "DeepSeek-V3 16B"
    assert known["nvfp4"].published_per_nat == by_precision()["nvfp4"].per_nat
    assert known["fp8"].published_per_nat is None


def test_what_too_few_runs_or_another_kind_of_model_show_has_no_price_and_the_published_rate_stays():
    published = by_precision()["nvfp4"].per_nat
    few = finding("nvfp4", 0.001, 0.05, 0.099, task="char-lm", baseline="fp32", verdict="cannot_tell")
    pictures = higher_loss("nvfp4", task="digits-cnn")

    for known in (
        by_precision(few)["nvfp4"],
        by_precision(pictures)["nvfp4"],
        by_precision(higher_loss("nvfp4", task="own"))["nvfp4"],
    ):
        assert known.basis == "measured"
        assert known.per_nat == known.published_per_nat == published
    assert by_precision(pictures, kind=VISION)["nvfp4"].per_nat.basis == "measured"
    assert by_precision(higher_loss("nvfp4"), kind=VISION)["nvfp4"].per_nat == published


def test_a_loss_that_bf16_shares_is_none_against_bf16():
    assert by_precision(higher_loss(), higher_loss("bf16"))["fp8"].per_nat is None
    assert by_precision(higher_loss(), higher_loss("bf16", task="masked-lm"))["fp8"].per_nat is not None


def test_a_task_like_the_plans_model_comes_before_another_whatever_its_verdict():
    fine, pictures = finding(verdict="equivalent", task="masked-lm"), higher_loss(task="digits-vit")

    assert by_precision(fine, pictures)["fp8"].measured.task == "masked-lm"
    assert by_precision(fine, pictures, kind=VISION)["fp8"].measured.task == "digits-vit"
    assert by_precision(fine, pictures)["fp8"].measured.like_plan
    measured = by_precision(pictures)["fp8"].measured
    assert (measured.task, measured.like_plan) == ("digits-vit", False)
    assert by_precision(pictures, finding(task="own"))["fp8"].measured.task == "own"


def test_no_nat_has_a_price_where_the_interval_holds_zero_nothing_is_saved_or_accuracy_was_compared():
    dearer = (PLANS[0], plan("fp8", 12_000.0, 5_000.0))

    assert by_precision(finding(low=-0.01))["fp8"].per_nat is None
    assert (
        by_precision(higher_loss(difference_low=-0.3, difference_mid=-0.2, difference_high=-0.1))["fp8"].per_nat is None
    )
    assert by_precision(higher_loss(), plans=dearer)["fp8"].per_nat is None
    assert by_precision(higher_loss(metric="accuracy"))["fp8"].per_nat is None
    assert by_precision(higher_loss(), plans=PLANS[1:])["fp8"].per_nat is None  # no plan in BF16 to save against


def test_an_unpriced_plan_has_gpu_hours_per_nat_alone():
    unpriced = tuple(replace(row, cost_usd=None) for row in PLANS)

    per_nat = by_precision(plans=unpriced)["nvfp4"].per_nat
    assert (per_nat.usd_per_nat, per_nat.gpu_hours_per_nat) == (None, pytest.approx(40_000))


def test_real_arithmetic_comes_before_an_emulation_and_of_several_tasks_the_worst_verdict():
    emulated = finding(verdict="not_equivalent", emulated=True, task="masked-lm")
    fine, broken = finding(verdict="equivalent"), finding(verdict="not_equivalent", task="char-moe")

    assert by_precision(emulated, fine)["fp8"].measured.task == "char-lm"
    assert by_precision(emulated, fine, broken)["fp8"].measured.task == "char-moe"


def test_a_single_pair_without_an_interval_says_less_than_a_verdict():
    fine = finding(verdict="equivalent")
    single = finding(low=None, mid=None, high=None, verdict="cannot_tell", task="masked-lm", seeds=1)  # type: ignore[arg-type]

    assert by_precision(fine, replace(single, diverged=0))["fp8"].measured.task == "char-lm"
    assert by_precision(fine, replace(single, diverged=1))["fp8"].measured.task == "masked-lm"


def test_runs_that_diverged_have_a_verdict_without_a_difference():
    diverged = finding(low=None, mid=None, high=None, verdict="not_equivalent")  # type: ignore[arg-type]

    assert by_precision(diverged)["fp8"].measured.difference is None
    assert by_precision(replace(diverged, diverged=3))["fp8"].measured.diverged == 3


def test_what_does_not_train_has_no_price_of_a_nat_and_is_known_even_without_a_pair():
    scaled = finding(instrument="loss-scaling", verdict=None, skipped_step_ratio=1.0)

    known = by_precision(finding(), scaled)["fp8"]
    assert known.untrained is not None
    assert (known.untrained.steps, known.untrained.skipped, known.untrained.device) == (400, 400, "NVIDIA H200")
    assert known.per_nat is None
    assert (by_precision(scaled)["fp8"].basis, by_precision(scaled)["fp8"].measured) == ("measured", None)
    assert by_precision(finding(), replace(scaled, precision="fp16"))["fp8"].untrained is None


def test_fp32_is_what_the_others_are_held_against():
    assert by_precision(plans=(plan("fp32", 1.0, 1.0),))["fp32"].basis == "reference"

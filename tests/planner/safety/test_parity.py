"""Parity of the plans: which finding counts, what is published beside it, and what a nat costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.answer.plan import Plan
from planner.evidence import Estimate
from planner.measured.training import PrecisionFinding
from planner.records.figures import TrainingNumerics
from planner.safety.parity import parities
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


def by_precision(*findings: PrecisionFinding, plans: tuple[Plan, ...] = PLANS):
    return {row.precision: row for row in parities(plans, findings)}


def test_where_nothing_was_run_a_published_difference_is_quoted_and_else_nothing():
    known = by_precision()

    assert [known[name].basis for name in ("bf16", "fp8", "nvfp4")] == ["not_tested", "not_tested", "published"]
    assert known["nvfp4"].published.difference == 0.050
    # (10,000 - 5,000) USD and (4,000 - 2,000) GPU-hours over 0.050 nats, both against BF16
    assert known["nvfp4"].per_nat.usd_per_nat == pytest.approx(100_000)
    assert known["nvfp4"].per_nat.gpu_hours_per_nat == pytest.approx(40_000)


def test_a_loss_that_is_surely_higher_is_divided_by_and_what_is_published_stays_beside_it():
    known = by_precision(finding(), finding("nvfp4", 0.1, 0.2, 0.3))

    assert known["fp8"].basis == known["nvfp4"].basis == "measured"
    assert known["fp8"].per_nat.usd_per_nat == pytest.approx(3_000 / 0.02)
    assert (known["nvfp4"].per_nat.basis, known["nvfp4"].per_nat.nats) == ("measured", 0.2)
    assert known["nvfp4"].published.model == "DeepSeek-V3 16B"


def test_no_nat_has_a_price_where_the_interval_holds_zero_nothing_is_saved_or_accuracy_was_compared():
    dearer = (PLANS[0], plan("fp8", 12_000.0, 5_000.0))

    assert by_precision(finding(low=-0.01))["fp8"].per_nat is None
    assert by_precision(finding(), plans=dearer)["fp8"].per_nat is None
    assert by_precision(finding(metric="accuracy"))["fp8"].per_nat is None
    assert by_precision(finding(baseline="fp32"))["fp8"].per_nat is None  # no plan in FP32 to save against


def test_an_unpriced_plan_has_gpu_hours_per_nat_alone():
    unpriced = tuple(replace(row, cost_usd=None) for row in PLANS)

    per_nat = by_precision(plans=unpriced)["nvfp4"].per_nat
    assert (per_nat.usd_per_nat, per_nat.gpu_hours_per_nat) == (None, pytest.approx(40_000))


def test_real_arithmetic_comes_before_an_emulation_and_of_several_tasks_the_worst_verdict():
    emulated = finding(verdict="not_equivalent", emulated=True, task="masked-lm")
    fine, broken = finding(verdict="equivalent"), finding(verdict="not_equivalent", task="digits-cnn")

    assert by_precision(emulated, fine)["fp8"].measured.task == "char-lm"
    assert by_precision(emulated, fine, broken)["fp8"].measured.task == "digits-cnn"


def test_runs_that_diverged_have_a_verdict_without_a_difference():
    diverged = finding(low=None, mid=None, high=None, verdict="not_equivalent")  # type: ignore[arg-type]

    assert by_precision(diverged)["fp8"].measured.difference is None


def test_fp32_is_what_the_others_are_held_against():
    assert by_precision(plans=(plan("fp32", 1.0, 1.0),))["fp32"].basis == "reference"

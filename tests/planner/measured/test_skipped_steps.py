"""From steps that loss scaling skipped to the goodput's term."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.evidence import EvidenceKind
from planner.measured.skipped_steps import ARITHMETIC, MEASURED, TERM, skipped_step_terms, worst_skipping
from planner.measured.training import PrecisionFinding
from planner.performance.run import goodput_ratio
from planner.rates.conditions import has_effect
from planner.rates.ladder import resolve_rates
from planner.records.figures import TrainingNumerics
from planner.training.policies import find_policy
from tests.planner.build import cluster, recipe


def scaled(
    steady: float | None = 1 / 2001,
    task: str = "char-lm",
    precision: str = "fp16",
    *,
    skipped: float | None = 0.0,
    settled: tuple[int, int] | None = None,
    steps: int = 52,
) -> PrecisionFinding:
    """A run under torch's defaults; `settled`: steps after the first that was taken, and those of them skipped."""
    return PrecisionFinding(
        precision=precision, recipe=precision, device_kind="cpu", device_name="AMD EPYC",
        probe_id=f"numerics/{task}/loss-scaling/{precision}", source="record cpu", date="2026-11-22",
        settled_steps=None if settled is None else settled[0], settled_skips=None if settled is None else settled[1],
        figures=TrainingNumerics(
            task=task, instrument="loss-scaling", emulated=False, steps=steps, skipped_step_ratio=skipped,
            steady_skipped_step_ratio=steady,
        ),
    )  # fmt: skip


FP16 = find_policy("fp16")
BASE = resolve_rates(cluster(), recipe(policy="fp16")).terms


def term(*findings: PrecisionFinding, stack: str = "eager"):
    return skipped_step_terms(findings, FP16, stack, BASE).get(TERM)


def test_a_run_without_a_skip_leaves_an_assumption_with_a_range_and_no_measurement():
    skipping = worst_skipping([scaled(settled=(51, 0))], "fp16", "eager")
    goodput = term(scaled(settled=(51, 0)))

    assert skipping is not None
    assert (skipping.basis, skipping.ratio) == (ARITHMETIC, 1 / 2001)
    assert goodput.evidence.kind is EvidenceKind.ASSUMED
    assert "(0 to 0.100%)" in goodput.evidence.what
    # the 5th percentile of the useful share is that of twice the skips
    assert goodput.value * np.exp(-1.64485363 * goodput.own_sd) == pytest.approx(1 - 2 / 2001, abs=1e-6)


@pytest.mark.parametrize(("stack", "ratio"), [("eager", 1 / 2001), ("classic", 2 / 1002), ("typical", 2 / 1002)])
def test_each_stack_has_the_arithmetic_of_its_own_scaler(stack, ratio):
    assert term(scaled(settled=(51, 0)), stack=stack).value == pytest.approx(1 - ratio, rel=1e-12)


def test_a_model_that_no_step_passes_has_no_goodput_and_does_not_train():
    broken = scaled(skipped=1.0, settled=(0, 0), steps=400)

    skipping = worst_skipping([scaled(settled=(51, 0)), broken], "fp16", "eager")
    assert skipping is not None
    assert (skipping.trains, skipping.ratio, skipping.basis) == (False, None, MEASURED)
    assert term(broken) is None
    assert term(scaled(steady=None, skipped=1.0)) is None  # as a record may say it
    assert term(scaled(settled=(399, 300), steps=400)) is None


def test_a_settled_share_that_is_clearly_more_is_measured_and_a_single_skip_is_not_clear():
    forty_skips, single_skip = term(scaled(settled=(399, 40), steps=400)), term(scaled(settled=(51, 1)))

    assert forty_skips.evidence.kind is EvidenceKind.MEASURED
    assert forty_skips.value == pytest.approx(1 - 40 / 399, rel=1e-12)
    # binomial: sqrt(0.1 x 0.9 / 399) = 0.015, beside half its own size
    sampled = np.sqrt(40 / 399 * 359 / 399 / 399) / (359 / 399)
    assert forty_skips.own_sd == pytest.approx(np.hypot(40 / 359 / 1.64485363, sampled))
    # of 51 steps at 1 / 2001 one is skipped in 2.5 % of the runs
    assert single_skip.evidence.kind is EvidenceKind.ASSUMED


def test_a_measured_share_below_the_arithmetic_of_another_scaler_does_not_replace_it():
    # 0.125 % is clearly more than torch's 0.05 %, and less than Megatron's 0.2 %
    skipping = worst_skipping([scaled(settled=(80_000, 100))], "fp16", "typical")

    assert skipping is not None
    assert (skipping.basis, skipping.ratio) == (ARITHMETIC, pytest.approx(2 / 1002))


def test_counts_that_no_run_can_have_are_judged_at_once():
    assert term(scaled(settled=(10**15, 10**14))).value == pytest.approx(0.9)
    assert term(scaled(settled=(10**15, 10**9))).evidence.kind is EvidenceKind.ASSUMED


def test_of_several_tasks_the_most_skipped_steps_count_and_the_evidence_says_which():
    goodput = term(scaled(), scaled(0.02, "masked-lm"))

    assert goodput.value == pytest.approx(0.98)
    assert goodput.evidence.id == "numerics:masked-lm/loss-scaling/fp16"
    assert "masked-lm on AMD EPYC, run for real" in goodput.evidence.what


def test_an_emulated_run_says_so():
    emulated = scaled(0.01)
    emulated = replace(emulated, figures=replace(emulated.figures, emulated=True))

    assert term(emulated).evidence.what.endswith("emulated")


def test_a_policy_that_does_not_scale_its_loss_and_one_without_measurements_have_no_term():
    assert skipped_step_terms([scaled(0.02, precision="bf16")], find_policy("bf16"), "eager", BASE) == {}
    assert term(scaled(None, skipped=None)) is None
    assert term(scaled(0.02, precision="fp8")) is None
    assert worst_skipping([], "fp16", "eager") is None


def test_skipped_steps_multiply_the_goodput_and_have_an_effect_only_where_tried():
    fp16_recipe = recipe(policy="fp16")
    before = resolve_rates(cluster(), fp16_recipe)
    after = resolve_rates(cluster(), fp16_recipe, skipped_step_terms([scaled(0.25)], FP16, "eager", BASE))

    assert goodput_ratio(64.0, after.sample()) == pytest.approx(0.75 * goodput_ratio(64.0, before.sample()), rel=1e-12)
    assert has_effect(after.terms[TERM], fp16_recipe, after.sample())
    assert not has_effect(before.terms[TERM], fp16_recipe, before.sample())

"""From steps that loss scaling skipped to the goodput's term."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.evidence import EvidenceKind
from planner.measured.skipped_steps import TERM, skipped_step_terms, skipping
from planner.measured.training import PrecisionFinding
from planner.performance.run import goodput_ratio
from planner.rates.conditions import has_effect
from planner.rates.ladder import resolve_rates
from planner.records.figures import TrainingNumerics
from planner.training.policies import find_policy
from tests.planner.build import cluster, recipe


def scaled(ratio: float | None, task: str = "char-lm", precision: str = "fp16") -> PrecisionFinding:
    return PrecisionFinding(
        precision=precision, recipe=precision, device_kind="cpu", device_name="AMD EPYC",
        probe_id=f"numerics/{task}/loss-scaling/{precision}", source="record cpu", date="2026-11-22",
        figures=TrainingNumerics(
            task=task, instrument="loss-scaling", emulated=False, steady_skipped_step_ratio=ratio
        ),
    )  # fmt: skip


FP16 = find_policy("fp16")
BASE = resolve_rates(cluster(), recipe(policy="fp16")).terms


def test_of_several_tasks_the_most_skipped_steps_count_and_the_evidence_says_which():
    terms = skipped_step_terms([scaled(0.0005), scaled(0.02, "masked-lm")], FP16, BASE)

    assert terms[TERM].value == pytest.approx(0.98)
    assert terms[TERM].evidence.kind is EvidenceKind.MEASURED
    assert terms[TERM].evidence.id == "numerics:masked-lm/loss-scaling/fp16"
    assert "masked-lm on AMD EPYC, run for real" in terms[TERM].evidence.what


def test_an_emulated_run_says_so():
    emulated = scaled(0.01)
    emulated = replace(emulated, figures=replace(emulated.figures, emulated=True))

    assert skipped_step_terms([emulated], FP16, BASE)[TERM].evidence.what.endswith("emulated")


def test_a_policy_that_does_not_scale_its_loss_and_one_without_measurements_have_no_term():
    assert skipped_step_terms([scaled(0.02, precision="bf16")], find_policy("bf16"), BASE) == {}
    assert skipped_step_terms([scaled(None)], FP16, BASE) == {}
    assert skipped_step_terms([scaled(0.02, precision="fp8")], FP16, BASE) == {}
    assert skipping([], "fp16") is None


def test_skipped_steps_multiply_the_goodput_and_have_an_effect_only_where_measured():
    own = recipe(policy="fp16")
    before = resolve_rates(cluster(), own)
    after = resolve_rates(cluster(), own, skipped_step_terms([scaled(0.25)], FP16, BASE))

    assert goodput_ratio(64.0, after.sample()) == pytest.approx(0.75 * goodput_ratio(64.0, before.sample()), rel=1e-12)
    assert has_effect(after.terms[TERM], own, after.sample())
    assert not has_effect(before.terms[TERM], own, before.sample())

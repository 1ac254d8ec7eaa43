"""The batch of a derivation is the plan's own, whatever the question says."""

from __future__ import annotations

import math

import pytest

from reports.explain.walk import explain


def test_a_plan_with_another_batch_than_the_question_trains_its_own(recorded):
    plan = next(p for p in recorded["plans"] if p["precision"] == "fp8")
    own = math.prod(plan["layout"][name] for name in ("dp", "micro_batch", "grad_accum"))
    recorded["question"]["global_batch"] = {"value": 2 * own, "source": "default", "note": "by the tokens"}

    steps, step, goodput, day = explain(recorded, "time").root.children  # no remainder hides another batch
    batch = steps.children[1].children[0]

    assert (batch.label, batch.value) == ("Sequences per step", own)
    assert f"near the input of {2 * own:,}" in batch.note
    assert steps.value == math.ceil(1_411_074_129_920 / (own * 4_096))
    days = plan["duration_days"]["mid"]
    assert steps.value * step.value / goodput.value / day.value == pytest.approx(days)


def test_the_batch_of_the_question_keeps_where_it_came_from(recorded):
    plan = next(p for p in recorded["plans"] if p["precision"] == "fp8")
    own = math.prod(plan["layout"][name] for name in ("dp", "micro_batch", "grad_accum"))
    recorded["question"]["global_batch"] = {"value": own, "source": "flag", "note": None}

    assert explain(recorded, "time").root.children[0].children[1].children[0].note == "flag"

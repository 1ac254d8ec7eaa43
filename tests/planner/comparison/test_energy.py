"""The energy of a run: its GPU-hours at the plan's mean power, where the plan is of the same GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.comparison.basis import Given
from planner.comparison.compare import Comparison, compare
from planner.comparison.document import to_compare_document
from planner.comparison.planned import Planned, planned_of
from planner.hardware.catalogue import find_gpu
from reports.compared.text import WIDEST, to_text
from tests.planner.comparison.runs import log_of
from tests.planner.comparison.test_gap import answer
from tests.planner.runlog.writers import LLAMA_8B, megatron_arguments, megatron_log


def against(planned: Planned | None, given: Given | None = None, *, of: int = 400) -> Comparison:
    """A hundred steps of a run, of 2 s each."""
    lines, _ = megatron_log([2.0] * 100, of=of)
    return compare(log_of(megatron_arguments(LLAMA_8B), lines), planned, given or Given())


def test_energy_is_that_of_the_gpu_hours_at_the_mean_power_of_the_plan():
    planned = planned_of(answer(), None, None)
    ahead = against(planned).forecast
    mw_per_gpu = planned.plan["mean_power_mw"]["mid"] / planned.plan["gpus"]

    assert ahead is not None
    assert ahead.gpu_hours is not None
    assert ahead.energy_mwh is not None
    assert ahead.energy_mwh.mid == pytest.approx(ahead.gpu_hours.mid * mw_per_gpu)
    assert ahead.energy_mwh.low < ahead.energy_mwh.mid < ahead.energy_mwh.high
    assert ahead.spent_energy_mwh is not None
    assert ahead.spent_days is not None
    assert ahead.spent_energy_mwh.mid == pytest.approx(ahead.spent_days * 24 * 64 * mw_per_gpu, rel=0.03)


def test_a_run_on_half_the_gpus_draws_half_the_power():
    planned = planned_of(answer(), None, None)
    whole, half = against(planned).forecast, against(planned, Given(gpus=32)).forecast

    assert whole is not None
    assert half is not None
    assert whole.spent_energy_mwh is not None
    assert half.spent_energy_mwh is not None
    assert half.spent_energy_mwh.mid == pytest.approx(whole.spent_energy_mwh.mid / 2)


@pytest.mark.parametrize("why", ["no plan", "another GPU", "no power"])
def test_energy_is_unknown_without_the_power_of_the_same_gpu(why):
    planned = planned_of(answer(), None, None)
    if why == "no power":
        planned = replace(planned, plan={**planned.plan, "mean_power_mw": None})
    given = Given(gpu=find_gpu("a100-sxm4-80gb")) if why == "another GPU" else Given(price_usd_per_gpu_h=2.0)
    comparison = against(None if why == "no plan" else planned, given)

    assert comparison.forecast is None or comparison.forecast.energy_mwh is None
    assert "MWh" not in to_text(to_compare_document(comparison, "0"))


@pytest.mark.parametrize(("lang", "texts"), [("en", ("from here on", "so far; at the plan")), ("zh", ("此后", "至今"))])
def test_energy_is_told_for_the_rest_and_for_what_was_spent(lang, texts):
    document = to_compare_document(against(planned_of(answer(), None, None)), "0")
    ended = to_compare_document(against(planned_of(answer(), None, None), of=100), "0")

    assert all(text in to_text(document, lang, WIDEST) for text in texts)
    assert texts[0] not in to_text(ended, lang, WIDEST)
    assert texts[1] in to_text(ended, lang, WIDEST)

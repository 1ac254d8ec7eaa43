"""Which of several GPUs an answer's sentence is about."""

from __future__ import annotations

from typing import Any

from planner.answer.leading import leading_gpu, leading_plan


def row(gpu: str, usd: float | None, *, precision: str = "bf16", fits: bool = True, at_least: bool = False) -> Any:
    cost = None if usd is None else {"mid": usd, "at_least": at_least}
    return {"gpu": gpu, "precision": precision, "fits": fits, "cost_usd": cost}


def test_the_cheapest_gpu_on_which_the_precision_fits_leads() -> None:
    plans = [row("h100", 3.0), row("h200", 2.0), row("b200", 1.0), row("a100", 0.5, fits=False)]

    assert leading_gpu(plans, "bf16") == "b200"


def test_a_cost_of_another_precision_or_a_lower_bound_does_not_lead() -> None:
    plans = [row("h100", 3.0), row("b200", 1.0, precision="fp8"), row("h200", 2.0, at_least=True)]

    assert leading_gpu(plans, "bf16") == "h100"


def test_without_prices_the_first_that_fits_leads() -> None:
    plans = [row("h100", None, fits=False), row("h200", None), row("b200", None)]

    assert leading_gpu(plans, "bf16") == "h200"
    assert leading_gpu([], "bf16") == ""


def test_of_plans_in_a_view_the_leading_one_is_taken_where_it_fits() -> None:
    first, second = row("h100", 3.0), row("b200", 1.0)

    assert leading_plan([first, second], "b200") is second
    assert leading_plan([first, row("b200", None, fits=False)], "b200") is first


def test_with_a_budget_alone_the_soonest_end_leads_and_with_a_deadline_too_the_cheapest() -> None:
    def timed(gpu: str, usd: float, days: float, deadline: float | None) -> Any:
        likely = {"budget": 0.9, "deadline": deadline}
        return row(gpu, usd) | {"duration_days": {"mid": days}, "probability": likely}

    assert leading_gpu([timed("h100", 3.0, 9.0, None), timed("b200", 4.0, 6.0, None)], "bf16") == "b200"
    assert leading_gpu([timed("h100", 3.0, 9.0, 0.9), timed("b200", 4.0, 6.0, 0.9)], "bf16") == "h100"

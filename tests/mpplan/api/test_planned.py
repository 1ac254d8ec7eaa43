"""A resolved question, priced and planned."""

from __future__ import annotations

from mpplan.api.answer import estimate
from mpplan.api.planned import planned
from planner.question.asked import Ask
from planner.question.resolve import resolve

SHORT = {"params": "1B", "gpus": "8", "tokens": "2B", "as_of": "2026-11-20"}
"""A run of a few hours, which may lie in the night or not."""
TARIFF = (
    'name = "nights"\n[[period]]\nfrom = 20\nto = 8\nusd_per_kwh = 0.05\n'
    "[[period]]\nfrom = 8\nto = 20\nusd_per_kwh = 0.5\n"
)


def test_the_same_question_is_planned_the_same_by_command_and_api():
    answer = planned(resolve(Ask(texts=SHORT)), command=("mpplan", "estimate"))

    assert answer.plans == estimate(**SHORT).plans
    assert answer.command == ("mpplan", "estimate")


def test_under_a_tariff_a_short_run_pays_by_the_hour_of_its_start(tmp_path):
    file = tmp_path / "tariff.toml"
    file.write_text(TARIFF, encoding="utf-8")
    flat = planned(resolve(Ask(texts=SHORT | {"electricity": "0.275", "price": "2"})))
    by_hour = planned(resolve(Ask(texts=SHORT | {"tariff": str(file), "price": "2"})))

    def power(answer):
        plan = next(plan for plan in answer.plans if plan.precision == "bf16")
        return next(line for line in plan.cost_lines if line.id == "electricity")

    assert power(flat).unit_price_usd.high == power(flat).unit_price_usd.low == 0.275
    assert power(by_hour).unit_price_usd.low < 0.275 < power(by_hour).unit_price_usd.high
    assert any("by its starting hour" in row.what for row in by_hour.evidence)


def test_python_switches_embodied_carbon_on_with_true():
    fitting = [plan for plan in estimate(**SHORT, embodied=True).plans if plan.fits]

    assert fitting
    assert all(plan.embodied_tco2e is not None for plan in fitting)
    assert all(plan.embodied_tco2e is None for plan in estimate(**SHORT, embodied=False).plans)

"""docs/claims.md: every figure in its tables follows from the claims' own numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.costs.lines import gpu_rental_usd
from planner.costs.quantity import Power
from planner.hardware.catalogue import find_gpu
from planner.units import HOUR_S

PAGE = (Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")

GPUS, DAYS, POWER = (4096, 2048), (45, 18), (Power.from_mw(12.0), Power.from_mw(7.2))
"""Before and after, as the articles state them."""


def change(pair):
    return f"{pair[1] / pair[0] - 1:+.0%}".replace("-", "−").replace("%", " %")


def row(label):
    return next(line for line in PAGE.splitlines() if line.startswith(f"| {label}"))


def spaced(number):
    return f"{number:,.0f}".replace(",", " ")


GPU_DAYS = tuple(gpus * days for gpus, days in zip(GPUS, DAYS, strict=True))
ENERGY_MWH = tuple(float(power.over_hours(days * 24.0).mwh) for power, days in zip(POWER, DAYS, strict=True))
W_PER_GPU = tuple(float(power.w) / gpus for power, gpus in zip(POWER, GPUS, strict=True))


@pytest.mark.parametrize(
    ("label", "pair", "unit"),
    [
        ("GPU-days", GPU_DAYS, ""),
        ("energy", ENERGY_MWH, " MWh"),
        ("power per GPU", W_PER_GPU, " W"),
    ],
)
def test_a_row_of_the_page_is_the_arithmetic_of_the_claim(label, pair, unit):
    cells = [cell.strip(" *") for cell in row(label).split("|")[2:5]]

    assert cells == [spaced(pair[0]) + unit, spaced(pair[1]) + unit, change(pair)]


def test_gpus_days_and_power_fall_by_50_60_and_40_percent():
    assert [change(GPUS), change(DAYS), change((12.0, 7.2))] == ["−50 %", "−60 %", "−40 %"]
    assert all(part in PAGE for part in ("| 4096 | 2048 | −50 %", "| 45 | 18 | −60 %", "12 MW | 7.2 MW | −40 %"))


@pytest.mark.parametrize("price", [1.0, 2.0, 3.49])
def test_rental_falls_by_80_percent_at_any_price(price):
    before, after = (gpu_rental_usd(days * 24.0, price) for days in GPU_DAYS)

    assert after / before == pytest.approx(0.2)
    assert "off by a factor of 3" in PAGE
    assert 0.6 / (after / before) == pytest.approx(3.0)


def test_the_power_stated_is_more_than_the_gpus_can_draw():
    h800 = find_gpu("h800-sxm5-80gb")
    dgx = 10.2 / 8 * 1.25  # kW at the meter: DGX H100, PUE 1.25

    assert h800.tdp_w == 700
    assert f"{dgx * 1000:.0f}" == "1594"
    assert "1 594 W" in PAGE
    assert [round(watts / 1000 / dgx, 1) for watts in W_PER_GPU] == [1.8, 2.2]


def test_the_speed_per_gpu_it_implies_is_above_the_ratio_of_the_peaks():
    h800 = find_gpu("h800-sxm5-80gb").peak_flop_per_s

    assert GPU_DAYS[0] / GPU_DAYS[1] == 5
    assert h800["fp8"] / h800["bf16"] == pytest.approx(2.0, rel=0.01)
    assert h800["fp8"] / h800["tf32"] == pytest.approx(4.0, rel=0.01)
    assert h800["fp8"] / h800["fp32"] > 5


def test_the_v100_claim_is_a_speed_up_of_1_5():
    assert pytest.approx(1.5) == 4.20 / 2.80
    assert change((4.20, 2.80)) == "−33 %"


@pytest.mark.parametrize(
    ("usd_per_gpu_h", "flop", "words"), [(1.0, 2.5e25, "2.5 × 10^25"), (2.79, 8.9e24, "8.9 × 10^24")]
)
def test_the_gpt_4_claim_depends_on_the_price(usd_per_gpu_h, flop, words):
    bought = 63e6 / usd_per_gpu_h * HOUR_S * 0.35 * find_gpu("a100-sxm4-80gb").peak_flop_per_s["bf16"]

    assert bought == pytest.approx(flop, rel=0.01)
    assert words in PAGE

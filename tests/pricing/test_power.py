"""What a facility must deliver, what a cap allows, and what a lower limit per GPU does."""

from __future__ import annotations

import pytest

from planner.errors import NoPlanError, UsageError
from planner.quantity import Energy, Power
from pricing.power import LimitRate, NodePower, gpus_under_cap, limit_effects, mean_power, peak_power

DGX_H100 = NodePower(gpu_limit=Power(w=700.0), host=Power(w=575.0))
"""10.2 kW for 8 GPUs (NVIDIA DGX H100 user guide)."""

RATES = (
    LimitRate(limit=Power(w=700.0), tokens_per_s=10_000.0, mean=Power(w=650.0)),
    LimitRate(limit=Power(w=500.0), tokens_per_s=9_000.0, mean=Power(w=480.0)),
)


def test_peak_power_is_every_gpu_at_its_limit_with_host_and_pue():
    assert peak_power(2048, DGX_H100, 1.25).mw == pytest.approx(2048 * 1275 * 1.25 / 1e6)


def test_mean_power_is_energy_over_the_clock():
    assert mean_power(Energy.from_mwh(864.0), 720.0).mw == pytest.approx(1.2)
    with pytest.raises(UsageError, match="no hours"):
        mean_power(Energy.from_mwh(1.0), 0.0)


def test_a_cap_allows_whole_servers():
    # one server: 10.2 kW x 1.25 = 12.75 kW; 1 MW holds 78 of them
    assert gpus_under_cap(Power.from_mw(1.0), DGX_H100, 1.25, 8) == 78 * 8


def test_a_cap_below_one_server_says_what_it_takes():
    with pytest.raises(NoPlanError, match=r"one server takes 12\.8 kW at the meter, the cap is 10\.0 kW"):
        gpus_under_cap(Power.from_kw(10.0), DGX_H100, 1.25, 8)


def test_a_lower_limit_takes_longer_and_less_energy():
    top, low = limit_effects(RATES, host=Power(w=300.0), pue=1.25, gpus_per_node=8, usd_per_gpu_h=2.0, usd_per_kwh=0.08)

    assert (top.time_ratio, top.energy_ratio) == (1.0, 1.0)
    assert low.time_ratio == pytest.approx(10 / 9)
    assert low.energy_ratio == pytest.approx(10 / 9 * 480 / 650)
    assert top.usd_per_token == pytest.approx((2.0 + 0.95 * 1.25 * 0.08) / (10_000 * 3600))
    assert low.usd_per_token > top.usd_per_token  # at this price time is dearer than energy


def test_under_a_cap_a_lower_limit_can_train_faster():
    top, low = limit_effects(RATES, host=Power(w=100.0), pue=1.25, gpus_per_node=8, cap=Power.from_mw(1.0))

    assert (top.gpus_under_cap, low.gpus_under_cap) == (125 * 8, 166 * 8)
    assert low.capped_tokens_per_s == 166 * 8 * 9_000.0
    assert low.capped_tokens_per_s > top.capped_tokens_per_s


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        (RATES[:1], "fewer than two power limits"),
        ((*RATES, LimitRate(limit=Power(w=400.0), tokens_per_s=0.0, mean=Power(w=400.0))), "not above 0"),
    ],
)
def test_a_record_that_cannot_say_is_refused(rates, said):
    with pytest.raises(UsageError, match=said):
        limit_effects(rates, host=Power(w=0.0), pue=1.0, gpus_per_node=8)

"""What a lower power limit per GPU does to time, energy, money and what a capped facility can do."""

from __future__ import annotations

import pytest

from planner.costs.facility_power import NodePower, peak_power
from planner.costs.quantity import Power
from planner.errors import UsageError
from pricing.answer.power_limits import LimitRate, limit_effects

RATES = (
    LimitRate(limit=Power(w=700.0), tokens_per_s=10_000.0, mean=Power(w=650.0)),
    LimitRate(limit=Power(w=500.0), tokens_per_s=9_000.0, mean=Power(w=480.0)),
)


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
    ("rates", "message"),
    [
        (RATES[:1], "fewer than two power limits"),
        ((*RATES, LimitRate(limit=Power(w=400.0), tokens_per_s=0.0, mean=Power(w=400.0))), "not above 0"),
    ],
)
def test_a_record_that_cannot_say_is_refused(rates, message):
    with pytest.raises(UsageError, match=message):
        limit_effects(rates, host=Power(w=0.0), pue=1.0, gpus_per_node=8)


def test_a_cap_that_is_the_peak_of_some_servers_holds_them():
    host = Power(w=100.0)
    for servers in range(1, 60):
        peak = peak_power(8 * servers, NodePower(gpu_limit=RATES[0].limit, host=host), 1.3)
        effects = limit_effects(RATES, host=host, pue=1.25, gpus_per_node=8, cap=peak, peak_pue=1.3)
        by_limit = {effect.rate.limit: effect.gpus_under_cap for effect in effects}

        assert by_limit[RATES[0].limit] == 8 * servers

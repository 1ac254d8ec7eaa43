"""What a facility must deliver and what a cap allows."""

from __future__ import annotations

import numpy as np
import pytest

from planner.costs.facility_power import NodePower, gpus_under_cap, mean_power, peak_power
from planner.costs.quantity import Energy, Power
from planner.errors import Message, NoPlanError, UsageError

DGX_H100 = NodePower(gpu_limit=Power(w=700.0), host=Power(w=575.0))
"""10.2 kW for 8 GPUs (NVIDIA DGX H100 user guide)."""


def test_peak_power_is_every_gpu_at_its_limit_with_host_and_pue():
    assert peak_power(2048, DGX_H100, 1.25).mw == pytest.approx(2048 * 1275 * 1.25 / 1e6)


def test_mean_power_is_energy_over_the_clock():
    assert mean_power(Energy.from_mwh(864.0), 720.0).mw == pytest.approx(1.2)
    assert mean_power(Energy.from_mwh(864.0), np.array([720.0, 360.0])).mw == pytest.approx([1.2, 2.4])
    with pytest.raises(UsageError, match=r"error\.no_hours"):
        mean_power(Energy.from_mwh(1.0), 0.0)


def test_a_cap_allows_whole_servers():
    # one server: 10.2 kW x 1.25 = 12.75 kW; 1 MW holds 78 of them
    assert gpus_under_cap(Power.from_mw(1.0), DGX_H100, 1.25, 8) == 78 * 8


def test_the_peak_of_some_servers_as_a_cap_allows_those_servers():
    for servers in (1, 7, 77, 12_345):
        cap = peak_power(servers * 8, DGX_H100, 1.1)

        assert gpus_under_cap(cap, DGX_H100, 1.1, 8) == servers * 8


def test_a_cap_below_one_server_says_what_it_takes():
    with pytest.raises(NoPlanError) as caught:
        gpus_under_cap(Power.from_kw(10.0), DGX_H100, 1.25, 8)

    assert caught.value.message == Message.of("error.cap_below_server", server_kw=12.75, cap_kw=10.0)

"""How long whole steps run before they count as sustained."""

from __future__ import annotations

import pytest

from probes.timing.regime import sustained_s


@pytest.mark.parametrize(
    ("step_s", "expected"),
    [(0.001, 1.0), (0.3, 1.5), (2.0, 3.0)],
    ids=["short: ten periods of the power sensor", "five samples", "never longer than an energy window"],
)
def test_a_sustained_run_is_long_enough_for_the_sensor_and_for_five_samples(step_s: float, expected: float) -> None:
    assert sustained_s(step_s) == pytest.approx(expected)

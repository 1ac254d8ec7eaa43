"""Power from energy windows: which of them count, and for what."""

from __future__ import annotations

import pytest

from planner.measured.layers.power import measured_power, measured_powers
from planner.measured.rates import Activity, ActivityKind
from tests.planner.recorded import H200, a_measurement


def window(quality: str, mean_w: float | None = 600.0, **changes: object):
    values: dict[str, object] = {
        "probe_id": "power/bf16-autocast", "kind": "power", "role": "forward", "recipe": "bf16-autocast",
        "power_mean_w": mean_w, "energy_quality": quality,
    }  # fmt: skip
    return a_measurement(**(values | H200 | changes))


@pytest.mark.parametrize(("quality", "sd"), [("ok", 0.02), ("single", 0.10)])
def test_power_that_one_source_tells_is_less_certain(quality: str, sd: float) -> None:
    power = measured_power(window(quality))

    assert power is not None
    assert (power.value, power.relative_sd) == (600.0, sd)


@pytest.mark.parametrize("point", [window("short"), window("inconsistent"), window("ok", None)])
def test_a_window_that_is_short_or_contradicts_itself_tells_no_power(point) -> None:
    assert measured_power(point) is None
    assert measured_powers([point]) == {}


def test_power_is_known_by_what_the_device_did() -> None:
    idle = window("ok", 75.0, probe_id="idle/bare", kind="idle", role="bare", recipe=None)

    powers = measured_powers([idle, window("ok")])

    assert powers[Activity(kind=ActivityKind.IDLE)].value == 75.0
    assert powers[Activity(kind=ActivityKind.MATMUL, of="bf16")].value == 600.0

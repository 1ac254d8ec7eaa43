"""Power from energy windows: which of them count, and for what."""

from __future__ import annotations

import pytest

from planner.measured.device import measured_rates
from planner.measured.layers.power import attention_power, attention_powers, measured_power, measured_powers
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


def attention(head_dim: int, mean_w: float, **changes: object):
    return window(
        "ok", mean_w, probe_id=f"attention/d{head_dim}", kind="attention", head_dim=head_dim,
        sm_clock_median_hz=1.9e9, **changes,
    )  # fmt: skip


def test_attention_draws_what_the_window_of_the_nearest_head_says() -> None:
    rates = measured_rates([attention(128, 560.0), attention(64, 470.0)])

    for head_dim, mean_w in ((64, 470.0), (80, 470.0), (128, 560.0), (256, 560.0)):
        power = attention_power(rates, "bf16", head_dim)
        assert power is not None
        assert (power.power_w.value, power.clock_hz) == (mean_w, 1.9e9)
    assert attention_power(rates, "fp16", 128) == attention_power(rates, "bf16", 128)
    assert attention_power(rates, "fp32", 128) is None


def test_attention_without_a_sound_window_has_no_power() -> None:
    assert (
        attention_powers([window("short", kind="attention"), window("ok", None, kind="attention"), window("ok")]) == {}
    )

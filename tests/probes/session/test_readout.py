"""From a timed point to its figures: of one regime, with the clock and power that it was timed at."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace

import pytest

pytest.importorskip("torch")

from planner.records.work import RunSetup
from probes.device.clock import Mark
from probes.device.device import Device
from probes.energy import window as windows
from probes.record.figures import Figures
from probes.sensors.interface import Reading, State
from probes.session import readout
from probes.session.bench import Bench
from probes.session.group import run_group
from probes.timing import protocol, regime
from probes.timing.device_gate import DeviceGate
from probes.timing.protocol import Rules
from probes.timing.quiet import CpuReading, Gate
from probes.timing.trial import Point, PointGroup, TrialOutcome
from tests.probes.build import CPU, H200, NamedTrial, ScriptedGate, call, point
from tests.probes.device.events import use_events


@dataclass
class Chip:
    """A GPU at its power limit: it has a high clock at first and, once it has worked without a rest, a lower one."""

    running: str = ""
    hot: bool = False
    clocks_hz: dict[str, float] = field(default_factory=dict)
    watts: dict[str, float] = field(default_factory=dict)

    name, scope = "chip", "board"
    missing: dict[str, str] = field(default_factory=dict)

    def read(self) -> Reading:
        watts = self.watts.get(self.running, 300.0)
        now_s = time.monotonic()
        return Reading(time_s=now_s, energy_j=None, power_instant_w=watts, power_average_w=None)

    def state(self) -> State:
        return State(time_s=time.monotonic(), sm_clock_hz=self.clocks_hz.get(self.running, 1.2e9), temperature_c=60.0)

    def processes(self) -> int | None:
        return 0

    def close(self) -> None:
        return


PASSED = {"s": 0.0}
"""Time on the device: steps move it on."""


class Step(NamedTrial):
    """A step of 1 ms forward and 1 ms backward; three times as long backward on a hot chip."""

    def __init__(self, name: str, chip: Chip) -> None:
        super().__init__(name)
        self.chip = chip

    def step(self, mark: Mark) -> None:
        self.chip.running = self.name
        time.sleep(5e-4)  # no time of the device's
        PASSED["s"] += 1e-3
        mark("forward")
        PASSED["s"] += 3e-3 if self.chip.hot else 1e-3
        mark("backward")


def bench(device: Device, chip: Chip | None, gate: Gate | None = None) -> Bench:
    rules = Rules(ci_ratio=0.5, cap_s=0.06, warmup_s=0.01, min_total_s=0.001)
    return Bench(
        device=device, gate=gate, sensor=chip, no_sensor=None if chip else "no driver", rng=random.Random(0),
        rules=lambda point: rules,
    )  # fmt: skip


def run(device: Device, chip: Chip | None, *points: Point, gate: Gate | None = None) -> dict[str, Figures]:
    group = PointGroup(name="test", points=points, estimate_s=1.0)
    return {result.point.probe_id: result.figures for result in run_group(group, bench(device, chip, gate))}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    use_events(monkeypatch, lambda: PASSED["s"])
    monkeypatch.setattr(protocol, "PAUSE_S", 0.0)
    monkeypatch.setattr(readout, "SETTLE_S", 0.05)
    monkeypatch.setattr(readout, "SUSTAINED_SETTLE_S", 0.05)
    monkeypatch.setattr(regime, "SUSTAINED_S", 0.1)
    monkeypatch.setattr(regime, "LONGEST_SUSTAINED_S", 0.2)


def heating(monkeypatch: pytest.MonkeyPatch, chip: Chip) -> None:
    """The chip is hot from the moment on at which its window begins."""
    real = readout.measure_window

    def measure_window(*arguments, **settings):
        chip.hot = True
        return real(*arguments, **settings)

    monkeypatch.setattr(readout, "measure_window", measure_window)


@pytest.mark.parametrize(
    ("kind", "energy_s"), [("optimizer", 0.2), ("block", 0.0), ("end_to_end", 0.0), ("verify", 0.2)]
)
def test_the_phases_of_a_sustained_time_are_sustained_too(
    monkeypatch: pytest.MonkeyPatch, kind: str, energy_s: float
) -> None:
    chip = Chip()
    heating(monkeypatch, chip)

    figures = run(H200, chip, point("a", lambda d: Step("a", chip), kind=kind, energy_s=energy_s))["a"]

    # forward 1 ms, backward 1 ms in turns with others and 3 ms when hot
    assert figures.sampling.regime == "sustained"
    assert figures.time.burst_median_s == pytest.approx(2e-3)
    assert figures.time.median_s == pytest.approx(4e-3)
    assert figures.time.backward_median_s == pytest.approx(3e-3)
    assert figures.time.forward_median_s == pytest.approx(1e-3)


@pytest.mark.parametrize("in_window_s", [1e-3, 9e-3])
def test_the_host_is_what_it_took_where_nothing_held_it_up(monkeypatch: pytest.MonkeyPatch, in_window_s: float) -> None:
    real = readout.measure_window
    monkeypatch.setattr(
        readout, "measure_window", lambda *given, **named: replace(real(*given, **named), host_s=in_window_s)
    )
    monkeypatch.setattr(protocol, "host_median_s", lambda batches: 2e-3)

    figures = run(H200, None, point("a", lambda d: Step("a", Chip()), kind="block"))["a"]

    assert figures.time.host_median_s == min(in_window_s, 2e-3)


def test_a_whole_step_on_a_gpu_without_a_sensor_is_sustained_and_has_no_power() -> None:
    figures = run(H200, None, point("a", lambda d: Step("a", Chip()), kind="block"))["a"]

    assert figures.sampling.regime == "sustained"
    assert figures.sampling.stop_reason == "window"
    assert figures.power.mean_w is None
    assert figures.energy.reason == "no driver"


def test_the_watts_of_a_short_sustained_run_are_kept_and_make_no_energy() -> None:
    chip = Chip(watts={"a": 640.0})

    figures = run(H200, chip, point("a", lambda d: Step("a", chip), kind="block"))["a"]

    assert figures.power.instant_mean_w == pytest.approx(640.0)
    assert (figures.power.mean_w, figures.energy.j_per_iteration) == (None, None)


@pytest.mark.parametrize(("device", "kind"), [(CPU, "block"), (H200, "gemm"), (H200, "attention")])
def test_kernels_and_everything_on_a_cpu_are_bursts(device: Device, kind: str) -> None:
    figures = run(device, None, point("a", lambda d: Step("a", Chip()), kind=kind))["a"]

    assert figures.sampling.regime == "burst"
    assert figures.time.burst_median_s is None


def test_each_kernel_has_the_clock_and_power_of_its_own_batches() -> None:
    chip = Chip(clocks_hz={"fp32": 1.98e9, "bf16": 1.41e9}, watts={"fp32": 480.0, "bf16": 700.0})
    points = [point(name, lambda d, name=name: Step(name, chip)) for name in ("fp32", "bf16")]

    figures = run(H200, chip, *points)

    clocks = {name: figures[name].device_state.sm_clock_median_hz for name in figures}
    watts = {name: figures[name].power.instant_mean_w for name in figures}
    assert clocks == {"fp32": 1.98e9, "bf16": 1.41e9}
    assert watts == {"fp32": 480.0, "bf16": 700.0}
    assert figures["bf16"].power.mean_w is None  # a window's, which there is none of


def test_what_happens_during_the_window_decides_whether_it_was_disturbed() -> None:
    chip = Chip()
    host = iter([CpuReading(busy_s=0.0, total_s=16.0 * at_s, own_s=0.0, wall_s=at_s) for at_s in range(1000)])
    calm = DeviceGate(lambda: 0, lambda: next(host))

    block = point("a", lambda d: Step("a", chip), kind="block")
    quiet = run(H200, chip, block, gate=calm)["a"]
    loud = run(H200, chip, block, gate=ScriptedGate(0.0, 0.0, 0.0, 0.4))["a"]

    assert (quiet.sampling.quality, quiet.sampling.other_load_ratio) == ("ok", 0.0)
    assert (loud.sampling.quality, loud.sampling.other_load_ratio) == ("contended", 0.4)


def test_a_launch_bound_point_on_a_busy_host_is_contended_and_a_product_is_not() -> None:
    # others keep half of the 16 CPUs busy
    host = iter([CpuReading(busy_s=8.0 * at_s, total_s=16.0 * at_s, own_s=0.0, wall_s=at_s) for at_s in range(1000)])
    gate = DeviceGate(lambda: 0, lambda: next(host))
    chip = Chip()

    launch = run(H200, chip, point("a", lambda d: Step("a", chip), kind="launch"), gate=gate)["a"]
    product = run(H200, chip, point("b", lambda d: Step("b", chip), kind="gemm"), gate=gate)["b"]

    assert (launch.sampling.quality, launch.sampling.other_load_ratio) == ("contended", 0.5)
    assert (product.sampling.quality, product.sampling.other_load_ratio) == ("ok", 0.5)


def test_a_forced_slow_down_during_the_batches_of_a_kernel_is_seen() -> None:
    class Hot(Chip):
        def state(self) -> State:
            mask = 0x40 if self.running == "a" else 0
            return State(time_s=time.monotonic(), clock_event_mask=mask, power_limit_w=700.0)

    chip = Hot()
    points = [point(name, lambda d, name=name: Step(name, chip)) for name in ("a", "b")]

    figures = run(H200, chip, *points)

    assert figures["a"].sampling.quality == "throttled"
    assert figures["b"].sampling.quality == "ok"


def test_what_a_trial_tells_at_the_end_is_in_its_figures() -> None:
    class Told(Step):
        def outcome(self) -> TrialOutcome:
            return TrialOutcome(attention_backend="cudnn", params=7)

    figures = run(H200, Chip(), point("a", lambda d: Told("a", Chip())))["a"]

    assert (figures.attention_backend, figures.params) == ("cudnn", 7)


def test_a_device_at_rest_has_a_power_and_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "SETTLE_S", 0.05)
    chip = Chip(watts={"": 71.0})
    idle = point("idle/bare", call(lambda: time.sleep(0.01)), kind="idle", energy_s=0.2)

    figures = run(H200, chip, idle)["idle/bare"]

    assert figures.power.idle_w == figures.power.mean_w == pytest.approx(71.0)
    assert (figures.time.median_s, figures.energy.j_per_iteration) == (None, None)
    assert figures.device_state.sm_clock_median_hz == 1.2e9


def test_power_at_rest_without_a_sensor_is_unsupported_with_the_reason() -> None:
    figures = run(H200, None, point("idle/bare", call(), kind="idle", energy_s=0.2))["idle/bare"]

    assert figures == Figures(status="unsupported", reason="no driver")


def test_a_compiled_point_has_the_time_of_its_first_call() -> None:
    calls: list[int] = []

    def compiles_at_first() -> None:
        if not calls:
            time.sleep(0.2)
        calls.append(1)

    compiled = point("a", call(compiles_at_first), setup=RunSetup(compiled=True))

    figures = run(CPU, None, compiled)["a"]

    assert figures.sampling.compile_s is not None
    assert figures.sampling.compile_s >= 0.2


def test_a_long_kernel_is_timed_without_a_graph() -> None:
    chip = Chip()

    figures = run(H200, chip, point("a", lambda d: Step("a", chip), graph=True))["a"]

    assert figures.recipe_flags == ()
    assert figures.time.median_s == pytest.approx(2e-3)

"""A group of points: whatever happens to one is its own result, and the others are measured."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

from planner.records.work import RunSetup  # noqa: E402
from probes.device.clock import no_mark  # noqa: E402
from probes.device.device import Device  # noqa: E402
from probes.device.faults import DeviceLost, cleaned  # noqa: E402
from probes.record.figures import Figures  # noqa: E402
from probes.sensors.interface import Sensor  # noqa: E402
from probes.session.bench import Bench  # noqa: E402
from probes.session.group import run_group, trial_of  # noqa: E402
from probes.timing.protocol import Rules  # noqa: E402
from probes.timing.trial import CallTrial, Point, PointGroup, TrialOutcome  # noqa: E402
from tests.probes.build import CPU, call, point  # noqa: E402

X = torch.ones(64, 64)


def bench(sensor: Sensor | None = None) -> Bench:
    rules = Rules(ci_ratio=0.05, cap_s=0.02, warmup_s=0.0, min_total_s=0.001)
    return Bench(
        device=CPU, gate=None, sensor=sensor, no_sensor="no counter", rng=random.Random(0), rules=lambda point: rules
    )


def run(*points: Point, sensor: Sensor | None = None) -> dict[str, Figures]:
    group = PointGroup(name="test", points=points, estimate_s=1.0)
    return {result.point.probe_id: result.figures for result in run_group(group, bench(sensor))}


def work() -> CallTrial:
    return CallTrial(call=lambda: X @ X, held_bytes=float(X.nbytes))


def failing(error: Exception):
    def build(_device: Device) -> CallTrial:
        raise error

    return build


def test_points_come_back_in_the_order_given_with_their_figures() -> None:
    figures = run(point("a", lambda d: work()), point("b", lambda d: work()))

    assert list(figures) == ["a", "b"]
    assert figures["a"].status == "ok"
    assert figures["a"].time.ci_low_s <= figures["a"].time.median_s <= figures["a"].time.ci_high_s
    assert figures["a"].energy.reason == "no counter"


def test_an_interruption_costs_the_point_under_way_and_not_those_before_it() -> None:
    class Interrupted(CallTrial):
        def outcome(self) -> TrialOutcome:
            raise KeyboardInterrupt

    reported: list[str] = []
    points = [point("a", lambda d: work()), point("b", lambda d: Interrupted(call=lambda: X @ X))]

    with pytest.raises(KeyboardInterrupt):
        run_group(
            PointGroup(name="test", points=points, estimate_s=1.0),
            bench(),
            lambda result: reported.append(result.point.probe_id),
        )

    assert reported == ["a"]


def test_a_point_known_to_be_unsupported_is_not_built() -> None:
    figures = run(point("a", failing(AssertionError("built")), unsupported="no FP8 units"))

    assert figures["a"] == Figures(status="unsupported", reason="no FP8 units")


def test_a_missing_package_is_a_reason() -> None:
    figures = run(point("a", call(), needs="no_such_package"))

    assert figures["a"] == Figures(status="unsupported", reason="needs no_such_package, which is not installed")


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80.00 GiB"),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:119] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
    ids=["cuda", "python", "cpu", "driver", "cublas"],
)
def test_out_of_memory_is_a_result_and_the_next_point_runs(error: Exception) -> None:
    figures = run(point("big", failing(error)), point("small", lambda d: work()))

    assert figures["big"] == Figures(status="oom", reason="not enough memory on the device")
    assert figures["small"].status == "ok"


def test_a_point_that_does_not_fit_beside_the_others_is_measured_in_a_second_sitting() -> None:
    alive: list[str] = []

    class Large:
        held_bytes = 0.0
        flags: tuple[str, ...] = ()
        steps = 1

        def __init__(self, name: str) -> None:
            if alive:
                raise MemoryError
            self.name = name
            alive.append(name)

        def __del__(self) -> None:
            if getattr(self, "name", None) in alive:
                alive.remove(self.name)

        def step(self, mark) -> None:
            return

        def outcome(self) -> TrialOutcome:
            return TrialOutcome()

    figures = run(point("one", lambda d: Large("one")), point("two", lambda d: Large("two")))

    assert [fields.status for fields in figures.values()] == ["ok", "ok"]


def test_a_step_that_fails_spoils_only_its_own_point() -> None:
    calls = [0]

    def sometimes() -> None:
        calls[0] += 1
        if calls[0] > 4:
            raise RuntimeError("inside the step")

    figures = run(point("bad", call(sometimes)), point("good", lambda d: work()))

    assert figures["bad"] == Figures(status="error", reason="RuntimeError: inside the step")
    assert figures["good"].status == "ok"


def test_memory_running_out_only_when_all_run_together_is_found_by_running_each_alone() -> None:
    state = {"one": False, "two": False}

    class Hungry:
        held_bytes = 0.0
        flags: tuple[str, ...] = ()
        steps = 1

        def __init__(self, name: str) -> None:
            self.name = name
            state[name] = True

        def __del__(self) -> None:
            state[self.name] = False

        def step(self, mark) -> None:
            if all(state.values()):
                raise MemoryError

        def outcome(self) -> TrialOutcome:
            return TrialOutcome()

    figures = run(point("one", lambda d: Hungry("one")), point("two", lambda d: Hungry("two")))

    assert [fields.status for fields in figures.values()] == ["ok", "ok"]


def test_a_product_that_a_library_lacks_spoils_only_its_own_point() -> None:
    error = RuntimeError("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmulAlgoGetHeuristic( ...)`")

    figures = run(point("fp8", failing(error)), point("bf16", lambda d: work()))

    assert figures["fp8"].status == "error"
    assert figures["bf16"].status == "ok"


def test_compilation_without_a_compiler_is_unsupported_and_not_an_error() -> None:
    figures = run(
        point(
            "a",
            failing(RuntimeError("Failed to find C compiler. Please specify via CC")),
            setup=RunSetup(compiled=True),
        )
    )

    assert figures["a"] == Figures(
        status="unsupported", reason="torch.compile finds no working Triton, C compiler or Python headers"
    )


def test_a_broken_device_ends_the_group() -> None:
    with pytest.raises(DeviceLost, match="illegal memory access"):
        run(point("a", failing(RuntimeError("CUDA error: an illegal memory access was encountered"))))


def test_an_error_of_nccl_ends_the_group_without_asking_a_device_that_waits_for_ranks_that_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(error: BaseException) -> bool:
        raise AssertionError("to wait for the device is to wait for the collective")

    monkeypatch.setattr("probes.session.group.is_lost", asked)
    with pytest.raises(DeviceLost, match="DistBackendError: NCCL error in: …"):
        run(point("a", failing(torch.distributed.DistBackendError("NCCL error in: /pytorch/nccl.cpp:94, gone"))))


def test_an_error_that_says_itself_that_the_device_is_lost_ends_the_group_too() -> None:
    with pytest.raises(DeviceLost, match="gone"):
        run(point("a", failing(DeviceLost("gone"))))


def test_a_trial_for_work_outside_of_a_group_is_warm() -> None:
    calls: list[int] = []

    trial = trial_of(point("a", call(lambda: calls.append(1))), CPU)

    assert len(calls) == 3
    trial.step(no_mark)
    assert len(calls) == 4


def test_a_reason_holds_no_path() -> None:
    error = RuntimeError("cannot open /srv/someone/.cache/x.so or 'C:\\Users\\someone\\x'\nsecond line")

    assert cleaned(error) == "RuntimeError: cannot open … or '…'"


def test_the_peak_of_a_step_is_measured_where_asked() -> None:
    figures = run(point("a", lambda d: work(), memory=True))

    # one result of 64 x 64 in FP32 beside the operand that is held
    assert figures["a"].memory.allocated_peak_bytes == pytest.approx(2 * 64 * 64 * 4)
    assert figures["a"].memory.source == "cpu_allocator_events"


def test_energy_is_read_in_a_window_and_multiplied_by_the_time_of_an_iteration() -> None:
    import time

    from probes.sensors import ReplaySensor
    from tests.probes.sensors.test_replay import ramp

    shifted = ramp(200.0, 120.0, ticks_per_s=50)
    start = time.monotonic()
    sensor = ReplaySensor(
        type(shifted)(
            readings=tuple(type(r)(**{**_as(r), "time_s": r.time_s + start}) for r in shifted.readings),
            states=tuple(type(s)(**{**_as(s), "time_s": s.time_s + start}) for s in shifted.states),
        ),
        now=time.monotonic,
    )

    waiting = call(lambda: time.sleep(2e-3))  # leaves the sampler its turn on a busy machine

    figures = run(point("a", waiting, energy_s=1.0), sensor=sensor)["a"]

    assert figures.power.mean_w == pytest.approx(200.0, rel=0.05)  # a tick of 20 ms at both ends of a second
    assert figures.energy.j_per_iteration == pytest.approx(figures.power.mean_w * figures.time.median_s)
    assert (figures.energy.source, figures.energy.scope, figures.sampling.regime) == ("counter", "board", "sustained")


def _as(reading: object) -> dict:
    from dataclasses import asdict

    return asdict(reading)  # type: ignore[call-overload]

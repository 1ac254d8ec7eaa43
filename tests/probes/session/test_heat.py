"""A GPU is hot before anything on it is timed, and a CPU is left as it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from probes.device.clock import Batch, CpuClock
from probes.device.faults import DeviceLost
from probes.ranks.team import Place, Team
from probes.record.options import Options
from probes.session import heat, suite
from probes.session.listener import Silence
from probes.session.suite import Session
from tests.probes.build import call, plan, ungated
from tests.probes.fake_cuda.installed import fake_cuda


@pytest.fixture(autouse=True)
def machine_is_watched_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.device.canary_clock.OBSERVED_S", 0.1)


@pytest.mark.parametrize(("name", "limit_s"), [("quick", heat.QUICK_SOAK_S), ("default", heat.SOAK_S)])
def test_every_suite_begins_with_a_heat_soak(monkeypatch: pytest.MonkeyPatch, name: str, limit_s: float) -> None:
    monkeypatch.setattr(heat, "warm_libraries", lambda _: None)
    limits: list[float] = []

    def soak(*_: object, limit_s: float) -> float:
        limits.append(limit_s)
        return 64.0

    monkeypatch.setattr(heat, "heat_soak", soak)

    assert heat.soaked_c(plan(suite=name), CpuClock(), None) == 64.0
    assert limits == [limit_s]


def test_a_device_that_has_cooled_down_is_run_until_it_is_as_hot_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    class Warming:
        """One degree more at every look."""

        def __init__(self) -> None:
            self.now_c = 60.0

        def state(self) -> object:
            self.now_c += 1.0
            return type("State", (), {"temperature_c": self.now_c})()

    sensor = Warming()
    monkeypatch.setattr(heat, "trial_of", lambda *_: call()(plan().device))
    monkeypatch.setattr(
        "probes.energy.window.run_batches", lambda *_: [Batch(samples_s=(1e-3,), phases_s={}, wall_s=0.0)]
    )

    assert heat.reheated(plan(), CpuClock(), sensor, 65.0) is None
    assert sensor.now_c == 64.0  # within a degree


@pytest.mark.parametrize(
    ("error", "lost"), [("not enough memory", False), ("CUDA error: an illegal memory access was encountered", True)]
)
def test_a_device_that_cannot_be_heated_again_is_measured_as_it_is_unless_it_broke(
    monkeypatch: pytest.MonkeyPatch, error: str, lost: bool
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(error)

    monkeypatch.setattr(heat, "trial_of", fail)

    if lost:
        with pytest.raises(DeviceLost):
            heat.reheated(plan(), CpuClock(), None, 65.0)
    else:
        assert heat.reheated(plan(), CpuClock(), None, 65.0) == f"the GPU was not heated again: RuntimeError: {error}"


def test_only_a_device_that_was_soaked_is_heated_before_its_canary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heated: list[float] = []
    monkeypatch.setattr(suite, "reheated", lambda *others: heated.append(others[-1]))
    options = Options(
        device="cpu", suite="quick", precisions=("fp32",), path=str(tmp_path / "r.jsonl"), workloads=("canary",)
    )
    session = ungated(Session(options))

    session.run()
    assert heated == []  # a CPU
    session.bench = replace(session.bench, soak_c=64.0)
    session._canary()
    session.close()

    assert heated == [64.0]


@pytest.mark.parametrize(
    ("error", "lost"), [("CUDA out of memory", False), ("CUDA error: an illegal memory access was encountered", True)]
)
def test_a_gpu_without_memory_for_the_heat_soak_is_measured_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, lost: bool
) -> None:
    """Other processes may hold nearly all of its memory; each point then shows whether it still fits."""
    import torch

    class Notes(Silence):
        def noted(self, text: str) -> None:
            notes.append(text)

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError(error)

    notes: list[str] = []
    monkeypatch.setattr(heat, "warm_libraries", full)
    with fake_cuda(whole_models=False):
        options = Options(
            suite="quick", precisions=("bf16-autocast",), workloads=("bandwidth",), path=str(tmp_path / "r.jsonl")
        )
        session = Session(options, Notes())
        try:
            outcome = session.run()
        finally:
            session.close()

    assert (outcome.lost_device is not None) is lost
    if not lost:
        assert "the GPU was not heated: OutOfMemoryError: CUDA out of memory" in notes
        assert session.ledger.known["bandwidth/copy"].status == "ok"


def test_a_rank_that_cannot_be_heated_ends_since_the_others_would_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(heat, "warm_libraries", full)
    notes: list[str] = []
    of_two = replace(plan(), team=Team(Place(world=2), control=object()))

    with pytest.raises(RuntimeError, match="out of memory"):
        heat.soaked_c(of_two, CpuClock(), None, notes.append)
    assert notes == []

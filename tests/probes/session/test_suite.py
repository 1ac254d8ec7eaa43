"""A session after a crash: the point to blame is found, and everything else is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from probes.device.faults import DeviceLost
from probes.record.options import Options
from probes.record.writer import UnderWay
from probes.sensors import open_sensor
from probes.session import suite as session_module
from probes.session.listener import Silence
from probes.session.suite import DIED, Session
from probes.workloads.canary import canary_point
from tests.probes.build import H200, plan, ungated
from tests.probes.fake_cuda.installed import fake_cuda
from tests.probes.fake_cuda.nvml import FakeNvml
from tests.probes.sensors.test_nvml import UUID, StandIn


@pytest.fixture(autouse=True)
def nothing_is_timed_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here asks how fast anything is: small buffers, and no two seconds of watching how fast the machine is."""
    monkeypatch.setattr("probes.workloads.bandwidth.CPU_BYTES", 2**20)
    monkeypatch.setattr("probes.device.canary_clock.OBSERVED_S", 0.1)


@contextmanager
def opened(path: Path, *workloads: str, **changes: Any) -> Iterator[Session]:
    values: dict[str, Any] = {"device": "cpu", "suite": "quick", "precisions": ("fp32",), "path": str(path)}
    session = Session(Options(**(values | {"workloads": workloads, "budget_s": 600.0} | changes)))
    try:
        yield ungated(session)
    finally:
        session.close()


def statuses(session: Session) -> dict[str, str]:
    return {name: line.status for name, line in session.ledger.known.items()}


def test_the_one_point_that_the_last_process_died_of_is_written_down_and_not_run(tmp_path: Path) -> None:
    UnderWay(tmp_path / "r.jsonl").begin(["bandwidth/copy"])

    with opened(tmp_path / "r.jsonl", "bandwidth", skip_failed=True) as session:
        session.run()

    assert statuses(session)["bandwidth/copy"] == "error"
    assert session.ledger.known["bandwidth/copy"].reason == DIED
    assert statuses(session)["bandwidth/add"] == "ok"
    assert not (tmp_path / "r.jsonl.underway").exists()


def test_a_group_that_the_last_process_died_of_is_measured_point_by_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    run_group = session_module.run_group

    def counting(group: Any, *others: Any) -> Any:
        sizes.append(len(group.points))
        return run_group(group, *others)

    monkeypatch.setattr(session_module, "run_group", counting)
    UnderWay(tmp_path / "r.jsonl").begin(["bandwidth/copy", "bandwidth/add"])

    with opened(tmp_path / "r.jsonl", "bandwidth", skip_failed=True) as session:
        session.run()

    assert (statuses(session)["bandwidth/copy"], statuses(session)["bandwidth/add"]) == ("ok", "ok")
    assert set(sizes) == {1}


def test_a_recipe_whose_product_killed_the_last_process_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    UnderWay(tmp_path / "r.jsonl").begin(["support/bf16-pure"])

    with opened(tmp_path / "r.jsonl", "launch", precisions=("fp32", "bf16-pure"), skip_failed=True) as session:
        session.run()

    assert statuses(session)["support/bf16-pure"] == "error"
    assert [recipe.id for recipe in session.plan.recipes] == ["fp32"]
    assert statuses(session)["launch/host"] == "ok"


def test_what_a_process_was_killed_in_once_is_tried_again_when_a_user_resumes_and_given_up_after_the_second_time(
    tmp_path: Path,
) -> None:
    record = tmp_path / "r.jsonl"
    UnderWay(record).begin(["support/fp32"])

    with opened(record, "launch", resume=True) as session:
        session.run()

    assert statuses(session)["support/fp32"] == "ok"
    UnderWay(record).begin(["bandwidth/copy"])
    UnderWay(record).begin(["bandwidth/copy"])
    with opened(record, "bandwidth", resume=True) as session:
        session.run()
    assert statuses(session)["bandwidth/copy"] == "error"
    assert statuses(session)["bandwidth/add"] == "ok"


def lose(group: Any, *others: Any) -> Any:
    if group.points[0].kind == "bandwidth":
        raise DeviceLost("an illegal memory access was encountered")
    return REAL(group, *others)


REAL = session_module.run_group


def test_a_device_lost_among_several_points_leaves_the_blame_to_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "run_group", lose)

    with opened(tmp_path / "r.jsonl", "bandwidth") as session:
        outcome = session.run()

    assert outcome.lost_device == "an illegal memory access was encountered"
    assert not [name for name in session.ledger.known if name.startswith("bandwidth")]
    assert UnderWay(tmp_path / "r.jsonl").left_behind() == ("bandwidth/copy", "bandwidth/add")


def test_a_recipe_that_loses_the_device_is_written_down_so_that_the_next_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(recipe: Any, device: Any) -> Any:
        raise DeviceLost("misaligned address")

    monkeypatch.setattr("probes.session.support.check_support", broken)

    with opened(tmp_path / "r.jsonl", "launch") as session:
        outcome = session.run()

    assert outcome.lost_device == "misaligned address"
    assert session.ledger.known["support/fp32"].reason == "the device was lost: misaligned address"


def test_time_that_earlier_processes_used_counts_against_the_budget(tmp_path: Path) -> None:
    with opened(tmp_path / "r.jsonl", "launch", budget_s=60.0, spent_s=60.0) as session:
        outcome = session.run()

    assert outcome.left_out == ("kernel launch",)


def test_the_canary_of_a_gpu_settles_to_its_sustained_clock_before_it_is_timed(tmp_path: Path) -> None:
    with opened(tmp_path / "r.jsonl", "launch") as session:
        on_cpu = session.bench.rules(canary_point(plan())).warmup_s
        session.device = H200
        on_gpu = session.bench.rules(canary_point(plan(H200))).warmup_s

    assert on_cpu < 0.3
    assert on_gpu == 1.0


def test_a_device_that_meters_nothing_gets_no_energy_windows_and_each_point_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = StandIn()
    nvml.mig = 1
    monkeypatch.setattr("probes.sensors.nvml.load_nvml", lambda: nvml)
    options = Options(
        device="cpu", suite="quick", precisions=("fp32",), path=str(tmp_path / "r.jsonl"),
        workloads=("idle", "bandwidth"),
    )  # fmt: skip
    session = Session(options, opened=open_sensor("cuda", UUID))

    try:
        ungated(session).run()
    finally:
        session.close()

    copy = session.ledger.known["bandwidth/copy"]
    assert not session.plan.has_sensor
    assert not any(name.startswith("idle/") for name in session.ledger.known)
    assert (copy.energy.source, copy.energy.reason) == (
        "none", "the device is a MIG slice; the board does not meter slices",
    )  # fmt: skip


def test_what_keeps_a_gpu_busy_unlisted_is_noted_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Notes(Silence):
        def __init__(self) -> None:
            self.texts: list[str] = []

        def noted(self, text: str) -> None:
            self.texts.append(text)

    notes, busy = Notes(), SimpleNamespace(gpu=37, memory=12)
    monkeypatch.setattr(FakeNvml, "nvmlDeviceGetUtilizationRates", lambda *_: busy)
    options = Options(device="cuda", precisions=("fp32",), path=str(tmp_path / "r.jsonl"), measure=False)
    with fake_cuda(whole_models=False):
        session = Session(options, notes)
        session.run()
        session.close()

    assert "the GPU was 37% busy before the probe used it" in notes.texts[0]

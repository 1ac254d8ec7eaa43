"""Two ranks on fake H200s, over what stands for NCCL: what a record of several GPUs holds, and how a run of them ends.

What the fake GPUs stand for is in `fake_cuda/`; their rates are made up, so that no figure of them is asserted here.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from planner.records.communication import OPS
from planner.records.measurement import Measurement
from probes.precisions import choose
from probes.process.worker import EXIT_DEVICE_LOST
from probes.ranks.team import Place, Team
from probes.record.options import RANKS_BUDGETS_S
from probes.record.ranks_summary import waiting_power_w
from probes.timing.regime import SUSTAINED_KINDS
from probes.timing.trial import ProbePlan
from probes.verify.document import verify_cases
from probes.workloads import DISTRIBUTED
from probes.workloads.distributed.collective import GPU_SIZES
from probes.workloads.expected import START_S
from tests.probes.build import H200
from tests.probes.fake_cuda.once import once
from tests.probes.ranks.fake_run import OUT_OF_MEMORY, RanksRun, run_broken, run_mixed, run_quick

NAMES = ("node 0 rank 0", "node 0 rank 1")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RanksRun:
    return once(tmp_path_factory, "ranks", run_quick)


@pytest.fixture(scope="module")
def timed(run: RanksRun) -> list[Measurement]:
    """Points of which both ranks have times."""
    return [point for point in run.points if point.status == "ok" and point.kind != "support"]


def test_every_workload_gives_points_and_nothing_is_left_out(run: RanksRun) -> None:
    measured = Counter(point.setup.workload for point in run.points if point.status == "ok")

    assert run.codes == (0, 0)
    assert run.events[-1]["left_out"] == []
    assert set(measured) >= {workload.name for workload in DISTRIBUTED}


def test_memory_that_runs_out_on_one_rank_is_the_result_on_both_and_the_run_goes_on(run: RanksRun) -> None:
    failed = {point.probe_id: (point.status, point.reason) for point in run.points if point.status != "ok"}
    rerun = f"verify/{OUT_OF_MEMORY[1]}"  # the same step, predicted and run again

    assert failed == dict.fromkeys((*OUT_OF_MEMORY, rerun), ("oom", "node 0 rank 1: not enough memory on the device"))


def test_collectives_are_measured_by_nccl_in_every_operation_and_size(run: RanksRun) -> None:
    points = [point.communication for point in run.points if point.kind == "collective"]

    assert {(at.op, at.bytes) for at in points} == {(op, float(size)) for op in OPS for size in GPU_SIZES[::4]}
    assert {(at.backend, at.world, at.nodes) for at in points} == {("nccl", 2, 1)}
    assert (GPU_SIZES[0], GPU_SIZES[-1]) == (1024, 1024**3)


def test_every_line_has_both_ranks_and_the_time_of_the_slower_one(timed: list[Measurement]) -> None:
    for point in timed:
        assert point.ranks.names == NAMES
        assert point.time.median_s is not None
        fast_s, slow_s = point.ranks.time_s
        assert fast_s < slow_s == pytest.approx(point.time.median_s, rel=0.01), point.probe_id


def test_energy_and_power_are_those_of_both_boards(timed: list[Measurement]) -> None:
    metered = [point for point in timed if point.power.mean_w is not None]

    assert {point.setup.workload for point in metered} == {"parallel-step", "waiting"}
    for point in metered:
        assert point.power.mean_w == pytest.approx(sum(point.ranks.power_w))
        assert point.energy.j_per_iteration == pytest.approx(sum(point.ranks.energy_j))
        assert min(point.ranks.power_w) > 0.0


def test_each_rank_reads_its_own_board(timed: list[Measurement]) -> None:
    for point in timed:
        assert point.ranks.sm_clock_hz == (1755e6, 1200e6), point.probe_id
        assert point.ranks.power_limit_w == (700.0, 500.0), point.probe_id


def test_the_rank_that_heat_slowed_down_is_named_and_the_line_called_throttled(timed: list[Measurement]) -> None:
    assert {point.ranks.slowed for point in timed} == {("node 0 rank 1",)}
    assert {point.sampling.quality for point in timed} == {"throttled"}


def test_the_power_of_waiting_is_that_of_ranks_that_wait(run: RanksRun) -> None:
    (point,) = (point for point in run.points if point.kind == "waiting")
    rested_w, waited_w = point.ranks.power_w

    assert rested_w < waited_w
    assert waiting_power_w(run.points) == waited_w


def test_whole_steps_are_sustained_and_kernels_are_not(timed: list[Measurement]) -> None:
    steps = [point for point in timed if point.kind in SUSTAINED_KINDS]

    assert {point.setup.parallel for point in steps} == {"alone", "ddp", "alone-fsdp2", "fsdp2"}
    assert {point.sampling.regime for point in steps} == {"sustained"}
    assert {point.sampling.regime for point in timed if point.kind in ("collective", "overlap")} == {"burst"}


def test_steps_over_both_ranks_are_predicted_from_their_parts_and_run(run: RanksRun) -> None:
    checks = [point for point in run.points if point.kind == "verify"]
    judged = [case["name"] for case in verify_cases(run.points) if case["metric"] == "time"]

    assert {point.setup.parallel for point in checks} == {"ddp", "fsdp2"}
    assert sorted(judged) == sorted(point.probe_id.removeprefix("verify/") for point in checks if point.status == "ok")
    assert len(judged) == len(checks) - 1  # one runs out of memory
    assert all(point.predicted.time_s is not None for point in checks)


def test_products_and_collectives_slow_each_other_down_by_what_both_at_once_take(timed: list[Measurement]) -> None:
    points = [point.overlap for point in timed if point.kind == "overlap"]

    assert len(points) == 2
    for overlap in points:
        assert overlap.product_alone_s is not None
        assert overlap.product_beside_s is not None
        assert overlap.product_slowdown_ratio == pytest.approx(overlap.product_beside_s / overlap.product_alone_s)
        assert overlap.collective_slowdown_ratio is not None


def test_the_record_holds_no_identifier_of_a_gpu(run: RanksRun) -> None:
    lines = [event["line"] for event in run.events if event["event"] == "measured"]

    assert len(lines) > 30
    assert "11111111-2222" not in "\n".join(lines)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> RanksRun:
    return once(tmp_path_factory, "broken", run_broken)


def test_an_error_of_nccl_on_one_rank_ends_both_as_a_lost_device_and_is_named(broken: RanksRun) -> None:
    words = (
        "node 0 rank 1: DistBackendError: NCCL error in: … remote process exited or there was a network error, "
        "NCCL version 2.29.3"
    )
    (point,) = (point for point in broken.points if point.kind == "waiting")

    assert broken.codes == (EXIT_DEVICE_LOST, EXIT_DEVICE_LOST)
    assert (broken.events[-1]["event"], broken.events[-1]["lost_device"]) == ("ended", words)
    assert (point.status, point.reason) == ("error", f"the device was lost: {words}")


def test_processes_that_are_shown_one_gpu_each_take_that_one(broken: RanksRun) -> None:
    (canary,) = (point for point in broken.points if point.kind == "canary")

    assert (canary.status, canary.ranks.names) == ("ok", NAMES)


def test_ranks_on_different_gpus_all_end_before_anything_is_measured(tmp_path_factory: pytest.TempPathFactory) -> None:
    mixed = once(tmp_path_factory, "mixed", run_mixed)

    assert mixed.codes == (4, 4)
    assert mixed.events[-1]["message"] == "node 0 rank 1 has NVIDIA A100-SXM4-80GB, rank 0 NVIDIA H200"
    assert mixed.record is None


class ListedTeam(Team):
    """Ranks that only list what they would measure."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place, self.backend = place, "nccl"

    def _made(self, parts: tuple[tuple[int, ...], ...]) -> Any:
        return None


@pytest.mark.parametrize(("suite", "start_s"), [("quick", 0.0), ("default", START_S), ("thorough", START_S)])
def test_all_that_a_node_of_8_gpus_measures_fits_its_time(suite: str, start_s: float) -> None:
    recipes = tuple(recipe for recipe in choose((), "cuda") if recipe.unsupported_on(H200) is None)
    team = ListedTeam(Place(world=8, local_world=8))
    plan = ProbePlan(device=H200, suite=suite, recipes=recipes, has_sensor=True, team=team)
    groups = [group for workload in DISTRIBUTED for group in workload.groups(plan)]

    assert {group.points[0].workload for group in groups} == {workload.name for workload in DISTRIBUTED}
    assert sum(group.estimate_s for group in groups) + start_s <= RANKS_BUDGETS_S["cuda"][suite]

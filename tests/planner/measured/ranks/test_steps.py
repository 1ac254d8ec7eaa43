"""Steps over several ranks, from their parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from planner.measured.network.messages import StepMessage
from planner.measured.ranks.steps import predict_step
from planner.records.communication import Communication
from planner.records.figures import TimeStatistics
from planner.records.measurement import Measurement
from planner.records.work import RunSetup, WorkCounts, WorkShape
from tests.planner.measured.ranks.test_collectives import collective
from tests.planner.measured.ranks.test_overlap import overlap
from tests.planner.recorded import a_measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    kind: str = "parallel_step"
    setup: RunSetup
    shape: WorkShape
    counts: WorkCounts


ALONE = replace(
    a_measurement(kind="parallel_step", probe_id="parallel_step/alone"),
    setup=RunSetup(parallel="alone", recipe="fp32", recompute="none"),
    shape=WorkShape(model="tiny", dp=4),
    counts=WorkCounts(flop_model=4e9),
    time=TimeStatistics(median_s=0.35, forward_median_s=0.1, backward_median_s=0.2, optimizer_median_s=0.05),
)
"""Four ranks by themselves: 100 ms, 200 ms and 50 ms."""
REDUCE = StepMessage(op="all_reduce", world=4, stride=1, bytes=1e6, count=3, phase="backward", hidden=True)
KNOWN: list[Measurement] = [
    ALONE, collective("all_reduce", 4, 1e3, 1e-3), collective("all_reduce", 4, 1e6, 0.02),
    overlap("all_reduce", 1.25, 1.5),
]  # fmt: skip


def step(parallel: str, flop: float = 4e9, recompute: str = "none", **shape: int) -> Step:
    return Step(
        setup=RunSetup(parallel=parallel, recipe="fp32", recompute=recompute),
        shape=WorkShape(model="tiny", **shape),
        counts=WorkCounts(flop_model=flop),
    )


def test_hidden_messages_slow_the_backward_pass_and_open_ones_come_on_top() -> None:
    """Three all-reduces of 20 ms: beside the work they take 90 ms, in which 72 ms of work are done; 18 ms are lost."""
    last = replace(REDUCE, count=1, hidden=False)

    predicted = predict_step(step("ddp", dp=4), [REDUCE, last], "fp32", KNOWN)

    assert predicted.time_s == pytest.approx(0.35 + 0.018 + 0.02)
    assert predicted.probe_ids[0] == "parallel_step/alone"
    assert "overlap/all_reduce/1.25" in predicted.probe_ids


def test_without_messages_a_step_takes_what_ranks_alone_take() -> None:
    assert predict_step(step("ddp", dp=4), [], "fp32", KNOWN).time_s == pytest.approx(0.35)


def test_half_the_arithmetic_takes_half_the_time_and_a_shard_of_the_update() -> None:
    assert predict_step(step("tp", flop=2e9, tp=4), [], "fp32", KNOWN).time_s == pytest.approx(0.15 + 0.05 / 4)


def test_recomputation_runs_the_forward_pass_again() -> None:
    assert predict_step(step("ddp", dp=4, recompute="full"), [], "fp32", KNOWN).time_s == pytest.approx(0.45)


def test_sharded_states_are_updated_in_parts() -> None:
    assert predict_step(step("fsdp2", dp=4), [], "fp32", KNOWN).time_s == pytest.approx(0.3 + 0.05 / 4)


def test_a_pipeline_waits_for_its_first_and_last_micro_batch() -> None:
    predicted = predict_step(step("pp-1f1b", pp=4, vp=1, micro_batches=8), [], "fp32", KNOWN)

    assert predicted.time_s == pytest.approx(0.3 * 1.375 + 0.05 / 4)


def test_the_rank_with_the_output_layer_holds_a_pipeline_up() -> None:
    """Two layers on each of two ranks, of 4 + 3 and the attention's 1 in units of hidden²; the output takes 8."""
    sizes = {"layers": 4, "hidden": 8, "heads": 2, "kv_heads": 2, "head_dim": 4, "ffn_hidden": 8, "seq_len": 8}
    at = {"pp": 2, "vp": 1, "micro_batches": 8}

    even = predict_step(step("pp-1f1b", 2e9, **sizes, **at, vocab=0), [], "fp32", KNOWN)
    uneven = predict_step(step("pp-1f1b", 2e9, **sizes, **at, vocab=64), [], "fp32", KNOWN)

    assert even.time_s == pytest.approx(0.3 * 1.125 + 0.05 / 2)
    assert uneven.time_s == pytest.approx(0.3 * (1.2 + 0.8 / 8) + 0.05 / 2)  # 16 + 8 of 40, and not 20


def way(parallel: str, **seconds: float) -> Measurement:
    """Steps of ranks alone, spread in a way over groups of one."""
    return replace(
        ALONE,
        probe_id=f"parallel_step/{parallel}",
        setup=replace(ALONE.setup, parallel=parallel),
        time=TimeStatistics(median_s=0.5, **{f"{phase}_median_s": value for phase, value in seconds.items()}),
    )


TP = way("alone-tp", forward=0.15, backward=0.28, optimizer=0.07)
FSDP = way("alone-fsdp2", forward=0.11, backward=0.22, optimizer=0.06)
PP = way("alone-pp", backward=0.4, optimizer=0.05)  # its schedule mixes the passes


@pytest.mark.parametrize(
    ("parallel", "degrees", "seconds"),
    [
        ("ddp", {"dp": 4}, 0.35),
        ("fsdp2", {"dp": 4}, 0.33 + 0.05 / 4 + 0.01),
        ("tp", {"tp": 4}, 0.43 + 0.05 / 4 + 0.02),
        ("tp+fsdp2", {"tp": 2, "dp": 2}, 0.43 + 0.03 + 0.05 / 4 + 0.03),
        ("pp-1f1b", {"pp": 4, "vp": 1, "micro_batches": 8}, 0.4 * 1.375 + 0.05 / 4),
        ("pp-1f1b+ddp", {"pp": 2, "dp": 2, "vp": 1, "micro_batches": 8}, 0.4 * 1.125 + 0.05 / 2),
    ],
)
def test_a_way_of_spreading_adds_what_it_adds_to_a_step_over_a_group_of_one(
    parallel: str, degrees: dict[str, int], seconds: float
) -> None:
    predicted = predict_step(step(parallel, **degrees), [], "fp32", [*KNOWN, TP, FSDP, PP])

    assert predicted.time_s == pytest.approx(seconds)


def test_the_steps_alone_that_a_prediction_rests_on_are_named() -> None:
    predicted = predict_step(step("tp+fsdp2", tp=2, dp=2), [], "fp32", [*KNOWN, TP, FSDP, PP])

    assert predicted.probe_ids == ("parallel_step/alone", "parallel_step/alone-fsdp2", "parallel_step/alone-tp")


def test_the_work_of_a_rank_counts_and_not_that_of_all() -> None:
    """Steps alone of two ranks with half the arithmetic of four, each as much as one of these."""
    two = replace(ALONE, counts=WorkCounts(flop_model=2e9), communication=Communication(world=2))

    assert predict_step(step("ddp", dp=4), [], "fp32", [two]).time_s == pytest.approx(0.35)


@pytest.mark.parametrize("without", [ALONE.probe_id, "collective"])
def test_without_one_of_its_parts_nothing_is_predicted(without: str) -> None:
    known = [point for point in KNOWN if not point.probe_id.startswith(without)]

    assert predict_step(step("ddp", dp=4), [REDUCE], "fp32", known).time_s is None


def test_another_model_or_precision_is_no_base() -> None:
    assert predict_step(step("ddp", dp=4), [], "bf16-fsdp", KNOWN).time_s is None
    other = replace(ALONE, shape=replace(ALONE.shape, model="another"))
    assert predict_step(step("ddp", dp=4), [], "fp32", [other]).time_s is None

"""Points of whole steps over several ranks: which there are, and what their lines say."""

from __future__ import annotations

from dataclasses import replace

from planner.records.measurement import KINDS
from probes.device.device import Device
from probes.ranks.team import Place, Team
from probes.timing.trial import Point
from probes.workloads.distributed.steps import ParallelSteps
from probes.workloads.expected import step_s
from tests.probes.build import CPU, H200, plan


class ListedTeam(Team):
    """Ranks that are there to be counted: points are listed before any rank does anything."""

    def __init__(self, world: int, backend: str) -> None:
        super().__init__()
        self.place = Place(world=world, local_world=min(world, 8))
        self.backend = backend

    def _made(self, parts: tuple[tuple[int, ...], ...]) -> None:
        return None


def points(world: int, device: Device = CPU, suite: str = "default", *, has_sensor: bool = False) -> list[Point]:
    team = ListedTeam(world, "nccl" if device.kind == "cuda" else "gloo")
    listed = replace(plan(device, suite, has_sensor=has_sensor), team=team)
    return [point for group in ParallelSteps().groups(listed) for point in group.points]


def test_two_ranks_take_the_strategies_of_one_degree_and_four_the_pairs_too() -> None:
    of_two = [(point.setup.parallel, point.setup.recompute) for point in points(2)]
    of_four = [(point.setup.parallel, point.setup.recompute) for point in points(4)]

    assert of_two == [
        ("alone", "none"), ("ddp", "none"), ("alone-fsdp2", "none"), ("fsdp2", "none"), ("alone-tp", "none"),
        ("tp", "none"), ("alone-pp", "none"), ("pp-1f1b", "none"), ("pp-interleaved", "none"), ("cp", "none"),
        ("ddp", "full"),
    ]  # fmt: skip
    assert set(of_four) - set(of_two) == {("tp+fsdp2", "none"), ("pp-1f1b+ddp", "none")}


def test_on_a_cpu_steps_take_turns_with_those_alone_that_predict_them() -> None:
    listed = replace(plan(CPU), team=ListedTeam(4, "gloo"))
    groups = [[point.setup.parallel for point in group.points] for group in ParallelSteps().groups(listed)]

    assert groups[:3] == [
        ["alone", "ddp", "alone-fsdp2", "fsdp2"], ["alone-tp", "tp", "tp+fsdp2"],
        ["alone-pp", "pp-1f1b", "pp-1f1b+ddp", "pp-interleaved"],
    ]  # fmt: skip
    assert [len(group) for group in groups[3:]] == [1, 1]


def test_the_quick_suite_takes_the_data_parallel_ones() -> None:
    assert [point.setup.parallel for point in points(4, suite="quick")] == [
        "alone", "ddp", "alone-fsdp2", "fsdp2", "ddp",
    ]  # fmt: skip


def test_a_line_has_the_degrees_the_tokens_of_all_ranks_and_who_took_part() -> None:
    (point,) = [point for point in points(4) if point.setup.parallel == "tp+fsdp2"]

    assert point.kind in KINDS
    assert (point.shape.tp, point.shape.dp, point.shape.pp, point.shape.vp, point.shape.cp) == (2, 2, 1, 1, 1)
    assert (point.shape.micro_batch, point.shape.micro_batches, point.shape.tokens) == (8, 1, 512)
    assert (point.communication.group, point.communication.world, point.communication.nodes) == ("world", 4, 1)
    assert point.communication.backend == "gloo"


def test_ranks_that_do_not_divide_the_sizes_leave_points_with_the_reason() -> None:
    why = {point.setup.parallel: point.unsupported for point in points(3)}

    assert why["tp"] == "3 ranks do not divide 16 heads"
    assert (why["alone"], why["ddp"], why["fsdp2"], why["pp-1f1b"]) == (None, None, None, None)


def test_points_have_ids_of_their_own_in_every_suite() -> None:
    for device in (CPU, H200):
        for suite in ("quick", "default", "thorough"):
            ids = [point.probe_id for point in points(8, device, suite)]
            assert len(set(ids)) == len(ids)


def test_bf16_is_what_the_strategy_holds_its_parameters_as_and_fp8_is_refused_where_layers_are_split() -> None:
    recipes = {
        (point.setup.parallel, point.recipe.id): point.unsupported
        for point in points(8, H200)
        if point.setup.recompute == "none"
    }

    assert recipes["fsdp2", "bf16-fsdp"] is None
    assert ("fsdp2", "bf16-autocast") not in recipes
    assert recipes["ddp", "bf16-autocast"] is None
    assert recipes["fsdp2", "fp8"] is None
    assert "fp8 cannot be combined with tp" in str(recipes["tp", "fp8"])


def test_energy_is_read_of_the_data_parallel_ones_only() -> None:
    metered = {point.setup.parallel for point in points(8, H200, has_sensor=True) if point.energy_s}

    assert metered == {"alone", "ddp", "fsdp2"}
    assert not any(point.energy_s for point in points(8, H200))


def test_the_expected_time_is_that_of_one_rank_of_those_that_share_the_arithmetic() -> None:
    of_two, of_eight = (
        next(point for point in points(world, H200) if point.recipe.id == "bf16-fsdp") for world in (2, 8)
    )

    assert step_s(H200, of_two) == step_s(H200, of_eight)

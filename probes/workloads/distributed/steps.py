"""Whole training steps over several ranks, one strategy beside another: all with the same model and global batch.

A step is forward, loss, backward, clipping by the norm of all gradients, and optimizer. Each rank has the same
arithmetic in every strategy, and the losses of all strategies agree step by step. Only `alone`, in which every rank
trains its own model on its part of the batch, starts from that loss and then diverges from it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from planner.records.communication import Communication
from planner.records.figures import Numerics
from planner.records.work import RunSetup
from probes.device.clock import Mark
from probes.device.device import Device
from probes.models.parallel import STRATEGIES
from probes.models.parallel.case import ParallelCase, case_of, widths_of
from probes.models.parallel.interface import RankStep, Strategy
from probes.precisions import recipe_by_id
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import Team
from probes.timing.trial import Point, PointGroup, ProbePlan, Trial, TrialOutcome
from probes.workloads.expected import group_s
from probes.workloads.metered import metered

LOSS_STEPS = 8
"""Number of steps whose loss is recorded."""
ENERGY_S = 3.0
CPU_POINT_S = 6.0
"""Time of a point on a CPU with one core per rank: building the model, a dozen steps, and reading the memory of one."""
RECIPES = ("fp32", "tf32", "bf16-autocast", "bf16-fsdp", "fp8")
"""Recipes to measure. Only one of the two BF16 recipes is used, depending on how the strategy holds parameters."""
COMPARED = ("alone", "ddp", "alone-fsdp2", "fsdp2")
TOGETHER = (
    ("steps alone, with DDP, with FSDP", COMPARED),
    ("steps with tensor parallelism", ("alone-tp", "tp", "tp+fsdp2")),
    ("steps of pipelines", ("alone-pp", "pp-1f1b", "pp-1f1b+ddp", "pp-interleaved")),
)
"""Steps that are measured in turns on a CPU; the strategies from which others are predicted come first."""
BF16 = ("bf16-fsdp", "bf16-autocast")


class ParallelSteps:
    """The time of whole steps that are spread over ranks."""

    name = "parallel-step"
    summary = "training steps of a decoder: DDP, FSDP2, tensor, pipeline and context parallel"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one group of points per strategy, with its precisions side by side."""
        world = plan.team.size
        groups = []
        for strategy in STRATEGIES:
            if world < strategy.least_world or (plan.suite == "quick" and strategy.id not in COMPARED):
                continue
            recipes = _recipes(plan, strategy)
            with_energy = metered(recipes, plan.suite) if strategy.metered and plan.has_sensor else frozenset()
            points = [_point(plan, strategy, recipe, energy=recipe.id in with_energy) for recipe in recipes]
            if points:
                estimate_s = group_s(plan, points) if plan.on_gpu else _cpu_s(plan, points)
                groups.append(PointGroup(name=_name(strategy), points=points, estimate_s=estimate_s))
        return groups if plan.on_gpu else _in_turns(groups)


def _in_turns(groups: list[PointGroup]) -> list[PointGroup]:
    """Merge groups on a CPU so that compared strategies are measured in turns: a CPU's speed drifts in seconds."""
    turns = [
        PointGroup(
            name=name,
            points=[point for group in together for point in group.points],
            estimate_s=sum(group.estimate_s for group in together),
        )
        for name, family in TOGETHER
        if (together := [group for group in groups if _is_of(group, family)])
    ]
    return [*turns, *(group for group in groups if not any(_is_of(group, family) for _, family in TOGETHER))]


def _is_of(group: PointGroup, family: tuple[str, ...]) -> bool:
    setup = group.points[0].setup
    return setup.parallel in family and setup.recompute == "none"


def _cpu_s(plan: ProbePlan, points: Sequence[Point]) -> float:
    shared = max(1.0, plan.team.place.local_world / (os.cpu_count() or 1))
    return CPU_POINT_S * shared * sum(point.unsupported is None for point in points)


def _name(strategy: Strategy) -> str:
    return f"step {strategy.id}" + (" with recomputation" if strategy.recompute else "")


def _recipes(plan: ProbePlan, strategy: Strategy) -> list[PrecisionRecipe]:
    """Return the recipe of each precision that suits the strategy: all if the suite is thorough, else the usual ones.

    The usual ones are FP32 on a CPU, and the others on a GPU, where FP32 steps take eight times as long.
    """
    listed = [recipe for recipe in plan.recipes if recipe.id in RECIPES]
    bf16 = next((name for name in BF16 if name in strategy.recipes and name in {r.id for r in listed}), None)
    listed = [recipe for recipe in listed if recipe.id not in BF16 or recipe.id == bf16]
    if plan.suite == "thorough":
        return listed
    if not plan.on_gpu:
        return listed[:1]
    if strategy.recompute:
        return [recipe for recipe in listed if recipe.id == bf16] or listed[:1]
    return [recipe for recipe in listed if recipe.id != "fp32"] or listed


def _point(plan: ProbePlan, strategy: Strategy, recipe: PrecisionRecipe, *, energy: bool) -> Point:
    team, world = plan.team, plan.team.size
    case = replace(case_of(world, on_gpu=plan.on_gpu), widths=widths_of(recipe))
    suffix = "/recompute" if strategy.recompute else ""
    reason = why_not(strategy, case, world, recipe)
    return Point(
        probe_id=f"parallel_step/{case.name}/{strategy.id}/{team.place.nodes}x{team.place.local_world}/{recipe.id}{suffix}",
        kind="parallel_step",
        workload="parallel-step",
        recipe=recipe,
        setup=RunSetup(
            parallel=strategy.id,
            optimizer="adamw",
            recompute="full" if strategy.recompute else "none",
            compiled=False,
            grad_accumulation=False,
            data_distribution="normal",
        ),
        shape=case.work_shape(strategy.layout(world)),
        counts=case.counts(recompute=strategy.recompute),
        communication=Communication(group="world", backend=team.backend, world=world, nodes=team.place.nodes),
        build=partial(build_step, team, strategy, case, recipe.id, plan.seed),
        memory=True,
        energy_s=ENERGY_S if energy else 0.0,
        unsupported=reason,
        messages=() if reason else strategy.messages(case, world),
    )


def why_not(strategy: Strategy, case: ParallelCase, world: int, recipe: PrecisionRecipe) -> str | None:
    """Return why a strategy cannot run the step, None if it can."""
    if recipe.id not in strategy.recipes:
        return f"{recipe.id} cannot be combined with {strategy.id}: its layers are not split over ranks here"
    return strategy.unsupported(case, world)


class _StepTrial:
    """The step of a strategy, with the trace of its loss."""

    steps = 1

    def __init__(self, team: Team, rank_step: RankStep) -> None:
        self._team, self._rank_step = team, rank_step
        self.flags = rank_step.flags
        self._losses: list[object] = []
        self._taken = 0

    @property
    def held_bytes(self) -> float:
        """See `Trial.held_bytes`."""
        return self._rank_step.held_bytes

    def step(self, mark: Mark) -> None:
        """See `Trial.step`."""
        loss = self._rank_step.step(mark)
        if self._taken < LOSS_STEPS and loss is not None:
            self._losses.append(loss)
        self._taken += 1

    def outcome(self) -> TrialOutcome:
        """Return the loss of the global batch by step: the mean over the ranks that have a loss."""
        import math

        losses = [float(loss) for loss in self._losses]  # type: ignore[arg-type] # torch is untyped here
        traces = [trace for trace in self._team.gather(losses) if trace]
        trace = tuple(sum(losses) / len(losses) for losses in zip(*traces, strict=True))
        finite = all(math.isfinite(loss) for loss in trace)
        return TrialOutcome(
            reason=None if finite else "the loss left the finite range within the first steps",
            numerics=Numerics(loss_trace=trace if finite else ()),
        )


def build_step(team: Team, strategy: Strategy, case: ParallelCase, recipe_id: str, seed: int, device: Device) -> Trial:
    """Make this rank's part of a step."""
    return _StepTrial(team, strategy.build(case, recipe_by_id(recipe_id), team, device, seed))

"""Pipeline parallelism (`torch.distributed.pipelining`): each rank holds some layers, and micro-batches pass through.

The schedule is `Schedule1F1B` with one stage per rank, or `ScheduleInterleaved1F1B` with two. The pipeline may be one
of several data-parallel replicas; each stage then averages its gradients with the same stage of the others.
"""

from __future__ import annotations

from math import prod
from typing import Any

from planner.lazy import dataclass
from planner.measured.network.messages import StepMessage
from probes.device.device import Device
from probes.models.parallel.case import SEQUENCES, Layout, ParallelCase, indivisible
from probes.models.parallel.ddp import parameters_of, reductions
from probes.models.parallel.interface import PLAIN, RankStep
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """See `Strategy`."""

    id: str = "pp-1f1b"
    recompute: bool = False
    recipes: tuple[str, ...] = PLAIN
    metered: bool = False
    least_world: int = 2
    vp: int = 1
    """Stages per rank."""
    ranks: int | None = None
    """Ranks per pipeline; None: all."""
    alone: bool = False
    """True: pipelines of one stage, each rank with its own model. The cost of the schedule other than communication,
    and of taking one sequence at a time, is then part of a step from which other steps are predicted."""

    def layout(self, world: int) -> Layout:
        """See `Strategy.layout`; a micro-batch is one of the four sequences of each rank."""
        if self.alone:
            return Layout(copies=world, micro_batches=SEQUENCES)
        pp = self.ranks or world
        return Layout(pp=pp, vp=self.vp, dp=world // pp, micro_batches=SEQUENCES * pp)

    def unsupported(self, case: ParallelCase, world: int) -> str | None:
        """See `Strategy.unsupported`."""
        layout = self.layout(world)
        return indivisible(layout.pp, "ranks of a pipeline", ranks=world) or indivisible(
            layout.stages, "stages", layers=case.layers
        )

    def messages(self, case: ParallelCase, world: int) -> tuple[StepMessage, ...]:
        """Return hidden states (forward), their gradients (backward), and the reductions of the last stage."""
        if self.alone:
            return ()
        layout = self.layout(world)
        stride = world // layout.pp
        sent_bytes = float(case.seq_len * case.shape.hidden * case.widths.activation)
        sends = tuple(
            StepMessage(
                op="send_recv", world=layout.pp, stride=stride, bytes=sent_bytes, phase=phase,
                count=layout.vp * layout.micro_batches,
            )
            for phase in ("forward", "backward")
        )  # fmt: skip
        norm = StepMessage(op="all_reduce", world=layout.pp, stride=stride, bytes=4.0, phase="optimizer")
        return (*sends, *self._reductions(case, layout), norm)

    def _reductions(self, case: ParallelCase, layout: Layout) -> tuple[StepMessage, ...]:
        if layout.dp == 1:
            return ()
        last = parameters_of(case, range(case.layers // layout.stages), first=False)
        return reductions([prod(size) for size in last], layout.dp, 1, case.widths.gradient)

    def build(self, case: ParallelCase, recipe: PrecisionRecipe, team: Team, device: Device, seed: int) -> RankStep:
        """See `Strategy.build`."""
        from torch.distributed.pipelining import PipelineStage
        from torch.distributed.pipelining.schedules import Schedule1F1B, ScheduleInterleaved1F1B

        from probes.models.parallel.decoder import build_decoder, global_batch, loss_of, stage_of
        from probes.models.parallel.running import PipelineStep, prepare_training, share

        layout = self.layout(team.size)
        group = team.group("alone", 1) if self.alone else team.group("pp", layout.pp, layout.dp)
        at = group.index_of(team.place.rank)
        replicas = team.group("dp", layout.dp) if layout.dp > 1 else None
        trainings, stages = [], []
        for i in range(layout.vp):
            number = at + i * layout.pp
            decoder = stage_of(build_decoder(case, seed, device.torch, team), number, layout.stages)
            trainings.append(prepare_training(decoder, recipe, device.kind))
            run = _reduced(decoder, replicas.handle) if replicas else decoder
            stages.append(PipelineStage(run, number, layout.stages, device.torch, group=group.handle))
        if layout.vp == 1:
            schedule: Any = Schedule1F1B(stages[0], layout.micro_batches, loss_fn=loss_of)
        else:
            schedule = ScheduleInterleaved1F1B(stages, layout.micro_batches, loss_fn=loss_of)
        parts = layout.dp * layout.copies
        batch = share(global_batch(case, seed + 1, device.torch), team.place.rank % parts, parts)
        step = PipelineStep(schedule, trainings, batch, group.handle, ends=(at == 0, at == layout.pp - 1))
        step.buckets = [parameter for training in trainings for parameter in training.updated] if replicas else []
        return step


def _reduced(stage: Any, handle: Any) -> Any:
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(stage, process_group=handle)

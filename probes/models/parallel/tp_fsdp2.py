"""Tensor parallelism between neighbours, fully sharded data parallelism across: for models too large for one GPU."""

from __future__ import annotations

import logging

from planner.lazy import dataclass
from planner.measured.network.messages import StepMessage
from probes.device.device import Device
from probes.models.parallel.case import Layout, ParallelCase, indivisible
from probes.models.parallel.fsdp2 import exchanges, held_in_fp32, norm_of, shard
from probes.models.parallel.interface import PLAIN, RankStep
from probes.models.parallel.tp import activations, cannot_shard, norm_gradients, shard_products
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorParallelFsdp2:
    """See `Strategy`."""

    id: str = "tp+fsdp2"
    recompute: bool = False
    recipes: tuple[str, ...] = (*PLAIN, "bf16-fsdp")
    metered: bool = False
    least_world: int = 4
    tp: int = 2
    """Neighbouring ranks that share a layer."""

    def layout(self, world: int) -> Layout:
        """See `Strategy.layout`."""
        return Layout(tp=self.tp, dp=world // self.tp)

    def unsupported(self, case: ParallelCase, world: int) -> str | None:
        """See `Strategy.unsupported`."""
        return indivisible(self.tp, "tensor parallel ranks", ranks=world) or cannot_shard(
            case, self.tp, "tensor parallel ranks"
        )

    def messages(self, case: ParallelCase, world: int) -> tuple[StepMessage, ...]:
        """Return the messages of both kinds of parallelism, with the norm reduced along either dimension."""
        replicas = world // self.tp
        return (
            *activations(case, case.sequences // replicas, self.tp),
            *exchanges(case, replicas, self.tp, self.tp),
            norm_gradients(case, self.tp, 1, "backward"),
            norm_of(case, self.tp, 1),
            norm_of(case, replicas, self.tp),
        )

    def build(self, case: ParallelCase, recipe: PrecisionRecipe, team: Team, device: Device, seed: int) -> RankStep:
        """See `Strategy.build`."""
        from torch.distributed.tensor.parallel import loss_parallel

        from probes.models.parallel.decoder import build_decoder, global_batch
        from probes.models.parallel.mesh import mesh_of
        from probes.models.parallel.running import WholeStep, prepare_training, share

        # The norm takes an all-reduce of four bytes along either dimension, for which torch prints a warning.
        logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)
        replicas = team.size // self.tp
        mesh = mesh_of(team, device, dp=replicas, tp=self.tp)
        decoder = build_decoder(case, seed, device.torch, team)
        shard_products(decoder, mesh["tp"])
        shard(decoder, mesh["dp"], recipe)
        training = prepare_training(decoder, held_in_fp32(recipe), device.kind)
        batch = share(global_batch(case, seed + 1, device.torch), team.place.rank // self.tp, replicas)
        return WholeStep(decoder, training, batch, around=loss_parallel)

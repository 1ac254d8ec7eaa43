"""Fully sharded data parallelism (`fully_shard`): parameters, gradients and states are sharded, gathered by layer.

Each layer is gathered for the forward pass and again for the backward pass, and freed in between. Embedding, last norm
and output layer form one group, which stays gathered from forward to backward, torch's default for the root module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.lazy import dataclass
from planner.measured.network.messages import StepMessage
from probes.device.device import Device
from probes.models.parallel.case import Layout, ParallelCase
from probes.models.parallel.interface import PLAIN, RankStep
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class Fsdp2:
    """See `Strategy`."""

    id: str = "fsdp2"
    recompute: bool = False
    recipes: tuple[str, ...] = (*PLAIN, "bf16-fsdp", "fp8")
    metered: bool = True
    least_world: int = 2
    alone: bool = False
    """True: groups of one rank, each with its own model. The cost of FSDP other than communication, which is copying
    into and out of the gathered buffers, is then part of the step from which other steps are predicted."""

    def layout(self, world: int) -> Layout:
        """See `Strategy.layout`."""
        return Layout(copies=world) if self.alone else Layout(dp=world)

    def unsupported(self, case: ParallelCase, world: int) -> str | None:
        """Return None: any number of ranks works, because parameters that do not divide are padded."""
        return None

    def messages(self, case: ParallelCase, world: int) -> tuple[StepMessage, ...]:
        """Return the gathers and scatters by layer, and the norm; nothing for a rank alone."""
        if self.alone:
            return ()
        return (*exchanges(case, world, 1, 1), norm_of(case, world, 1))

    def build(self, case: ParallelCase, recipe: PrecisionRecipe, team: Team, device: Device, seed: int) -> RankStep:
        """See `Strategy.build`."""
        from probes.models.parallel.decoder import build_decoder, global_batch
        from probes.models.parallel.mesh import mesh_alone, mesh_of
        from probes.models.parallel.running import WholeStep, prepare_training, share

        decoder = build_decoder(case, seed, device.torch, team)
        flags = recipe.convert(decoder) if recipe.convert else ()
        mesh = mesh_alone(team, device) if self.alone else mesh_of(team, device, dp=team.size)
        shard(decoder, mesh, recipe)
        training = prepare_training(decoder, held_in_fp32(recipe), device.kind)
        training.flags += flags
        batch = share(global_batch(case, seed + 1, device.torch), team.place.rank, team.size)
        return WholeStep(decoder, training, batch)


def norm_of(case: ParallelCase, world: int, stride: int) -> StepMessage:
    """Return the all-reduce for the norm of gradients that are distributed tensors: one number per parameter."""
    numbers = case.layers * len(case.layer_parameters()) + 3
    return StepMessage(op="all_reduce", world=world, stride=stride, bytes=4.0 * numbers, phase="optimizer")


def exchanges(case: ParallelCase, world: int, stride: int, shards: int) -> tuple[StepMessage, ...]:
    """Return what FSDP sends for a model of which each rank has one of `shards` tensor-parallel shards.

    In the forward pass, the end group, which is gathered first, and the layer after it have no computation to overlap
    with. In the backward pass, neither does the gather of the last layer, nor the scatters of the first layer and the
    end group.
    """
    hidden = case.shape.hidden  # norms are not sharded by tensor parallelism: two per layer, one at the end
    layer = (case.layer_params - 2 * hidden) / shards + 2 * hidden
    ends = (case.end_params - hidden) / shards + hidden
    gathered, gradient = case.widths.gathered, case.widths.gradient

    def of(op: str, size_bytes: float, phase: str, exposed: int, hidden: int) -> list[StepMessage]:
        common: dict[str, Any] = {"op": op, "world": world, "stride": stride, "bytes": size_bytes, "phase": phase}
        counts = [(exposed, False), (hidden, True)]
        return [StepMessage(**common, count=count, hidden=beside) for count, beside in counts if count]

    return (
        *of("all_gather", ends * gathered, "forward", 1, 0),
        *of("all_gather", layer * gathered, "forward", 1, case.layers - 1),
        *of("all_gather", layer * gathered, "backward", 1, case.layers - 1),
        *of("reduce_scatter", layer * gradient, "backward", 1, case.layers - 1),
        *of("reduce_scatter", ends * gradient, "backward", 1, 0),
    )


def shard(decoder: Any, mesh: Any, recipe: PrecisionRecipe) -> None:
    """Shard each layer and the rest of a model over a mesh; they are gathered in the type that the recipe holds."""
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    held = getattr(torch, recipe.held)
    policy = MixedPrecisionPolicy() if held == torch.float32 else MixedPrecisionPolicy(held, torch.float32)
    for layer in decoder.layers.values():
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=True)
    fully_shard(decoder, mesh=mesh, mp_policy=policy, reshard_after_forward=False)


def held_in_fp32(recipe: PrecisionRecipe) -> PrecisionRecipe:
    """Return a recipe without the types that FSDP manages; its shards are the FP32 master weights."""
    return replace(recipe, held="float32", master_weights=False, convert=None)

"""Tensor parallelism with sequence-parallel norms: projections are sharded by heads, columns and rows.

Between the products, the hidden states are sharded along the sequence (Korthikanti et al., arXiv:2205.05198): they are
gathered before the first product of a block, and scattered by its last one. Embedding and output layer are sharded by
vocabulary, and the loss is computed on sharded logits (`loss_parallel`), so that logits are never gathered.
"""

from __future__ import annotations

from typing import Any

from planner.lazy import dataclass
from planner.measured.network.messages import StepMessage
from probes.device.device import Device
from probes.models.parallel.case import Layout, ParallelCase, indivisible
from probes.models.parallel.fsdp2 import norm_of
from probes.models.parallel.interface import PLAIN, RankStep
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorParallel:
    """See `Strategy`."""

    id: str = "tp"
    recompute: bool = False
    recipes: tuple[str, ...] = PLAIN
    metered: bool = False
    least_world: int = 2
    alone: bool = False
    """True: groups of one rank, each with its own model. The cost of distributed tensors other than communication,
    which is the host's time for each of their operators, is then part of a step from which other steps are
    predicted."""

    def layout(self, world: int) -> Layout:
        """See `Strategy.layout`."""
        return Layout(copies=world) if self.alone else Layout(tp=world)

    def unsupported(self, case: ParallelCase, world: int) -> str | None:
        """See `Strategy.unsupported`."""
        return None if self.alone else cannot_shard(case, world, "ranks")

    def messages(self, case: ParallelCase, world: int) -> tuple[StepMessage, ...]:
        """Return gathers and scatters by layer, the loss, and gradients of the norms, which all ranks add to."""
        if self.alone:
            return ()
        # Torch reduces the gradients of the norms twice: for the global norm, and again for the update.
        norms = norm_gradients(case, world, 2, "optimizer")
        return (*activations(case, case.sequences, world), norms, norm_of(case, world, 1))

    def build(self, case: ParallelCase, recipe: PrecisionRecipe, team: Team, device: Device, seed: int) -> RankStep:
        """See `Strategy.build`."""
        from torch.distributed.tensor.parallel import loss_parallel

        from probes.models.parallel.decoder import build_decoder, global_batch
        from probes.models.parallel.mesh import mesh_alone, mesh_of
        from probes.models.parallel.running import WholeStep, prepare_training, share

        decoder = build_decoder(case, seed, device.torch, team)
        shard_products(decoder, mesh_alone(team, device) if self.alone else mesh_of(team, device, tp=team.size))
        training = prepare_training(decoder, recipe, device.kind)
        batch = global_batch(case, seed + 1, device.torch)
        if self.alone:
            batch = share(batch, team.place.rank, team.size)
        return WholeStep(decoder, training, batch, around=loss_parallel)


def cannot_shard(case: ParallelCase, parts: int, whole: str) -> str | None:
    """Return why a model cannot be sharded over so many ranks, None if it can."""
    shape = case.shape
    return indivisible(
        parts, whole, heads=shape.heads, key_and_value_heads=shape.kv_heads, columns_of_the_feed_forward=shape.ffn,
        entries_of_the_vocabulary=shape.vocab, tokens_of_a_sequence=case.seq_len,
    )  # fmt: skip


def activations(case: ParallelCase, sequences: int, world: int) -> tuple[StepMessage, ...]:
    """Return what tensor-parallel ranks send to each other for a number of sequences.

    Each layer gathers twice and scatters twice in each direction; embedding and output layer do so once. The loss
    reduces the maximum, the sum of exponentials and the target's logit of each token.
    """
    rows = float(sequences * case.seq_len)
    embedded_bytes = rows * case.shape.hidden * case.widths.gathered  # in the type of the embedding's weights
    hidden_bytes = rows * case.shape.hidden * case.widths.activation
    blocks = 2 * case.layers

    def of(op: str, size_bytes: float, count: int, phase: str) -> StepMessage:
        return StepMessage(op=op, world=world, bytes=size_bytes, count=count, phase=phase)

    return (
        of("reduce_scatter", embedded_bytes, 1, "forward"),
        of("all_gather", hidden_bytes, blocks + 1, "forward"),
        of("reduce_scatter", hidden_bytes, blocks, "forward"),
        of("all_reduce", rows * 4.0, 3, "forward"),
        of("reduce_scatter", hidden_bytes, blocks + 1, "backward"),
        of("all_gather", hidden_bytes, blocks, "backward"),
        of("all_gather", embedded_bytes, 1, "backward"),
    )


def norm_gradients(case: ParallelCase, world: int, times: int, phase: str) -> StepMessage:
    """Return the reductions of the norms' gradients, of which each rank has the part from its own tokens."""
    count = times * (2 * case.layers + 1)
    size_bytes = float(case.shape.hidden * case.widths.gradient)
    return StepMessage(op="all_reduce", world=world, bytes=size_bytes, count=count, phase=phase)


def shard_products(decoder: Any, mesh: Any) -> None:
    """Turn a model's parameters into distributed tensors over the mesh of its tensor-parallel ranks."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    column, row = ColwiseParallel, RowwiseParallel
    gathered = Shard(1), Replicate()
    plan: dict[str, Any] = {
        "embedding": row(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": column(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False),
    }
    for name in decoder.layers:
        layer = f"layers.{name}"
        plan |= {
            f"{layer}.norm1": SequenceParallel(),
            f"{layer}.attention": PrepareModuleInput(
                input_layouts=(gathered[0], None, None), desired_input_layouts=(gathered[1], None, None)
            ),
            f"{layer}.attention.q": column(),
            f"{layer}.attention.k": column(),
            f"{layer}.attention.v": column(),
            f"{layer}.attention.o": row(output_layouts=Shard(1)),
            f"{layer}.norm2": SequenceParallel(),
            f"{layer}.mlp": PrepareModuleInput(input_layouts=(gathered[0],), desired_input_layouts=(gathered[1],)),
            f"{layer}.mlp.gate": column(),
            f"{layer}.mlp.up": column(),
            f"{layer}.mlp.down": row(output_layouts=Shard(1)),
        }
    parallelize_module(decoder, mesh, plan)

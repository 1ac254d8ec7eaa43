"""Context parallelism: each rank has a part of every sequence and gathers the keys and values of all ranks.

This is how Llama 3's long contexts were trained (arXiv:2407.21783, section 3.3.2): a sequence is cut into twice as many
chunks as there are ranks, and each rank has one chunk from its head and the matching one from its tail, so that all
ranks have equal work under the causal mask. Every rank holds the whole model; gradients are averaged as with data
parallelism.
"""

from __future__ import annotations

from math import prod

from planner.lazy import dataclass
from planner.measured.network.messages import StepMessage
from probes.device.device import Device
from probes.models.parallel.case import Layout, ParallelCase, indivisible
from probes.models.parallel.ddp import parameters_of, reductions
from probes.models.parallel.interface import PLAIN, RankStep
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextParallel:
    """See `Strategy`."""

    id: str = "cp"
    recompute: bool = False
    recipes: tuple[str, ...] = PLAIN
    metered: bool = False
    least_world: int = 2

    def layout(self, world: int) -> Layout:
        """See `Strategy.layout`."""
        return Layout(cp=world)

    def unsupported(self, case: ParallelCase, world: int) -> str | None:
        """See `Strategy.unsupported`."""
        return indivisible(2 * world, "chunks", tokens_of_a_sequence=case.seq_len)

    def messages(self, case: ParallelCase, world: int) -> tuple[StepMessage, ...]:
        """Return messages for the keys and values of each layer, their gradients, and parameter gradients."""
        shape = case.shape
        held_bytes = 2.0 * case.tokens * shape.kv_heads * shape.head_dim * case.widths.activation
        return (
            StepMessage(op="all_gather", world=world, bytes=held_bytes, count=case.layers, phase="forward"),
            StepMessage(op="reduce_scatter", world=world, bytes=held_bytes, count=case.layers, phase="backward"),
            *reductions([prod(size) for size in parameters_of(case)], world, 1, case.widths.gradient),
        )

    def build(self, case: ParallelCase, recipe: PrecisionRecipe, team: Team, device: Device, seed: int) -> RankStep:
        """See `Strategy.build`."""
        from torch.nn.parallel import DistributedDataParallel

        from probes.models.parallel.decoder import build_decoder, global_batch
        from probes.models.parallel.gathered_attention import GatheredAttention, positions_of
        from probes.models.parallel.running import WholeStep, prepare_training

        decoder = build_decoder(case, seed, device.torch, team)
        group = team.world()
        positions = positions_of(team.place.rank, team.size, case.seq_len, device.torch)
        decoder.cos, decoder.sin = decoder.cos[positions], decoder.sin[positions]
        for layer in decoder.layers.values():
            layer.attention.attend = GatheredAttention(group, team.place.rank, case.seq_len)
        training = prepare_training(decoder, recipe, device.kind)
        run = DistributedDataParallel(decoder, process_group=group.handle)
        tokens, targets = global_batch(case, seed + 1, device.torch)
        return WholeStep(
            run, training, (tokens[:, positions].contiguous(), targets[:, positions].contiguous()), buckets=True
        )

"""Distributed data parallelism: every rank holds the whole model; gradients are averaged by bucket during backward.

Buckets hold at least 25 MiB; the first one, of the gradients that are ready first, at least 1 MiB (Li et al.,
arXiv:2006.15704, section 3.2.3, and `torch.nn.parallel.DistributedDataParallel`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from planner.lazy import dataclass
from planner.measured.network.messages import StepMessage
from planner.units import MIB
from probes.device.device import Device
from probes.models.parallel.case import Layout, ParallelCase
from probes.models.parallel.interface import PLAIN, RankStep
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import Team

FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 * MIB, 25 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Ddp:
    """See `Strategy`."""

    id: str = "ddp"
    recompute: bool = False
    recipes: tuple[str, ...] = PLAIN
    metered: bool = True
    least_world: int = 2

    def layout(self, world: int) -> Layout:
        """See `Strategy.layout`."""
        return Layout(dp=world)

    def unsupported(self, case: ParallelCase, world: int) -> str | None:
        """Return None: any number of ranks works."""
        return None

    def messages(self, case: ParallelCase, world: int) -> tuple[StepMessage, ...]:
        """Return one all-reduce per bucket."""
        sizes = [prod(size) for size in parameters_of(case)]
        return reductions(sizes, world, 1, case.widths.gradient)

    def build(self, case: ParallelCase, recipe: PrecisionRecipe, team: Team, device: Device, seed: int) -> RankStep:
        """See `Strategy.build`."""
        from torch.nn.parallel import DistributedDataParallel

        from probes.models.parallel.decoder import build_decoder, global_batch
        from probes.models.parallel.running import WholeStep, prepare_training, share

        decoder = build_decoder(case, seed, device.torch, team)
        decoder.recompute = self.recompute
        training = prepare_training(decoder, recipe, device.kind)
        run = DistributedDataParallel(decoder, process_group=team.world().handle)
        batch = share(global_batch(case, seed + 1, device.torch), team.place.rank, team.size)
        return WholeStep(run, training, batch, buckets=True)


def parameters_of(
    case: ParallelCase, layers: range | None = None, *, first: bool = True, last: bool = True
) -> list[tuple[int, ...]]:
    """Return the shapes of the parameters of some layers, by default all, and of the ends, in order of use."""
    shape = case.shape
    ends = (shape.vocab, shape.hidden)
    listed: list[tuple[int, ...]] = [ends] if first else []
    listed += [size for _ in (range(case.layers) if layers is None else layers) for size in case.layer_parameters()]
    return [*listed, (shape.hidden,), ends] if last else listed


def reductions(sizes: Sequence[int], world: int, stride: int, width: int) -> tuple[StepMessage, ...]:
    """Return the all-reduces of gradients.

    Args:
        sizes: elements of each parameter, in order of use; the last gradient is ready first.
        world: number of ranks that reduce.
        stride: distance between these ranks.
        width: bytes per element.
    """
    buckets: list[float] = [0.0]
    limit = FIRST_BUCKET_BYTES
    for size in reversed(sizes):
        if buckets[-1] >= limit:
            buckets.append(0.0)
            limit = BUCKET_BYTES
        buckets[-1] += float(size * width)
    return tuple(
        StepMessage(
            op="all_reduce", world=world, stride=stride, bytes=filled, phase="backward", hidden=i < len(buckets) - 1
        )
        for i, filled in enumerate(buckets)
    )

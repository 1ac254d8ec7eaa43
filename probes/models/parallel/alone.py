"""Every rank trains its own model at the same time and sends nothing: the baseline of the other strategies.

It includes what the ranks of a host contend for: memory bandwidth, caches and power.
"""

from __future__ import annotations

from planner.lazy import dataclass
from planner.measured.network.messages import StepMessage
from probes.device.device import Device
from probes.models.parallel.case import Layout, ParallelCase
from probes.models.parallel.interface import PLAIN, RankStep
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import Team


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """See `Strategy`."""

    id: str = "alone"
    recompute: bool = False
    recipes: tuple[str, ...] = (*PLAIN, "bf16-fsdp", "fp8")
    metered: bool = True
    least_world: int = 1

    def layout(self, world: int) -> Layout:
        """See `Strategy.layout`."""
        return Layout(copies=world)

    def unsupported(self, case: ParallelCase, world: int) -> str | None:
        """Return None: any number of ranks works."""
        return None

    def messages(self, case: ParallelCase, world: int) -> tuple[StepMessage, ...]:
        """Return no messages, because nothing is sent."""
        return ()

    def build(self, case: ParallelCase, recipe: PrecisionRecipe, team: Team, device: Device, seed: int) -> RankStep:
        """See `Strategy.build`."""
        from probes.models.parallel.decoder import build_decoder, global_batch
        from probes.models.parallel.running import WholeStep, prepare_training, share

        decoder = build_decoder(case, seed, device.torch, team)
        training = prepare_training(decoder, recipe, device.kind)
        batch = share(global_batch(case, seed + 1, device.torch), team.place.rank, team.size)
        return WholeStep(decoder, training, batch)

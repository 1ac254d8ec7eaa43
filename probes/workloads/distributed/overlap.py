"""A product and a collective at the same time: how much each slows the other, the cost of hidden communication.

```
products alone │ collectives alone     │ both: products … done │ what is left of the collectives
```

The collectives are made half as long again as the products, so that the products never run alone in the third part.
If collectives are so short that `MOST_CALLS` of them do not suffice, there are fewer products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from planner.records.communication import Communication
from planner.records.work import RunSetup, WorkShape
from planner.units import MIB
from probes.device.clock import Clock, Mark
from probes.device.device import Device
from probes.precisions import recipe_by_id
from probes.precisions.interface import PrecisionRecipe
from probes.ranks.team import RankGroup, Team, kinds_of_groups
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan, TrialOutcome

GPU_BYTES, CPU_BYTES = (32 * MIB, 256 * MIB), (2 * MIB,)
GPU_SIZE, CPU_SIZE = 4096, 512
PART_S = {"cuda": 0.02, "cpu": 0.025}
"""Longest time of the products; the collectives take half as long again."""
LONGER = 1.5
MOST_CALLS = 64
OPS = ("all_reduce", "all_gather", "reduce_scatter")
CAP_S, OWN_S = 2.0, 0.8


class Overlap:
    """The slowdown of a product and a collective by each other."""

    name = "overlap"
    summary = "a product and a collective, alone and both at once"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one point per operation and size, in the world and, where there are several, in nodes."""
        kinds = [kind for kind in kinds_of_groups(plan.team.place) if kind[0] in ("world", "node")]
        ops = OPS[:1] if plan.suite == "quick" else OPS
        sizes = GPU_BYTES if plan.on_gpu else CPU_BYTES
        recipe = _recipe(plan)
        points = [_point(plan, recipe, op, kind, int(size)) for kind in kinds for op in ops for size in sizes]
        return [
            PointGroup(name=f"products beside {point.communication.op}", points=[point], estimate_s=CAP_S + OWN_S)
            for point in points
        ]


def _recipe(plan: ProbePlan) -> PrecisionRecipe:
    """Return BF16 on a GPU that supports it, else FP32: what matters is that the units are busy."""
    bf16 = recipe_by_id("bf16-autocast")
    return bf16 if plan.on_gpu and bf16.unsupported_on(plan.device) is None else recipe_by_id("fp32")


def _point(plan: ProbePlan, recipe: PrecisionRecipe, op: str, kind: tuple[str, int, int], size_bytes: int) -> Point:
    name, size, stride = kind
    group = plan.team.group(name, size, stride)
    side = GPU_SIZE if plan.on_gpu else CPU_SIZE
    return Point(
        probe_id=f"overlap/{op}/{name}/{group.nodes}x{size // group.nodes}/{size_bytes}/{recipe.id}",
        kind="overlap",
        workload="overlap",
        recipe=recipe,
        setup=RunSetup(role="forward", data_distribution="normal"),
        shape=WorkShape(gemm_m=side, gemm_n=side, gemm_k=side),
        communication=Communication(
            op=op, group=name, backend=plan.team.backend, world=size, nodes=group.nodes, bytes=float(size_bytes)
        ),
        build=partial(_OverlapTrial, plan.team, recipe, op, group, size_bytes, side),
        cap_s=CAP_S,
    )


class _OverlapTrial:
    """The three parts, with counts of calls on which all ranks agree."""

    steps = 1

    def __init__(
        self, team: Team, recipe: PrecisionRecipe, op: str, group: RankGroup, size_bytes: int, side: int, device: Device
    ) -> None:
        import torch

        self.flags = recipe.flags
        self._product = recipe.product(recipe, "forward", side, side, side, device, 5)
        self._op, self._group = op, group
        elements = max(size_bytes // 4 // group.size, 1) * group.size
        self._make = partial(torch.randn, elements, device=device.torch)
        self._buffers = [self._make()]
        self._parts = [self._part_of(self._buffers[0])]
        clock, part_s = device.clock, PART_S[device.kind]
        product_s = team.maxima([self._seconds(self._product, clock)])[0]
        collective_s = team.maxima([self._seconds(self._collectives, clock)])[0]
        self.products, collectives = numbers_of(part_s, product_s, collective_s)
        self._buffers += [self._make() for _ in range(collectives - 1)]
        self._parts += [self._part_of(data) for data in self._buffers[1:]]

    @staticmethod
    def _seconds(call: Callable[[], object], clock: Clock) -> float:
        trial = CallTrial(call=call)
        clock.batch(trial, samples=2, iterations=1)
        return min(clock.batch(trial, samples=5, iterations=1).samples_s)

    @property
    def held_bytes(self) -> float:
        """Bytes of the collectives' buffers."""
        return float(sum(buffer.nbytes for buffer in [*self._buffers, *self._parts]))

    def _part_of(self, data: Any) -> Any:
        """Make a rank's part of a buffer, which only gathers and scatters need; made once, so that no copy is timed."""
        import torch

        return torch.zeros_like(data[: 0 if self._op == "all_reduce" else len(data) // self._group.size])

    def step(self, mark: Mark) -> None:
        """See `Trial.step`; the phases match `OverlapFigures`."""
        for _ in range(self.products):
            self._product()
        mark("product_alone")
        self._collectives()
        mark("collective_alone")
        works = self._begun()
        for _ in range(self.products):
            self._product()
        mark("product_beside")
        for work in works:
            work.wait()
        mark("collective_left")

    def outcome(self) -> TrialOutcome:
        """See `Trial.outcome`."""
        return TrialOutcome()

    def _collectives(self) -> None:
        for work in self._begun():
            work.wait()

    def _begun(self) -> list[Any]:
        """Start all collectives one after another; each has its own buffer, because several may be in flight."""
        import torch.distributed as dist

        handle, works = self._group.handle, []
        for data, part in zip(self._buffers, self._parts, strict=True):
            if self._op == "all_reduce":
                works.append(dist.all_reduce(data, group=handle, async_op=True))
            elif self._op == "all_gather":
                gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
                works.append(gather(data, part, group=handle, async_op=True))
            else:
                scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
                works.append(scatter(part, data, group=handle, async_op=True))
        return works


def numbers_of(part_s: float, product_s: float, collective_s: float) -> tuple[int, int]:
    """Return the numbers of products and collectives with which the collectives outlast the products.

    Args:
        part_s: longest time of the products, unless one product takes longer.
        product_s: time of one product.
        collective_s: time of one collective.
    """
    products = min(MOST_CALLS, part_s / product_s, MOST_CALLS * collective_s / (LONGER * product_s))
    products = max(1, int(products))
    collectives = math.ceil(LONGER * products * product_s / collective_s)
    return products, max(1, min(MOST_CALLS, collectives))

"""Collectives by size, in every group in which training communicates; all groups of a kind run at once.

Sizes are counted as in nccl-tests (NVIDIA/nccl-tests, doc/PERFORMANCE.md): the whole buffer of one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from planner.records.communication import OPS, Communication
from planner.records.work import RunSetup
from planner.units import KIB, MIB
from probes.device.device import Device
from probes.precisions import recipe_by_id
from probes.ranks.team import RankGroup, Team, kinds_of_groups
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan, Trial

GPU_SIZES = tuple(KIB * 2**i for i in range(21))
"""1 KiB to 1 GiB. The quick suite takes every fourth size, so that its two minutes cover all groups of a node with 8
GPUs."""
CPU_SIZES = {"quick": (KIB, 64 * KIB, 4 * MIB), "default": tuple(KIB * 4**i for i in range(8))}
"""Up to 16 MiB: beyond that, communication between ranks on a CPU is a copy in memory."""
INNER_OPS = ("all_reduce", "all_gather", "reduce_scatter")
"""Operations in sub-groups: those of tensor- and data-parallel ranks. The world, nodes and `cross` run all of them."""
PAIR_OPS = (*INNER_OPS, "send_recv")
"""Operations in pairs: sends too. A send takes as long among more ranks, so longer pipelines are predicted from it."""
CAP_S = 0.15
"""Longest measured time per size."""
OWN_S = 0.1
"""Further time per size, for buffers and warm-up."""
ELEMENT_BYTES = 4


class Collectives:
    """The network's latency and bandwidth by operation and group."""

    name = "collective"
    summary = "all-reduce, all-gather, reduce-scatter, all-to-all and sends by size"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one group of points per operation and kind of rank group, with its sizes side by side."""
        sizes = CPU_SIZES.get(plan.suite, CPU_SIZES["default"])
        if plan.on_gpu:
            sizes = GPU_SIZES[::4] if plan.suite == "quick" else GPU_SIZES
        listed = []
        for kind in kinds_of_groups(plan.team.place):
            whole = kind[0] in ("world", "node", "cross")
            for op in OPS if whole else PAIR_OPS if kind[1] == 2 else INNER_OPS:
                points = [_point(plan, op, kind, int(size)) for size in sizes]
                name = f"{op} among {kind[1]} ranks ({kind[0]})"
                estimate_s = len(points) * (CAP_S + OWN_S)
                listed.append(PointGroup(name=name, points=points, estimate_s=estimate_s, late=not whole))
        return listed


def _point(plan: ProbePlan, op: str, kind: tuple[str, int, int], size_bytes: int) -> Point:
    name, size, stride = kind
    group = plan.team.group(name, size, stride)
    return Point(
        probe_id=f"collective/{op}/{name}/{group.nodes}x{size // group.nodes}/{size_bytes}",
        kind="collective",
        workload="collective",
        recipe=recipe_by_id("fp32"),
        setup=RunSetup(data_distribution="normal"),
        communication=Communication(
            op=op, group=name, backend=plan.team.backend, world=size, nodes=group.nodes, bytes=float(size_bytes)
        ),
        build=partial(build_collective, plan.team, op, group, size_bytes, plan.seed),
        records_recipe=False,
        cap_s=CAP_S,
    )


def build_collective(team: Team, op: str, group: RankGroup, size_bytes: int, seed: int, device: Device) -> Trial:
    """Make a collective on its own buffers of random data."""
    import torch

    elements = max(size_bytes // ELEMENT_BYTES, group.size)
    elements -= elements % group.size
    generator = torch.Generator(device=device.torch).manual_seed(seed + team.place.rank)
    data = torch.randn(elements, generator=generator, device=device.torch)
    return CallTrial(call=_CALLS[op](team, group, data), held_bytes=2.0 * data.nbytes)


Call = Callable[[], object]


def _all_reduce(_team: Team, group: RankGroup, data: Any) -> Call:
    """Sum, the one reduction that every switch can do; after about forty calls it is infinite, but no slower."""
    import torch.distributed as dist

    return lambda: dist.all_reduce(data, group=group.handle)


def _all_gather(_team: Team, group: RankGroup, data: Any) -> Call:
    import torch.distributed as dist

    gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)  # torch 2.13 renamed it
    part = data[: len(data) // group.size].clone()
    return lambda: gather(data, part, group=group.handle)


def _reduce_scatter(_team: Team, group: RankGroup, data: Any) -> Call:
    import torch.distributed as dist

    scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
    part = data[: len(data) // group.size].clone()
    return lambda: scatter(part, data, group=group.handle)


def _all_to_all(_team: Team, group: RankGroup, data: Any) -> Call:
    import torch
    import torch.distributed as dist

    received = torch.empty_like(data)
    return lambda: dist.all_to_all_single(received, data, group=group.handle)


def _send_recv(team: Team, group: RankGroup, data: Any) -> Call:
    """Each rank sends to the next one and receives from the previous one, as pipeline stages do."""
    import torch
    import torch.distributed as dist

    received = torch.empty_like(data)
    at = group.index_of(team.place.rank)
    following, before = group.ranks[(at + 1) % group.size], group.ranks[at - 1]

    def call() -> None:
        pairs = [
            dist.P2POp(dist.isend, data, following, group=group.handle),
            dist.P2POp(dist.irecv, received, before, group=group.handle),
        ]
        for work in dist.batch_isend_irecv(pairs):
            work.wait()

    return call


_CALLS: dict[str, Callable[[Team, RankGroup, Any], Call]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "send_recv": _send_recv,
}

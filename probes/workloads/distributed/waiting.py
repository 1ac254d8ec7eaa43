"""Power of a GPU that waits in a collective for a late rank, as happens with stragglers and in pipeline bubbles.

Rank 0 sleeps on purpose; the others wait in an all-reduce until it arrives.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from planner.records.communication import Communication
from planner.records.work import RunSetup
from probes.device.device import Device
from probes.precisions import recipe_by_id
from probes.ranks.team import Team
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan, Trial

REST_S = 0.05
WINDOW_S = 3.0
BYTES = 4096


class Waiting:
    """Power of ranks that wait, beside the power of a rank that rests."""

    name = "waiting"
    summary = "power of ranks that wait for a late one"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one point; nothing without a power sensor."""
        if not plan.has_sensor:
            return []
        point = Point(
            probe_id="waiting/all_reduce",
            kind="waiting",
            workload="waiting",
            recipe=recipe_by_id("fp32"),
            setup=RunSetup(role="all_reduce"),
            communication=Communication(
                group="world", backend=plan.team.backend, world=plan.team.size, nodes=plan.team.place.nodes
            ),
            build=partial(build_waiting, plan.team),
            records_recipe=False,
            energy_s=WINDOW_S,
            cap_s=0.2,
        )
        return [PointGroup(name="waiting for a late rank", points=[point], estimate_s=WINDOW_S + 3.0)]


def build_waiting(team: Team, device: Device) -> Trial:
    """Make an all-reduce to which rank 0 comes late."""
    import torch
    import torch.distributed as dist

    data = torch.ones(BYTES // 4, device=device.torch)

    def call() -> None:
        if team.leads:
            device.clock.synchronize()
            time.sleep(REST_S)
        dist.all_reduce(data, op=dist.ReduceOp.MAX)
        device.clock.synchronize()

    return CallTrial(call=call)

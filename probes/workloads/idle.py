"""Power of a device without work: as found, and with a context and memory held."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from planner.records.work import RunSetup
from probes.device.device import Device
from probes.precisions import recipe_by_id
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan

WINDOW_S = 4.0
HELD_BYTES = 2**30


class Idle:
    """The device's power before any work."""

    name = "idle"
    summary = "idle power with and without a context"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return both states; nothing without a sensor.

        The state without a context comes first, and holds only if nothing has created a context yet.
        """
        if not plan.has_sensor:
            return []
        states = ("bare", "context") if plan.on_gpu else ("bare",)
        return [
            PointGroup(name=f"idle power ({state})", points=[_point(state)], estimate_s=WINDOW_S + 0.5)
            for state in states
        ]


def _point(state: str) -> Point:
    return Point(
        probe_id=f"idle/{state}",
        kind="idle",
        workload="idle",
        recipe=recipe_by_id("fp32"),
        setup=RunSetup(role=state),
        records_recipe=False,
        build=partial(_build, state),
        energy_s=WINDOW_S,
    )


def _build(state: str, device: Device) -> CallTrial:
    held = None
    if state == "context":
        import torch

        held = torch.randn(HELD_BYTES // 4, device=device.torch)

    def sleep() -> None:
        time.sleep(0.05)
        _ = held

    return CallTrial(call=sleep)

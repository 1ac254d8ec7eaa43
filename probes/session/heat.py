"""Brings a GPU to its working temperature before anything on it is timed.

Under a power limit, a cool device runs faster, because it draws less power at the same clock: the first canary on an
H200 that had rested took 3 % less time than all later ones.
"""

from __future__ import annotations

from collections.abc import Callable

from probes.device.clock import Clock
from probes.device.faults import DeviceLost, cleaned, is_lost
from probes.energy.window import heat_soak, reheat
from probes.memory.peaks import release, warm_libraries
from probes.sensors.interface import Sensor
from probes.session.group import trial_of
from probes.timing.trial import ProbePlan
from probes.workloads.canary import canary_point

SOAK_S, QUICK_SOAK_S = 25.0, 10.0
"""Longest heat soak, and longest heat soak of the quick suite."""


def soaked_c(
    plan: ProbePlan, clock: Clock, sensor: Sensor | None, noted: Callable[[str], object] = lambda _: None
) -> float | None:
    """Heat a GPU with its canary; return the temperature at the end, None if it cannot be read.

    Args:
        plan: gives the device and the suite.
        clock: the clock of the device.
        sensor: the sensor of the device.
        noted: is notified if this failed, for example because other processes hold the memory; the device is then
            measured as it is, and each point shows what it fails with.

    Raises:
        DeviceLost: the device broke.
    """
    temperature_c, point = None, canary_point(plan)
    limit_s = QUICK_SOAK_S if plan.suite == "quick" else SOAK_S
    try:
        warm_libraries(plan.device)
        temperature_c = heat_soak(trial_of(point, plan.device), point.recipe, clock, sensor, limit_s=limit_s)
    except Exception as error:
        if plan.team.size > 1:  # the other ranks heat theirs together with this one, and would wait for it
            raise
        noted(_why_not_heated("the GPU was not heated", error))
    release()
    return temperature_c


def reheated(plan: ProbePlan, clock: Clock, sensor: Sensor | None, soak_c: float) -> str | None:
    """Bring a GPU that has cooled back to the temperature of its heat soak, as far as a canary can.

    Returns:
        The reason if this failed, for a note; the device is then measured as it is. None if it succeeded.

    Raises:
        DeviceLost: the device broke.
    """
    point, note = canary_point(plan), None
    try:
        reheat(trial_of(point, plan.device), point.recipe, clock, sensor, soak_c)
    except Exception as error:
        note = _why_not_heated("the GPU was not heated again", error)
    release()
    return note


def _why_not_heated(what: str, error: Exception) -> str:
    """Return a note about an error that left the device usable.

    Raises:
        DeviceLost: it did not.
    """
    if is_lost(error):
        raise DeviceLost(cleaned(error)) from error
    return f"{what}: {cleaned(error)}"

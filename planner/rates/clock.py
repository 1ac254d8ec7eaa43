"""The clock that a power limit allows, and the terms that follow it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

import numpy as np

from planner.hardware.cluster import Cluster
from planner.hardware.gpu import Gpu
from planner.kernels.power import LEAST_DYNAMIC, PowerLaw
from planner.rates.parameters import Parameters, shipped_parameters
from planner.rates.terms import Dependence, Term

CLOCK_ROWS = ("power_idle", "clock_exponent", "voltage_floor")
"""Rows that determine the clock under a power limit, in addition to the row with the power draw of the work."""


def power_law(parameters: Parameters) -> PowerLaw:
    """The relation of clock and power, from the parameters."""
    idle, exponent, floor = (parameters.find(name).value for name in CLOCK_ROWS)
    return PowerLaw(idle_ratio=idle, clock_exponent=exponent, voltage_floor=floor)


def idle_w(gpu: Gpu, parameters: Parameters | None = None) -> float:
    """Power draw of an idle board in watts."""
    return (parameters or shipped_parameters()).find("power_idle").value * gpu.tdp_w


def least_limit_w(gpu: Gpu, parameters: Parameters | None = None) -> float:
    """The lowest power limit of a plan, in whole watts: the lowest that the driver accepts, if known.

    Otherwise it is the idle power plus the least power above idle (`LEAST_DYNAMIC`). In the model, the clock falls no
    further under a lower limit, so a plan would claim savings that do not exist.
    """
    if gpu.power_limit_min_w is not None:
        return gpu.power_limit_min_w
    return float(ceil(idle_w(gpu, parameters) + LEAST_DYNAMIC * gpu.tdp_w))


def clock_ratio(cluster: Cluster, parameters: Parameters | None = None, draw_row: str = "power_at_limit") -> float:
    """Sustained clock under a power limit, relative to the clock under the limit as sold.

    One variable determines both the rate and the power (`PowerLaw`). Large products that run alone draw as much as the
    limit allows in every type (`power_at_limit`). Their measured rates were taken under the limit as sold, and a lower
    limit reduces them. The ratio is 1 if the limit is above the power drawn.

    Args:
        cluster: the machines with their power limit.
        parameters: the rows to use; None for the shipped ones.
        draw_row: the row with the power draw of the work, as a share of the limit as sold.
    """
    rows = parameters or shipped_parameters()
    limit_w, tdp_w = cluster.power_limit_w, cluster.gpu.tdp_w
    needed_w = rows.find(draw_row).value * tdp_w
    if limit_w is None or limit_w >= needed_w:
        return 1.0
    law = power_law(rows)
    idle = law.idle_ratio * tdp_w
    return float(law.clock(max(limit_w - idle, LEAST_DYNAMIC * tdp_w) / (needed_w - idle)))


def at_clock(term: Term, cluster: Cluster, parameters: Parameters, draw_row: str = "power_at_limit") -> Term:
    """The term of a rate at the clock that the power limit allows; `draw_row` is the row with the work's power draw."""
    clock = clock_ratio(cluster, parameters, draw_row)
    if clock == 1.0:
        return term
    also = tuple(_clock_dependences(cluster, parameters, clock, draw_row))
    return replace(term, value=term.value * clock, ceiling=term.ceiling * clock, rests_on=term.rests_on + also)


def _clock_dependences(cluster: Cluster, parameters: Parameters, clock: float, draw_row: str) -> Iterator[Dependence]:
    """The rows that determine the clock under a power limit, each with the log-log slope of the clock."""
    step = 1e-4
    for name in (draw_row, *CLOCK_ROWS):
        row = parameters.find(name)
        beside = parameters.replaced([replace(row, value=row.value * (1.0 + step))])
        slope = float(np.log(clock_ratio(cluster, beside, draw_row) / clock) / np.log1p(step))
        if slope:
            yield Dependence(row=row, power=slope)


DRAW_ROWS = {"linear_flop_per_s": "power_at_limit", "other_flop_per_s": "power_at_limit",
            "attention_flop_per_s": "power_attention", "memory_bytes_per_s": "power_memory"}  # fmt: skip
"""Rates that follow the clock, each with the row that gives the power draw of its work."""


def under_limit(term: Term, cluster: Cluster, parameters: Parameters) -> Term:
    """Convert a term from a record from the power limit under which it was measured to a lower limit that is set."""
    limit_w = cluster.power_limit_w
    if limit_w is None or limit_w >= (term.measured_limit_w or cluster.gpu.tdp_w):
        return term
    if term.name not in DRAW_ROWS:
        if term.family.limit != "board_power":
            return term
        return replace(term, value=min(term.value, limit_w), ceiling=limit_w)
    draw_row = DRAW_ROWS[term.name]
    measured = replace(cluster, power_limit_w=term.measured_limit_w)
    clock = clock_ratio(cluster, parameters, draw_row) / clock_ratio(measured, parameters, draw_row)
    return replace(term, value=term.value * clock, ceiling=term.ceiling * clock)

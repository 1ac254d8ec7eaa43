"""Power that a job takes from the facility, at its peak and on average, and how many GPUs a cap allows."""

from __future__ import annotations

import math

from planner.costs.quantity import Energy, Power, Value
from planner.errors import Message, NoPlanError, UsageError
from planner.lazy import dataclass
from planner.units import HOUR_S

ROUNDING = 1e-9
"""Relative error of a cap that is written down and read again: a cap equal to the peak of N GPUs allows N GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePower:
    """Power of one GPU and its share of the server, before PUE."""

    gpu_limit: Power
    """Board power limit."""
    host: Power
    """Host and network power per GPU, at full load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapEffect:
    """The effect of a cap on the facility's power on a plan on one kind of GPU."""

    gpu: str
    cap_mw: float
    gpus_allowed: int
    """The most GPUs, in whole servers, whose peak stays under the cap."""
    binding: bool
    """Whether the cap alone decided the number of GPUs."""
    gpus_wanted: int | None = None
    """GPUs that the target would have taken without the cap, where the cap is binding."""
    days_wanted: float | None = None
    """Mid duration on that many GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPoint:
    """The plan of the requested precision at one power limit, at mid."""

    limit_w: float
    gpus: int
    duration_days: float
    energy_mwh: float
    cost_usd: float | None
    """None without a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSearch:
    """The power limits of one kind of GPU with the lowest cost and the least energy."""

    gpu: str
    precision: str
    """The requested precision, whose plan decides."""
    least_w: float
    """Lowest limit of the search, the least that the driver accepts."""
    limits: int
    """Number of limits that were compared."""
    sold: LimitPoint
    """The plan at the limit as sold."""
    cheapest: LimitPoint | None
    """The plan at the limit that the answer's plans use; None without a price, where they use `greenest`."""
    greenest: LimitPoint
    """The plan with the least energy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitBeside:
    """A measured run at one power limit per GPU, compared with the same run at the highest limit of the record."""

    gpu: str
    precision: str
    point: str
    """Id of the probe's point that was measured."""
    limit_w: float
    """Board power limit."""
    time_ratio: float
    """GPU-hours relative to those at the highest limit."""
    energy_ratio: float
    """Board energy relative to that at the highest limit."""
    usd_per_million_tokens: float | None
    """GPU-hours at the plan's price, plus electricity where it is paid separately; None without a price."""
    gpus_under_cap: int | None
    """Number of GPUs that the facility's cap allows at this limit; None without a cap."""
    capped_tokens_per_s: float | None
    """Throughput of those GPUs together, by the measured rate of one."""


def peak_power(gpus: int, node: NodePower, pue: float) -> Power:
    """Return the power the facility must deliver: GPUs at their limit, hosts and network at full load, times PUE."""
    return Power(w=gpus * (float(node.gpu_limit.w) + float(node.host.w)) * pue)


def mean_power(energy: Energy, wall_h: Value) -> Power:
    """Return the mean power of a run, or of draws: its energy over its wall-clock hours.

    Raises:
        UsageError: the number of hours is not positive.
    """
    if isinstance(wall_h, float | int) and not wall_h > 0:
        raise UsageError(Message.of("error.no_hours"), hint=Message.of("hint.positive_duration"))
    return Power(w=energy.j / (wall_h * HOUR_S))


def servers_under_cap(cap: Power, node: NodePower, pue: float, gpus_per_node: int) -> int:
    """Return the most servers whose peak stays under a facility's cap; 0 where not even one does."""
    one_server = peak_power(gpus_per_node, node, pue)
    return math.floor(float(cap.w) / float(one_server.w) * (1.0 + ROUNDING))


def gpus_under_cap(cap: Power, node: NodePower, pue: float, gpus_per_node: int) -> int:
    """Return the most GPUs, in whole servers, whose peak stays under a facility's cap.

    Raises:
        NoPlanError: not even one server fits; the message says what one takes.
    """
    servers = servers_under_cap(cap, node, pue, gpus_per_node)
    if servers < 1:
        one_server = peak_power(gpus_per_node, node, pue)
        raise NoPlanError(
            Message.of("error.cap_below_server", server_kw=float(one_server.kw), cap_kw=float(cap.kw)),
            hint=Message.of("hint.raise_cap"),
        )
    return servers * gpus_per_node

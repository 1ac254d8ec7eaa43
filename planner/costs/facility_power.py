"""Power that a job takes from the facility: at its peak, on average, and how many GPUs a cap allows."""

from __future__ import annotations

import math

from planner.costs.quantity import Energy, Power, Value
from planner.errors import Message, NoPlanError, UsageError
from planner.lazy import dataclass
from planner.units import HOUR_S

ROUNDING = 1e-9
"""What a cap may lose by being written down and read again: the peak of N GPUs as a cap allows N GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePower:
    """What one GPU takes with its share of the server, before PUE."""

    gpu_limit: Power
    """Board power limit."""
    host: Power
    """Host and network per GPU, at full load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapEffect:
    """What a cap on the facility's power does to a plan on one kind of GPU."""

    gpu: str
    cap_mw: float
    gpus_allowed: int
    """The most GPUs, in whole servers, whose peak stays under the cap."""
    binding: bool
    """Whether the cap, and nothing else, decided how many GPUs there are."""
    gpus_wanted: int | None = None
    """What the target would have taken, where the cap is binding."""
    days_wanted: float | None = None
    """Mid duration on those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPoint:
    """The plan of the asked precision at one power limit, at mid."""

    limit_w: float
    gpus: int
    duration_days: float
    energy_mwh: float
    cost_usd: float | None
    """None without a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSearch:
    """The power limits of one kind of GPU that cost and draw the least."""

    gpu: str
    precision: str
    """The one asked for, which decides."""
    least_w: float
    """Least limit of the search: what the driver accepts."""
    limits: int
    """How many were compared."""
    sold: LimitPoint
    """At the limit as sold."""
    cheapest: LimitPoint | None
    """Where the plans stand; None without a price, and then they stand at `greenest`."""
    greenest: LimitPoint
    """With the least energy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitBeside:
    """A measured run at one power limit per GPU, against the same at the highest limit of the record."""

    gpu: str
    precision: str
    point: str
    """What was measured: the probe's id."""
    limit_w: float
    """Board power limit."""
    time_ratio: float
    """GPU-hours over those at the highest limit."""
    energy_ratio: float
    """Board energy over that at the highest limit."""
    usd_per_million_tokens: float | None
    """GPU-hours at the price of the plan, plus electricity where it is paid apart; None without a price."""
    gpus_under_cap: int | None
    """GPUs under the facility's cap at this limit; None without a cap."""
    capped_tokens_per_s: float | None
    """What those GPUs do together, by the measured rate of one."""


def peak_power(gpus: int, node: NodePower, pue: float) -> Power:
    """What the facility must deliver: GPUs at their limit, host and network at full load, times the PUE of the peak."""
    return Power(w=gpus * (float(node.gpu_limit.w) + float(node.host.w)) * pue)


def mean_power(energy: Energy, wall_h: Value) -> Power:
    """Energy of a run over its hours on the clock, of one run or of draws.

    Raises:
        UsageError: no hours.
    """
    if isinstance(wall_h, float | int) and not wall_h > 0:
        raise UsageError(Message.of("error.no_hours"), hint=Message.of("hint.positive_duration"))
    return Power(w=energy.j / (wall_h * HOUR_S))


def servers_under_cap(cap: Power, node: NodePower, pue: float, gpus_per_node: int) -> int:
    """The most servers whose peak stays under a facility's cap; 0 where not even one does."""
    one_server = peak_power(gpus_per_node, node, pue)
    return math.floor(float(cap.w) / float(one_server.w) * (1.0 + ROUNDING))


def gpus_under_cap(cap: Power, node: NodePower, pue: float, gpus_per_node: int) -> int:
    """The most GPUs, in whole servers, whose peak stays under a facility's cap.

    Raises:
        NoPlanError: not even one server fits; the message says what it takes.
    """
    servers = servers_under_cap(cap, node, pue, gpus_per_node)
    if servers < 1:
        one_server = peak_power(gpus_per_node, node, pue)
        raise NoPlanError(
            Message.of("error.cap_below_server", server_kw=float(one_server.kw), cap_kw=float(cap.kw)),
            hint=Message.of("hint.raise_cap"),
        )
    return servers * gpus_per_node

"""Power that a job takes from the facility, what a cap on it does, and which limit per GPU pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.errors import NoPlanError, UsageError
from planner.quantity import Energy, Power
from planner.units import HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePower:
    """What one GPU takes with its share of the server, before PUE."""

    gpu_limit: Power
    """Board power limit."""
    host: Power
    """Host and network per GPU, at full load."""


def peak_power(gpus: int, node: NodePower, pue: float) -> Power:
    """What the facility must deliver: every GPU at its limit, host and network at full load, times PUE."""
    return Power(w=gpus * (float(node.gpu_limit.w) + float(node.host.w)) * pue)


def mean_power(energy: Energy, wall_h: float) -> Power:
    """Energy of a run over its hours on the clock.

    Raises:
        UsageError: no hours.
    """
    if not wall_h > 0:
        raise UsageError("a run of no hours has no mean power", hint="give a duration above 0")
    return Power(w=float(energy.j) / (wall_h * HOUR_S))


def gpus_under_cap(cap: Power, node: NodePower, pue: float, gpus_per_node: int) -> int:
    """The most GPUs, in whole servers, whose peak stays under a facility's cap.

    Raises:
        NoPlanError: not even one server fits; the message says what it takes.
    """
    one_server = peak_power(gpus_per_node, node, pue)
    servers = int(float(cap.w) // float(one_server.w))
    if servers < 1:
        raise NoPlanError(
            f"one server takes {float(one_server.kw):.1f} kW at the meter, the cap is {float(cap.kw):.1f} kW",
            hint="raise the cap, or lower the power limit per GPU",
        )
    return servers * gpus_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRate:
    """What a GPU does at one power limit, from a measurement record."""

    limit: Power
    tokens_per_s: float
    """Per GPU."""
    mean: Power
    """Mean board power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEffect:
    """A run at one power limit, against the same run at the highest limit at hand."""

    rate: LimitRate
    time_ratio: float
    """GPU-hours over those at the highest limit."""
    energy_ratio: float
    """Board energy over that at the highest limit."""
    usd_per_token: float | None
    """GPU-hours at the price given, plus electricity where it is paid; None without prices."""
    gpus_under_cap: int | None
    """GPUs under the facility's cap at this limit; None without a cap."""
    capped_tokens_per_s: float | None
    """What those GPUs do together."""


def limit_effects(
    rates: Sequence[LimitRate],
    *,
    host: Power,
    pue: float,
    gpus_per_node: int,
    usd_per_gpu_h: float | None = None,
    usd_per_kwh: float | None = None,
    cap: Power | None = None,
) -> tuple[LimitEffect, ...]:
    """What each measured power limit does to time, energy, money and throughput under a cap, highest limit first.

    Args:
        rates: measured at two limits or more.
        host: host and network per GPU, taken as the same at every limit.
        pue: facility power over IT power.
        gpus_per_node: for whole servers under the cap.
        usd_per_gpu_h: price of a GPU-hour.
        usd_per_kwh: electricity, where it is paid apart.
        cap: what the facility can deliver to this job.

    Raises:
        UsageError: fewer than two limits, or a rate or power that is not positive.
    """
    if len({float(rate.limit.w) for rate in rates}) < 2:
        raise UsageError(
            "the record holds rates at fewer than two power limits", hint="`mpplan probe` measures several limits"
        )
    if any(rate.tokens_per_s <= 0 or float(rate.mean.w) <= 0 for rate in rates):
        raise UsageError("a measured rate or power is not above 0", hint="measure it again")
    ordered = sorted(rates, key=lambda rate: -float(rate.limit.w))
    top = ordered[0]
    effects = []
    for rate in ordered:
        time_ratio = top.tokens_per_s / rate.tokens_per_s
        meter_kw = (float(rate.mean.kw) + float(host.kw)) * pue
        usd_per_h = None if usd_per_gpu_h is None else usd_per_gpu_h + meter_kw * (usd_per_kwh or 0.0)
        fitting = None
        if cap is not None:
            servers = peak_power(gpus_per_node, NodePower(gpu_limit=rate.limit, host=host), pue)
            fitting = int(float(cap.w) // float(servers.w)) * gpus_per_node
        effects.append(
            LimitEffect(
                rate=rate,
                time_ratio=time_ratio,
                energy_ratio=time_ratio * float(rate.mean.w) / float(top.mean.w),
                usd_per_token=None if usd_per_h is None else usd_per_h / (rate.tokens_per_s * HOUR_S),
                gpus_under_cap=fitting,
                capped_tokens_per_s=None if fitting is None else fitting * rate.tokens_per_s,
            )
        )
    return tuple(effects)

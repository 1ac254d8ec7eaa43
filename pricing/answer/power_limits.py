"""The effect of GPU power limits on time, energy and cost, and on the number of GPUs under a facility's power cap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from planner.answer.plan import Plan
from planner.costs.facility_power import LimitBeside, NodePower, servers_under_cap
from planner.costs.quantity import Power
from planner.errors import UsageError
from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.question.question import MoneyInputs
from planner.records.measurement import Measurement
from planner.records.store import gpu_of
from planner.units import HOUR_S, MEGA, MWH_J, w_from_mw
from pricing.answer.priced import Priced


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRate:
    """Throughput and power of a GPU at one power limit, from a measurement record."""

    limit: Power
    tokens_per_s: float
    """Per GPU."""
    mean: Power
    """Mean board power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEffect:
    """A run at one power limit, compared with the same run at the highest limit that was measured."""

    rate: LimitRate
    time_ratio: float
    """GPU-hours over those at the highest limit."""
    energy_ratio: float
    """Board energy over that at the highest limit."""
    usd_per_token: float | None
    """Cost of the GPU-hours at the given price, plus electricity where it is paid separately; None without a price."""
    gpus_under_cap: int | None
    """GPUs that fit under the facility's power cap at this limit; None without a cap."""
    capped_tokens_per_s: float | None
    """Total throughput of those GPUs."""


def limit_effects(
    rates: Sequence[LimitRate],
    *,
    host: Power,
    pue: float,
    gpus_per_node: int,
    usd_per_gpu_h: float | None = None,
    usd_per_kwh: float | None = None,
    cap: Power | None = None,
    peak_pue: float | None = None,
) -> tuple[LimitEffect, ...]:
    """Return the effect of each measured power limit on time, energy, cost and capped throughput, highest limit first.

    Args:
        rates: measurements at two limits or more.
        host: power of host and network per GPU, assumed the same at every limit.
        pue: facility power over IT power.
        gpus_per_node: GPUs of a server; only whole servers are placed under the cap.
        usd_per_gpu_h: price of a GPU-hour.
        usd_per_kwh: price of electricity, where it is paid separately.
        cap: power that the facility can deliver to this run.
        peak_pue: factor on peak IT power, which is compared with the cap; None: `pue`.

    Raises:
        UsageError: there are fewer than two limits, or a rate or power is not positive.
    """
    if len({float(rate.limit.w) for rate in rates}) < 2:
        raise UsageError(
            "the record contains rates at fewer than two power limits", hint="`mpplan probe` measures several limits"
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
            node = NodePower(gpu_limit=rate.limit, host=host)
            fitting = servers_under_cap(cap, node, peak_pue or pue, gpus_per_node) * gpus_per_node
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


def measured_limits(points: Iterable[Measurement], gpu: str) -> dict[tuple[str, str], tuple[LimitRate, ...]]:
    """Return rates of whole training steps of a GPU at two power limits or more, by precision and id of the probe."""
    rates_by_limit: dict[tuple[str, str], dict[float, LimitRate]] = defaultdict(dict)
    for point in points:
        if point.kind != "end_to_end" or not point.usable_time or gpu_of(point) != gpu:
            continue
        if (
            point.device_state.power_limit_w
            and point.power.mean_w
            and point.shape.tokens
            and point.time.median_s
            and point.setup.precision
        ):
            rates_by_limit[point.setup.precision, point.probe_id][point.device_state.power_limit_w] = LimitRate(
                limit=Power(w=point.device_state.power_limit_w),
                tokens_per_s=point.shape.tokens / point.time.median_s,
                mean=Power(w=point.power.mean_w),
            )
    return {key: tuple(rates.values()) for key, rates in rates_by_limit.items() if len(rates) > 1}


def limits_beside(
    plan: Plan, priced: Priced, cluster: Cluster, money: MoneyInputs, points: Iterable[Measurement]
) -> Iterator[LimitBeside]:
    """Yield the effect of each measured limit at the plan's prices, power cap, and host and network power."""
    assert plan.peak_power_mw is not None
    assert plan.energy_items_mwh is not None
    limit_w, pue = cluster.limit_w, priced.site.pue.mid
    items = plan.energy_items_mwh
    assert plan.gpu_hours is not None
    host = Power(w=(items["host"] + items["network"]) * MWH_J / (plan.gpu_hours.mid * HOUR_S))
    peak_pue = w_from_mw(plan.peak_power_mw) / plan.gpus / (limit_w + float(host.w))
    owned, price = priced.ledgers[plan.gpu].owned, priced.prices[plan.gpu]
    usd = (price if owned is None else owned.without_energy).usd_per_gpu_h
    power = priced.site.electricity_usd_per_kwh if owned is not None or money.pays_electricity else None
    for (precision, point), rates in sorted(measured_limits(points, plan.gpu).items()):
        for effect in limit_effects(
            rates,
            host=host,
            pue=pue,
            gpus_per_node=cluster.gpus_per_node,
            usd_per_gpu_h=None if usd is None else usd.mid,
            usd_per_kwh=None if power is None else power.mid,
            cap=None if money.power_cap_w is None else Power(w=money.power_cap_w),
            peak_pue=peak_pue,
        ):
            yield LimitBeside(
                gpu=plan.gpu,
                precision=precision,
                point=point,
                limit_w=float(effect.rate.limit.w),
                time_ratio=effect.time_ratio,
                energy_ratio=effect.energy_ratio,
                usd_per_million_tokens=None if effect.usd_per_token is None else effect.usd_per_token * MEGA,
                gpus_under_cap=effect.gpus_under_cap,
                capped_tokens_per_s=effect.capped_tokens_per_s,
            )

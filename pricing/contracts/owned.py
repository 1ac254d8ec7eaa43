"""The cost of a GPU-hour on owned machines: capital, financing, housing, electricity and staff, by utilisation.

Shares, service lives and the economic depreciation follow Cottier et al., "The rising costs of training frontier AI
models" (Epoch AI, arXiv 2405.21015) and its code (epoch-research/training-cost-trends@263c40a1).
"""

from __future__ import annotations

import math

from planner.costs.quantity import Power
from planner.lazy import dataclass
from planner.units import MONTH_H, YEAR_H

PRICE_PERFORMANCE_OOM_PER_YEAR = 0.14
"""Orders of magnitude by which GPU price-performance improves per year (Epoch AI): 27.6 % of value lost a year."""

ITEMS = ("server", "network", "storage", "financing", "housing", "electricity", "staff")
"""Items of an owned GPU-hour; they sum to its cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The user's own machines, per GPU."""

    server_usd_per_gpu: float
    """Price of a new server divided by its GPUs."""
    network_ratio: float
    """Network between servers as a share of the cluster's capital."""
    storage_ratio: float
    """Storage as a share of the cluster's capital."""
    life_years: float
    age_years: float
    """Age of the machines at the start of the run; only economic depreciation uses it."""
    depreciation: str
    """`straight-line` or `economic`."""
    residual_ratio: float
    """Value left at the end of the service life, as a share of the price; straight-line depreciation only."""
    financing_ratio: float
    """Interest per year on the capital tied up."""
    utilisation_ratio: float
    """Share of all hours that are used."""
    server_power: Power
    """Nameplate power of a server divided by its GPUs, host included."""
    mean_load_ratio: float
    """Mean power in use, as a share of the nameplate power."""
    idle_load_ratio: float
    """Power when idle, as a share of the nameplate power."""
    housing: str
    """`colocation` or `own`."""
    colocation_usd_per_kw_month: float
    """Per kW of nameplate power, without energy."""
    facility_usd_per_kw: float
    """Capital of building, power and cooling per kW of nameplate power; only where housing is `own`."""
    facility_life_years: float
    staff_ratio: float
    """Staff, support and spare parts as a share of all other items."""


def cluster_usd_per_gpu(owned: Owned) -> float:
    """Return the capital per GPU when new: server, network and storage, the latter two as shares of the total."""
    return owned.server_usd_per_gpu / (1.0 - owned.network_ratio - owned.storage_ratio)


def value_usd(price_usd: float, age_years: float) -> float:
    """Return the value of hardware at an age: it loses 0.14 orders of magnitude a year (Epoch AI)."""
    return price_usd * math.pow(10.0, -PRICE_PERFORMANCE_OOM_PER_YEAR * age_years)


def economic_rate_per_year() -> float:
    """Return the share of the current value that is charged per year: 0.14 ln 10 = 0.322 (Epoch AI)."""
    return PRICE_PERFORMANCE_OOM_PER_YEAR * math.log(10.0)


def depreciation_usd_per_h(owned: Owned, price_usd: float) -> float:
    """Return the depreciation of hardware of this price per wall-clock hour."""
    if owned.depreciation == "economic":
        return value_usd(price_usd, owned.age_years) * economic_rate_per_year() / YEAR_H
    return price_usd * (1.0 - owned.residual_ratio) / (owned.life_years * YEAR_H)


def financing_usd_per_h(owned: Owned, price_usd: float) -> float:
    """Return the interest per wall-clock hour on the mean book value (straight-line) or current value (economic)."""
    if owned.depreciation == "economic":
        tied_up = value_usd(price_usd, owned.age_years)
    else:
        tied_up = price_usd * (1.0 + owned.residual_ratio) / 2.0
    return tied_up * owned.financing_ratio / YEAR_H


def housing_usd_per_h(owned: Owned) -> float:
    """Return the cost of space, power and cooling per wall-clock hour, without energy."""
    kw = float(owned.server_power.kw)
    if owned.housing == "colocation":
        return kw * owned.colocation_usd_per_kw_month / MONTH_H
    return kw * owned.facility_usd_per_kw / (owned.facility_life_years * YEAR_H)


def electricity_usd_per_h(owned: Owned, load_ratio: float, pue: float, usd_per_kwh: float) -> float:
    """Return the electricity cost per hour of one GPU with its share of the server, metered at the facility."""
    return float(owned.server_power.kw) * load_ratio * pue * usd_per_kwh


def clock_items_usd_per_h(owned: Owned) -> dict[str, float]:
    """Return the cost of a wall-clock hour by item, whether or not the GPU works, without energy and staff."""
    cluster = cluster_usd_per_gpu(owned)
    per_h = depreciation_usd_per_h(owned, cluster) / cluster if cluster > 0 else 0.0
    return {
        "server": owned.server_usd_per_gpu * per_h,
        "network": cluster * owned.network_ratio * per_h,
        "storage": cluster * owned.storage_ratio * per_h,
        "financing": financing_usd_per_h(owned, cluster),
        "housing": housing_usd_per_h(owned),
    }


def items_usd_per_gpu_h(owned: Owned, pue: float, usd_per_kwh: float) -> dict[str, float]:
    """Return the cost of an hour of use by item, as in `ITEMS`; used hours also pay for the unused hours."""
    used = owned.utilisation_ratio
    items = {name: value / used for name, value in clock_items_usd_per_h(owned).items()}
    busy = electricity_usd_per_h(owned, owned.mean_load_ratio, pue, usd_per_kwh)
    idle = electricity_usd_per_h(owned, owned.idle_load_ratio, pue, usd_per_kwh)
    items["electricity"] = busy + idle * (1.0 - used) / used
    items["staff"] = owned.staff_ratio * sum(items.values())
    return items


def usd_per_gpu_h(owned: Owned, pue: float, usd_per_kwh: float) -> float:
    """Return the total cost of an hour of use."""
    return sum(items_usd_per_gpu_h(owned, pue, usd_per_kwh).values())


def break_even_ratio(owned: Owned, pue: float, usd_per_kwh: float, rental_usd_per_gpu_h: float) -> float | None:
    """Return the utilisation at which an hour of use costs as much as renting; None where it always costs more.

    With F the cost of a wall-clock hour, E_b and E_i the energy of a busy and an idle hour and s the staff share, an
    hour of use at utilisation u costs (1 + s) (F / u + E_b + E_i (1 - u) / u); set equal to the rental price.
    """
    staff = 1.0 + owned.staff_ratio
    busy = electricity_usd_per_h(owned, owned.mean_load_ratio, pue, usd_per_kwh)
    idle = electricity_usd_per_h(owned, owned.idle_load_ratio, pue, usd_per_kwh)
    fixed = staff * (sum(clock_items_usd_per_h(owned).values()) + idle)
    left = rental_usd_per_gpu_h - staff * (busy - idle)
    if left <= 0 or fixed > left:
        return None
    return fixed / left

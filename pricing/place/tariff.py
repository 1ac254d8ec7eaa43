"""tariff.toml: electricity prices by hour of the week, the mean price that a run pays, and the best time to start it.

No tariff is shipped. A file holds `[[period]]` tables with `from` and `to` (whole hours of the day, `to` excluded, past
midnight allowed), `days` (all, weekdays, weekend) and `usd_per_kwh`; every hour of the week must be covered exactly
once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.evidence import Estimate, Evidence, EvidenceKind
from planner.lazy import dataclass
from pricing.base.fact import Fact
from pricing.files.toml_file import TomlFile, read_toml

DAY_HOURS = 24
WEEK_HOURS = 7 * DAY_HOURS
_DAYS = {"all": range(7), "weekdays": range(5), "weekend": range(5, 7)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """Electricity prices by hour of the week."""

    usd_per_kwh: npt.NDArray[np.float64]
    """Shape [168], Monday 0:00 first, local time."""
    name: str
    """The name in the file, else the file's own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An hour of the week at which a run starts, and the mean price that it then pays."""

    hour_of_week: int
    """0 is Monday 0:00."""
    usd_per_kwh: float


def read_tariff(path: Path) -> Tariff:
    """Read tariff.toml.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not TOML, a period is invalid, or an hour is covered twice or not at all.
    """
    file = read_toml(path)
    periods = file.get("period")
    if not isinstance(periods, list) or not periods:
        raise file.fail("period", "expected [[period]] tables with from, to, days and usd_per_kwh")
    prices = np.full(WEEK_HOURS, np.nan)
    for index, period in enumerate(periods):
        if not isinstance(period, dict):
            raise file.fail("period", "expected [[period]] tables with from, to, days and usd_per_kwh")
        _fill(prices, file, TomlFile(name=file.name, text=file.text, values=period), index)
    empty = np.flatnonzero(np.isnan(prices))
    if empty.size:
        raise file.fail("period", f"no price for {hour_named(int(empty[0]))}; every hour of the week needs one")
    return Tariff(usd_per_kwh=prices, name=file.text_of("name", path.stem))


def _fill(prices: npt.NDArray[np.float64], file: TomlFile, period: TomlFile, index: int) -> None:
    first = period.whole("from", 0, DAY_HOURS - 1)
    last = period.whole("to", 0, DAY_HOURS)
    days = _DAYS[period.word("days", _DAYS, "all")]
    usd = period.number("usd_per_kwh", 0, 2)
    hours = range(first, last) if first < last else [*range(first, DAY_HOURS), *range(last)]
    for day in days:
        for hour in hours:
            at = day * DAY_HOURS + hour
            if not np.isnan(prices[at]):
                raise file.fail("period", f"period {index + 1} covers {hour_named(at)} a second time")
            prices[at] = usd


def hour_named(hour_of_week: int) -> str:
    """Return the name of an hour of the week: `Monday 0:00` for 0."""
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    return f"{names[hour_of_week // DAY_HOURS]} {hour_of_week % DAY_HOURS}:00"


def mean_usd_per_kwh(tariff: Tariff, wall_h: float, start_hour: int = 0) -> float:
    """Return the mean price per kWh that a run with constant power pays; the last hour counts by its used part.

    Args:
        tariff: the prices.
        wall_h: duration of the run in hours.
        start_hour: hour of the week at which it starts, 0 being Monday 0:00.
    """
    weeks, partial_week_h = divmod(wall_h, WEEK_HOURS)
    hours = np.arange(int(np.ceil(partial_week_h)))
    weights = np.minimum(partial_week_h - hours, 1.0)
    prices = tariff.usd_per_kwh[(start_hour + hours) % WEEK_HOURS]
    return float((weeks * tariff.usd_per_kwh.sum() + (weights * prices).sum()) / wall_h)


def best_start(tariff: Tariff, wall_h: float) -> tuple[Start, Start]:
    """Return the cheapest and the most expensive hour of the week to start an uninterrupted run of `wall_h` hours."""
    starts = [
        Start(hour_of_week=hour, usd_per_kwh=mean_usd_per_kwh(tariff, wall_h, hour)) for hour in range(WEEK_HOURS)
    ]
    return min(starts, key=lambda start: start.usd_per_kwh), max(starts, key=lambda start: start.usd_per_kwh)


def tariff_fact(tariff: Tariff, source: str, wall_h: float | None = None) -> Fact:
    """Return the price of electricity under a tariff: the mean over the week.

    Args:
        tariff: the prices.
        source: the file that holds them.
        wall_h: hours of the run; low and high are then the 5th and 95th percentile over all possible starting hours.
    """
    mean = float(tariff.usd_per_kwh.mean())
    low, high, over = mean, mean, ""
    if wall_h is not None:
        starts = [mean_usd_per_kwh(tariff, wall_h, hour) for hour in range(WEEK_HOURS)]
        by_start = Estimate.of_draws(np.array(starts))
        low, high = by_start.low, by_start.high
        over = f", {low:.4g} to {high:.4g} for a run of {wall_h:.4g} hours, by its starting hour"
    what = f"tariff {tariff.name}: {mean:.4g} USD per kWh over the week{over}"
    evidence = Evidence(
        id="electricity:tariff", kind=EvidenceKind.GIVEN, what=what, source=source, used_in=("cost_usd",)
    )
    return Fact(estimate=Estimate(low=min(low, mean), mid=mean, high=max(high, mean)), evidence=evidence)

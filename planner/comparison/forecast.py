"""Forecast the end of a run, its remaining bill and its remaining energy, with a range.

Three quantities are uncertain. The first is the mean step time so far; its error follows from the means of blocks of
lines, which capture slow changes. The second is the mean of the remaining steps. The third is the stops. Their number
is negative binomial, with a rate whose uncertainty follows from the stops so far (Jeffreys' prior). Their durations are
exponential, with a mean whose uncertainty also follows from the stops so far. If no stop was observed and the log is
too short to show one, the goodput of the plan is used instead.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.comparison.pace import Durations
from planner.comparison.time_use import TimeUse
from planner.evidence import Z90, Estimate, middle
from planner.hardware.failures import interruptions_per_gpu_hour
from planner.lazy import dataclass
from planner.runlog.log import RunLog
from planner.units import DAY_S, HOUR_S

Floats = npt.NDArray[np.float64]

DRAWS = 4000
FEWEST_RECENT = 40
"""Fewest recent lines that a forecast uses, where the log has as many; of more, it uses the later half."""
FEWEST_BLOCKS, MOST_BLOCKS, BLOCK_LINES = 5, 20, 25
"""Blocks of lines whose means give the error of the mean; they are long, since slow lines often follow each other."""
REGULAR, IRREGULAR = ("checkpoint", "evaluation"), ("stops", "replayed", "other")
"""Kinds of time outside steps that occur on a schedule, and at random."""
CLUSTER = 1.5
"""Variance of the number of stops over its mean: a bad node fails again, and replayed steps can stop again. Assumed:
with 1 (Poisson) the 90 % range held 82 % of simulated ends whose replayed steps can stop again, with this value 86
to 90 %."""
QUIET = 3.0
"""Length of a log without a stop, in mean times between stops, from which the plan's stops are no longer assumed: at
this length one run in twenty has none (exp(-3))."""
MOST_STOPS = 1e6
"""Upper limit on the expected number of remaining stops; a run with more never ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The rest of a run, from the end of its log."""

    remaining_steps: int
    remaining_tokens: float | None
    days: Estimate
    end_s: Estimate | None
    """Seconds since 1970 (local time where the log's times have no zone); None where the log has no times."""
    gpu_hours: Estimate | None
    cost_usd: Estimate | None
    """Remaining cost; None where GPUs or price are unknown."""
    spent_days: float | None
    """Time until the end of the log: wall-clock time, else from steps and pauses or the closing line, else None."""
    spent_usd: Estimate | None
    stops_expected: float
    """Mean number of remaining stops."""
    stops_from: str = "log"
    """`plan` where the log is too short to have shown a stop: the plan's goodput then covers stops and checkpoints."""
    days_without_stops: float | None = None
    """Middle of the days without stops, where the stops are the plan's."""
    energy_mwh: Estimate | None = None
    """Remaining energy at the building's meter, at the plan's mean power; None where GPUs or power are unknown."""
    spent_energy_mwh: Estimate | None = None
    """Energy until the end of the log, likewise."""


def forecast(
    log: RunLog, durations: Durations, use: TimeUse, *, remaining_steps: int, tokens_per_step: float | None,
    gpus: int | None, usd_per_gpu_h: Estimate | None, goodput_ratio: Estimate | None = None,
    mw_per_gpu: Estimate | None = None, seed: int = 0,
) -> Forecast | None:  # fmt: skip
    """Forecast the rest of a run; None where steps remain but the log has no step time.

    Args:
        log: the run so far.
        durations: durations of its lines.
        use: its wall-clock time.
        remaining_steps: steps after `log.reached`.
        tokens_per_step: tokens per step over all GPUs; None where unknown.
        gpus: number of all GPUs; None where unknown.
        usd_per_gpu_h: price; None where unknown.
        goodput_ratio: goodput of the plan; None without a plan, or where it has another number of GPUs.
        mw_per_gpu: mean power at the building's meter per GPU, in MW; None where unknown.
        seed: seed of the draws.
    """
    draw = np.random.default_rng(seed)
    step_s = _step_draws(log, durations, remaining_steps, draw)
    if step_s is None and remaining_steps:
        return None
    if step_s is None or not remaining_steps:
        step_s = np.zeros(DRAWS)
    done = max(float(np.sum(log.steps.count)), 1.0)
    seconds = remaining_steps * step_s + _pauses(use, remaining_steps / done, draw)
    spent_s = _spent_s(log, use)
    stops_s, mean_stops = _stops(log, use, remaining_steps, draw)
    calm_s, mid_s = middle(seconds), None
    seconds = seconds + stops_s
    if goodput_ratio is not None and remaining_steps and _is_quiet(log, use, spent_s, gpus):
        mid_s = max(calm_s, middle(remaining_steps * step_s) / goodput_ratio.mid)  # computed like the plan's own end
        seconds = np.maximum(seconds, remaining_steps * step_s / _goodput(goodput_ratio, draw))
        mean_stops = mid_s / _between_stops_s(gpus)
    days = _ranged(seconds / DAY_S, mid_s, 1.0 / DAY_S)
    price = None if usd_per_gpu_h is None else _spread(usd_per_gpu_h, draw)
    power_mw = None if mw_per_gpu is None else _spread(mw_per_gpu, draw)
    hours = None if gpus is None else seconds / HOUR_S * gpus
    spent_hours = None if gpus is None or spent_s is None else spent_s / HOUR_S * gpus
    final = log.final_s if use.wall_s is not None else None
    return Forecast(
        remaining_steps=remaining_steps,
        remaining_tokens=None if tokens_per_step is None else remaining_steps * tokens_per_step,
        days=days,
        end_s=None if final is None else _ranged(final + seconds, mid_s, 1.0, final),
        gpu_hours=None if hours is None or gpus is None else _ranged(hours, mid_s, gpus / HOUR_S),
        cost_usd=_times(hours, price, usd_per_gpu_h, mid_s, gpus),
        spent_days=None if spent_s is None else spent_s / DAY_S,
        spent_usd=None if spent_hours is None or price is None else Estimate.of_draws(spent_hours * price),
        energy_mwh=_times(hours, power_mw, mw_per_gpu, mid_s, gpus),
        spent_energy_mwh=None if spent_hours is None or power_mw is None or mw_per_gpu is None
        else Estimate.of_draws(spent_hours * power_mw, mid=spent_hours * mw_per_gpu.mid),
        stops_expected=mean_stops,
        stops_from="log" if mid_s is None else "plan",
        days_without_stops=None if mid_s is None else calm_s / DAY_S,
    )  # fmt: skip


def _ranged(draws: Floats, mid_s: float | None, per_s: float, begin: float = 0.0) -> Estimate:
    """Return the range of draws; its middle follows from `mid_s` where that is given.

    Args:
        draws: draws of the quantity, `[draw]`.
        mid_s: middle of the remaining seconds; None: the middle of the draws.
        per_s: quantity per remaining second.
        begin: value at zero remaining seconds.
    """
    return Estimate.of_draws(draws, mid=None if mid_s is None else begin + mid_s * per_s)


def _times(
    hours: Floats | None, drawn: Floats | None, per_gpu_hour: Estimate | None, mid_s: float | None, gpus: int | None
) -> Estimate | None:
    """Return remaining GPU-hours times a quantity per GPU-hour; None where either is unknown.

    Args:
        hours: draws of the remaining GPU-hours, `[draw]`.
        drawn: draws of the quantity per GPU-hour, `[draw]`.
        per_gpu_hour: the quantity itself.
        mid_s: as of `_ranged`.
        gpus: number of all GPUs.
    """
    if hours is None or drawn is None or per_gpu_hour is None or gpus is None:
        return None
    return _ranged(hours * drawn, mid_s, gpus / HOUR_S * per_gpu_hour.mid)


def _seen(log: RunLog, use: TimeUse) -> int:
    """Return the number of stops so far: restarts, and unexplained pauses."""
    other = use.of("other")
    return log.attempts - 1 + (0 if other is None else other.count)


def _between_stops_s(gpus: int | None) -> float:
    """Return the mean time between failures that a plan assumes."""
    rate = interruptions_per_gpu_hour().rate_per_gpu_hour
    assert rate is not None  # this row of the catalogue holds a rate
    return HOUR_S / (rate * (gpus or 1))


def _is_quiet(log: RunLog, use: TimeUse, spent_s: float | None, gpus: int | None) -> bool:
    """Return whether no stop was observed in a time too short to rule out the plan's stops."""
    return _seen(log, use) < 1 and (spent_s or 0.0) < QUIET * _between_stops_s(gpus)


def _goodput(ratio: Estimate, draw: np.random.Generator) -> Floats:
    """Draw a goodput: its logarithm spreads to either side as its range does, and it never exceeds 1."""
    normal = draw.standard_normal(DRAWS)
    up, down = np.log(ratio.high / ratio.mid) / Z90, np.log(ratio.mid / ratio.low) / Z90
    drawn = ratio.mid * np.exp(normal * np.where(normal > 0, up, down))
    return np.asarray(np.minimum(drawn, 1.0), dtype=np.float64)


def _spent_s(log: RunLog, use: TimeUse) -> float | None:
    """Return the time until the end of the log; None where the log has no times.

    The closing line of a run has the time of its last session only. With earlier sessions, the sum of the steps and
    pauses is larger.
    """
    if use.wall_s is not None:
        return use.wall_s
    closing = 0.0 if log.closing is None else log.closing.runtime_s
    return max(closing, sum(spent.seconds for spent in use.spent)) or None


def _step_draws(log: RunLog, durations: Durations, ahead: int, draw: np.random.Generator) -> Floats | None:
    """Draw the mean of the remaining steps, slow ones included."""
    seconds, count = durations.seconds[durations.steady], np.maximum(log.steps.count[durations.steady], 1.0)
    if not len(seconds):
        if log.closing is None or not log.closing.steps >= 1:
            return None
        return np.full(DRAWS, log.closing.runtime_s / log.closing.steps)
    recent = max(len(seconds) // 2, min(FEWEST_RECENT, len(seconds)))
    seconds, count = seconds[-recent:], count[-recent:]
    mean = float(np.average(seconds, weights=count))
    if len(seconds) < 2:
        return np.full(DRAWS, mean)
    blocks = min(int(np.clip(len(seconds) // BLOCK_LINES, FEWEST_BLOCKS, MOST_BLOCKS)), len(seconds))
    cut = np.array_split(np.arange(len(seconds)), blocks)
    of_block = np.array([np.average(seconds[rows], weights=count[rows]) for rows in cut])
    steps_of_block = float(np.sum(count)) / blocks
    variance = float(np.var(of_block, ddof=1)) * steps_of_block  # variance of the mean of n steps, times n
    error = np.sqrt(variance / float(np.sum(count)))
    means = mean + error * draw.standard_t(blocks - 1, DRAWS)
    means += np.sqrt(variance / max(ahead, 1)) * draw.standard_normal(DRAWS)
    return np.asarray(np.maximum(means, float(np.min(seconds)) / 2), dtype=np.float64)


def _pauses(use: TimeUse, ratio: float, draw: np.random.Generator) -> Floats:
    """Draw the time of the remaining checkpoints and evaluations: as frequent per step and as long as so far."""
    total = np.zeros(DRAWS)
    for kind in REGULAR:
        spent = use.of(kind)
        if spent is None:
            continue
        ahead, mean = spent.count * ratio, spent.seconds / spent.count
        sd = max(spent.longest_s - mean, 0.0) / 2  # with few pauses: half of the distance of the longest from the mean
        spread = sd * np.sqrt(ahead + ahead**2 / spent.count)
        total += np.maximum(ahead * mean + spread * draw.standard_normal(DRAWS), 0.0)
    return total


def _stops(log: RunLog, use: TimeUse, ahead: int, draw: np.random.Generator) -> tuple[Floats, float]:
    """Draw the seconds lost in remaining stops, and return their expected number; zero where none was observed.

    Stops occur at a rate per kept step. Their durations are exponential, with a mean that is more certain the more
    stops were observed.
    """
    steps = use.of("steps")
    lost = sum(spent.seconds for kind in IRREGULAR if (spent := use.of(kind)) is not None)
    seen = _seen(log, use)
    if seen < 1 or lost <= 0 or steps is None or steps.count < 1:
        return np.zeros(DRAWS), 0.0
    shape = (seen + 0.5) / CLUSTER
    expected = np.minimum(draw.gamma(shape, CLUSTER / steps.count, DRAWS) * ahead, MOST_STOPS)
    stops = draw.poisson(draw.gamma(np.maximum(expected / (CLUSTER - 1.0), 1e-9), CLUSTER - 1.0))
    mean = lost / draw.gamma(seen + 0.5, 1.0, DRAWS)
    total = np.where(stops > 0, mean * draw.gamma(np.maximum(stops, 1)), 0.0)
    return np.asarray(total, dtype=np.float64), float(np.mean(stops))


def _spread(figure: Estimate, draw: np.random.Generator) -> Floats:
    """Draw a price or a power: its logarithm spreads to either side as its range does."""
    normal = draw.standard_normal(DRAWS)
    up, down = np.log(figure.high / figure.mid) / Z90, np.log(figure.mid / figure.low) / Z90
    return np.asarray(figure.mid * np.exp(normal * np.where(normal > 0, up, down)), dtype=np.float64)

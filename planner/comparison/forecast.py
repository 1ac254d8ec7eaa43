"""The end of a run and its bill from now on, with a range.

The mean step so far is uncertain (its error follows from the means of blocks of lines, which hold what is slow to
change), so is the mean of the steps to come, and so are the stops: their number is negative binomial with a rate that
the stops so far leave open (Jeffreys' prior), and their lengths are exponential with a mean that they leave open, too.
Where none was seen in a log that is too short to show one, the goodput of the plan stands for them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.comparison.lost import TimeUse
from planner.comparison.pace import Durations
from planner.evidence import Z90, Estimate, middle
from planner.hardware.failures import interruptions_per_gpu_hour
from planner.lazy import dataclass
from planner.runlog.log import RunLog
from planner.units import DAY_S, HOUR_S

Floats = npt.NDArray[np.float64]

DRAWS = 4000
FEWEST_RECENT = 40
"""Lines that a forecast looks back at least, where there are as many; of more, the later half."""
FEWEST_BLOCKS, MOST_BLOCKS, BLOCK_LINES = 5, 20, 25
"""Blocks of lines whose means tell the error of the mean: long, since what slows one line often slows the next."""
REGULAR, IRREGULAR = ("checkpoint", "evaluation"), ("stops", "replayed", "other")
"""Kinds of time outside steps that come by a schedule, and by chance."""
CLUSTER = 1.5
"""Variance of the number of stops over its mean: a bad node fails again, and steps done again stop again. Assumed: with
1 (Poisson) the 90 % range held 82 % of simulated ends whose replayed steps can stop again, with this 86 to 90 %."""
QUIET = 3.0
"""Mean times between stops that a log without one must last before the plan's stops are not believed: with so many, one
run in twenty has none (exp(-3))."""
MOST_STOPS = 1e6
"""To come: a run with more does not come to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is left of a run, from the end of its log on."""

    remaining_steps: int
    remaining_tokens: float | None
    days: Estimate
    end_s: Estimate | None
    """Seconds since 1970 (local where the log's times have no zone); None where the log has no times."""
    gpu_hours: Estimate | None
    cost_usd: Estimate | None
    """From now on; None where GPUs or price are unknown."""
    spent_days: float | None
    """Until the end of the log: wall time, or of a log without times the sum of its steps; None without either."""
    spent_usd: Estimate | None
    stops_expected: float
    """Mean number of stops to come."""
    stops_from: str = "log"
    """`plan` where the log is too short to have seen one: the plan's goodput stands for them, checkpoints included."""
    days_without_stops: float | None = None
    """At mid, where the stops are the plan's."""


def forecast(
    log: RunLog, durations: Durations, use: TimeUse, *, remaining_steps: int, tokens_per_step: float | None,
    gpus: int | None, usd_per_gpu_h: Estimate | None, goodput_ratio: Estimate | None = None, seed: int = 0,
) -> Forecast | None:  # fmt: skip
    """The rest of a run; None where the log has no time of a step, unless nothing is left.

    Args:
        log: the run so far.
        durations: of its lines.
        use: its wall time.
        remaining_steps: from `log.reached` on.
        tokens_per_step: of all GPUs; None where unknown.
        gpus: all of them; None where unknown.
        usd_per_gpu_h: price; None where unknown.
        goodput_ratio: of the plan; None without one, or of another number of GPUs.
        seed: of the draws.
    """
    draw = np.random.default_rng(seed)
    step_s = _step_draws(log, durations, remaining_steps, draw)
    if step_s is None and remaining_steps:
        return None
    if step_s is None or not remaining_steps:
        step_s = np.zeros(DRAWS)
    done = max(float(np.sum(log.steps.count)), 1.0)
    seconds = remaining_steps * step_s + _pauses(use, remaining_steps / done, draw)
    sure = _spent_s(log, use)
    stops_s, mean_stops = _stops(log, use, remaining_steps, draw)
    calm_s, mid_s = middle(seconds), None
    seconds = seconds + stops_s
    if goodput_ratio is not None and remaining_steps and _is_quiet(log, use, sure, gpus):
        mid_s = max(calm_s, middle(remaining_steps * step_s) / goodput_ratio.mid)  # as the plan's own end has it
        seconds = np.maximum(seconds, remaining_steps * step_s / _goodput(goodput_ratio, draw))
        mean_stops = mid_s / _between_stops_s(gpus)
    days = _ranged(seconds / DAY_S, mid_s, 1.0 / DAY_S)
    price = None if usd_per_gpu_h is None else _price(usd_per_gpu_h, draw)
    hours = None if gpus is None else seconds / HOUR_S * gpus
    spent_hours = None if gpus is None or sure is None else sure / HOUR_S * gpus
    final = log.final_s if use.wall_s is not None else None
    return Forecast(
        remaining_steps=remaining_steps,
        remaining_tokens=None if tokens_per_step is None else remaining_steps * tokens_per_step,
        days=days,
        end_s=None if final is None else _ranged(final + seconds, mid_s, 1.0, final),
        gpu_hours=None if hours is None or gpus is None else _ranged(hours, mid_s, gpus / HOUR_S),
        cost_usd=None if hours is None or gpus is None or price is None or usd_per_gpu_h is None
        else _ranged(hours * price, mid_s, gpus / HOUR_S * usd_per_gpu_h.mid),
        spent_days=None if sure is None else sure / DAY_S,
        spent_usd=None if spent_hours is None or price is None else Estimate.of_draws(spent_hours * price),
        stops_expected=mean_stops,
        stops_from="log" if mid_s is None else "plan",
        days_without_stops=None if mid_s is None else calm_s / DAY_S,
    )  # fmt: skip


def _ranged(draws: Floats, mid_s: float | None, per_s: float, begin: float = 0.0) -> Estimate:
    """The range of draws; where the seconds to come have a middle of their own, it is that of what follows from it."""
    return Estimate.of_draws(draws, mid=None if mid_s is None else begin + mid_s * per_s)


def _seen(log: RunLog, use: TimeUse) -> int:
    """Stops so far: restarts, and pauses that nothing explains."""
    other = use.of("other")
    return log.attempts - 1 + (0 if other is None else other.count)


def _between_stops_s(gpus: int | None) -> float:
    """Mean time between the failures that a plan assumes."""
    rate = interruptions_per_gpu_hour().rate_per_gpu_hour
    assert rate is not None  # the row is one of a rate
    return HOUR_S / (rate * (gpus or 1))


def _is_quiet(log: RunLog, use: TimeUse, spent_s: float | None, gpus: int | None) -> bool:
    """Whether no stop was seen, in a time too short for that to mean anything."""
    return _seen(log, use) < 1 and (spent_s or 0.0) < QUIET * _between_stops_s(gpus)


def _goodput(ratio: Estimate, draw: np.random.Generator) -> Floats:
    """Draws of a goodput: its logarithm spreads to either side as its range does, and never over 1."""
    normal = draw.standard_normal(DRAWS)
    up, down = np.log(ratio.high / ratio.mid) / Z90, np.log(ratio.mid / ratio.low) / Z90
    drawn = ratio.mid * np.exp(normal * np.where(normal > 0, up, down))
    return np.asarray(np.minimum(drawn, 1.0), dtype=np.float64)


def _spent_s(log: RunLog, use: TimeUse) -> float | None:
    """Time until the end of the log; None where it tells none.

    The closing line of a run has the time of its last session; what the steps and pauses sum up to is more where there
    were others.
    """
    if use.wall_s is not None:
        return use.wall_s
    closing = 0.0 if log.closing is None else log.closing.runtime_s
    return max(closing, sum(spent.seconds for spent in use.spent)) or None


def _step_draws(log: RunLog, durations: Durations, ahead: int, draw: np.random.Generator) -> Floats | None:
    """Draws of the mean of the steps to come, slow ones among them."""
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
    variance = float(np.var(of_block, ddof=1)) * steps_of_block  # of the mean of n steps, times n
    error = np.sqrt(variance / float(np.sum(count)))
    means = mean + error * draw.standard_t(blocks - 1, DRAWS)
    means += np.sqrt(variance / max(ahead, 1)) * draw.standard_normal(DRAWS)
    return np.asarray(np.maximum(means, float(np.min(seconds)) / 2), dtype=np.float64)


def _pauses(use: TimeUse, ratio: float, draw: np.random.Generator) -> Floats:
    """Checkpoints and evaluations to come: as often a step as so far, each as long as so far."""
    total = np.zeros(DRAWS)
    for kind in REGULAR:
        spent = use.of(kind)
        if spent is None:
            continue
        ahead, mean = spent.count * ratio, spent.seconds / spent.count
        sd = max(spent.longest_s - mean, 0.0) / 2  # of a few, half of what the longest is beyond the mean
        spread = sd * np.sqrt(ahead + ahead**2 / spent.count)
        total += np.maximum(ahead * mean + spread * draw.standard_normal(DRAWS), 0.0)
    return total


def _stops(log: RunLog, use: TimeUse, ahead: int, draw: np.random.Generator) -> tuple[Floats, float]:
    """Seconds lost in stops to come, and how many are expected: none where none was seen.

    Stops come by the step that counts; lengths spread like an exponential, whose mean is as sure as the stops are many.
    """
    steps = use.of("steps")
    lost = sum(spent.seconds for kind in IRREGULAR if (spent := use.of(kind)) is not None)
    seen = _seen(log, use)
    if seen < 1 or lost <= 0 or steps is None or steps.count < 1:
        return np.zeros(DRAWS), 0.0
    sure = (seen + 0.5) / CLUSTER
    expected = np.minimum(draw.gamma(sure, CLUSTER / steps.count, DRAWS) * ahead, MOST_STOPS)
    number = draw.poisson(draw.gamma(np.maximum(expected / (CLUSTER - 1.0), 1e-9), CLUSTER - 1.0))
    mean = lost / draw.gamma(seen + 0.5, 1.0, DRAWS)
    total = np.where(number > 0, mean * draw.gamma(np.maximum(number, 1)), 0.0)
    return np.asarray(total, dtype=np.float64), float(np.mean(number))


def _price(price: Estimate, draw: np.random.Generator) -> Floats:
    """Draws of a price: its logarithm spreads to either side as its range does."""
    normal = draw.standard_normal(DRAWS)
    up, down = np.log(price.high / price.mid) / Z90, np.log(price.mid / price.low) / Z90
    return np.asarray(price.mid * np.exp(normal * np.where(normal > 0, up, down)), dtype=np.float64)

"""Read back a run (`compare`): its pace, its MFU in each convention, its lost time, its end and its bill."""

from __future__ import annotations

import numpy as np

from planner.comparison.basis import Basis, Given, settle
from planner.comparison.bill import OnceCost, once_costs, unit_price
from planner.comparison.conventions import (
    Revealed,
    Utilisation,
    reveal_mfu,
    reveal_tflops,
    tokens_per_s_per_gpu,
    utilisations,
)
from planner.comparison.energy import mean_power_mw_per_gpu
from planner.comparison.forecast import Forecast, forecast
from planner.comparison.gap import Gap, gap_of, parts_of
from planner.comparison.pace import Durations, Pace, durations_of, pace_of
from planner.comparison.planned import Planned
from planner.comparison.printed_rate import PrintedRate, check_printed_rate, printed_rates
from planner.comparison.row import CalibrationRow, calibration_row
from planner.comparison.time_use import TimeUse, time_use
from planner.evidence import Estimate
from planner.lazy import dataclass
from planner.runlog.log import RunLog
from planner.units import DAY_S, HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Findings from the log of a run, and from its plan where there is one."""

    log: RunLog
    planned: Planned | None
    basis: Basis
    pace: Pace | None
    """None where the log has no time."""
    tokens_per_s_per_gpu: float | None
    printed_rate: PrintedRate | None
    """Result of checking the printed tokens per second; None where none are printed."""
    utilisations: tuple[Utilisation, ...]
    revealed: tuple[Revealed, ...]
    """Conventions of the figures that the log prints: TFLOP/s, MFU."""
    use: TimeUse
    parts: dict[str, float]
    """Seconds of a step by part, where the log has timers."""
    gap: Gap | None
    last_step: int | None
    last_step_from: str
    """Source of the last step: `log`, `plan`, or empty."""
    forecast: Forecast | None
    usd_per_gpu_h: Estimate | None
    """Costs that grow with the hours of the run."""
    costs_once: tuple[OnceCost, ...]
    """The plan's other costs, which are neither in the forecast nor in what has been spent so far."""
    row: CalibrationRow

    @property
    def remaining_steps(self) -> int | None:
        """Steps left; None where the length of the run is unknown."""
        return None if self.last_step is None else max(self.last_step - self.log.reached, 0)


def compare(log: RunLog, planned: Planned | None, given: Given, seed: int = 0) -> Comparison:
    """Read back a run.

    Args:
        log: the run.
        planned: its plan; None without one.
        given: the user's own values.
        seed: seed of the forecast's draws.
    """
    durations = durations_of(log)
    basis, printed_rate = check_printed_rate(log, settle(log, planned, given), planned, durations)
    pace = pace_of(log, durations)
    use = time_use(log, durations, pace)
    step_s = None if pace is None else pace.step_s.mid
    parts = parts_of(log, pace, _data_s(log, durations))
    steps = use.of("steps")
    last, source = _length(log, planned, basis)
    price = unit_price(planned, given)
    rates = printed_rates(log, basis, durations, printed_rate)
    revealed = (
        reveal_tflops(basis, log.steps.tflops_per_gpu, rates),
        reveal_mfu(basis, log.steps.mfu_ratio, log.steps.tflops_per_gpu, rates),
    )
    rate = tokens_per_s_per_gpu(basis, step_s)
    printed_wins = printed_rate is not None and printed_rate.verdict == "differs" and not _flagged(basis)
    if (rate is None or printed_wins) and np.any(~np.isnan(rates[durations.steady])):
        rate = float(np.nanmedian(rates[durations.steady]))
    ahead = None
    if last is not None:
        ahead = forecast(
            log, durations, use, remaining_steps=max(last - log.reached, 0), tokens_per_step=basis.tokens_per_step,
            gpus=basis.gpus, usd_per_gpu_h=price, goodput_ratio=_goodput(planned, basis),
            mw_per_gpu=mean_power_mw_per_gpu(planned, basis), seed=seed,
        )  # fmt: skip
    return Comparison(
        log=log,
        planned=planned,
        basis=basis,
        pace=pace,
        tokens_per_s_per_gpu=rate,
        printed_rate=printed_rate,
        utilisations=utilisations(basis, rate),
        revealed=tuple(figure for figure in revealed if figure is not None),
        use=use,
        parts=parts,
        gap=None if planned is None or pace is None
        else gap_of(planned, basis, pace, use, parts, 0.0 if steps is None else float(steps.count),
                    tokens_per_gpu=rate * pace.step_s.mid if printed_wins and rate is not None else None),
        last_step=last,
        last_step_from=source,
        forecast=ahead,
        usd_per_gpu_h=price,
        costs_once=once_costs(planned, given, _gpu_hours(ahead, basis)),
        row=calibration_row(log, basis, planned, pace, rate)
        if printed_rate is None or printed_rate.settled or _flagged(basis)
        else CalibrationRow(lines=(), missing=()),
    )  # fmt: skip


def _length(log: RunLog, planned: Planned | None, basis: Basis) -> tuple[int | None, str]:
    """Return the steps of the whole run and their source; a plan's tokens are converted to steps of the log's batch."""
    if log.ended and log.reached:  # may be before the last step, if told to stop early
        return log.reached, "log"
    if log.last_step is not None:
        return log.last_step, "log"
    if planned is None or not log.reached:
        return None, ""
    return planned.steps_of(basis.tokens_per_step or planned.recipe.tokens_per_step), "plan"


def _goodput(planned: Planned | None, basis: Basis) -> Estimate | None:
    """Return the plan's share of time in training; None where the plan has none, or the run has other GPUs."""
    ratio = None if planned is None or {"gpu", "gpus"} & set(basis.differs) else planned.plan.get("goodput_ratio")
    return None if not ratio or not ratio["low"] > 0 else Estimate(**{e: ratio[e] for e in ("low", "mid", "high")})


def _flagged(basis: Basis) -> bool:
    """Return whether the user gave both GPUs and batch."""
    return basis.sources.get("gpus") == basis.sources.get("global_batch") == "flag"


def _gpu_hours(ahead: Forecast | None, basis: Basis) -> float | None:
    """Return the GPU-hours of the whole run at mid; None where GPUs or times are unknown."""
    if ahead is None or ahead.gpu_hours is None or ahead.spent_days is None or basis.gpus is None:
        return None
    return ahead.gpu_hours.mid + ahead.spent_days * DAY_S / HOUR_S * basis.gpus


def _data_s(log: RunLog, durations: Durations) -> float | None:
    """Return the mean seconds per step spent waiting for data; None where the log does not tell."""
    known = durations.steady & ~np.isnan(log.steps.data_s)
    return float(np.mean(log.steps.data_s[known])) if np.any(known) else None

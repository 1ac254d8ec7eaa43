"""A run read back: its pace, its MFU in each convention, where it lost time, its end and its bill (`compare`)."""

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
from planner.comparison.forecast import Forecast, forecast
from planner.comparison.gap import Gap, gap_of, parts_of
from planner.comparison.lost import TimeUse, time_use
from planner.comparison.pace import Durations, Pace, durations_of, pace_of
from planner.comparison.planned import Planned
from planner.comparison.printed_rate import PrintedRate, hold, printed_rates
from planner.comparison.row import CalibrationRow, calibration_row
from planner.evidence import Estimate
from planner.lazy import dataclass
from planner.runlog.log import RunLog
from planner.units import DAY_S, HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What a log says of its run, beside the plan where there is one."""

    log: RunLog
    planned: Planned | None
    basis: Basis
    pace: Pace | None
    """None where the log has no time."""
    tokens_per_s_per_gpu: float | None
    printed_rate: PrintedRate | None
    """What the printed tokens per second tell of GPUs and batch; None where none are printed."""
    utilisations: tuple[Utilisation, ...]
    revealed: tuple[Revealed, ...]
    """Of the figures that the log prints: TFLOP/s, MFU."""
    use: TimeUse
    parts: dict[str, float]
    """Seconds of a step by part, where the log tells them."""
    gap: Gap | None
    last_step: int | None
    last_step_from: str
    """`log`, `plan`, or empty."""
    forecast: Forecast | None
    usd_per_gpu_h: Estimate | None
    """What grows with the hours of the run."""
    costs_once: tuple[OnceCost, ...]
    """The plan's other costs, neither in the forecast nor in what is spent so far."""
    row: CalibrationRow

    @property
    def remaining_steps(self) -> int | None:
        """None where the length of the run is unknown."""
        return None if self.last_step is None else max(self.last_step - self.log.reached, 0)


def compare(log: RunLog, planned: Planned | None, given: Given, seed: int = 0) -> Comparison:
    """Read a run back.

    Args:
        log: the run.
        planned: its plan; None without one.
        given: what the user says beside them.
        seed: of the draws of the forecast.
    """
    durations = durations_of(log)
    basis, held = hold(log, settle(log, planned, given), planned, durations)
    pace = pace_of(log, durations)
    use = time_use(log, durations, pace)
    step_s = None if pace is None else pace.step_s.mid
    parts = parts_of(log, pace, _data_s(log, durations))
    steps = use.of("steps")
    last, source = _length(log, planned, basis)
    price = unit_price(planned, given)
    rates = printed_rates(log, basis, durations, held)
    revealed = (
        reveal_tflops(basis, log.steps.tflops_per_gpu, rates),
        reveal_mfu(basis, log.steps.mfu_ratio, log.steps.tflops_per_gpu, rates),
    )
    rate = tokens_per_s_per_gpu(basis, step_s)
    printed_wins = held is not None and held.verdict == "differs" and not _flagged(basis)
    if (rate is None or printed_wins) and np.any(~np.isnan(rates[durations.steady])):
        rate = float(np.nanmedian(rates[durations.steady]))
    ahead = None
    if last is not None:
        ahead = forecast(
            log, durations, use, remaining_steps=max(last - log.reached, 0), tokens_per_step=basis.tokens_per_step,
            gpus=basis.gpus, usd_per_gpu_h=price, goodput_ratio=_goodput(planned, basis), seed=seed,
        )  # fmt: skip
    return Comparison(
        log=log,
        planned=planned,
        basis=basis,
        pace=pace,
        tokens_per_s_per_gpu=rate,
        printed_rate=held,
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
        row=calibration_row(log, basis, planned, pace, rate) if held is None or held.settled or _flagged(basis)
        else CalibrationRow(lines=(), missing=()),
    )  # fmt: skip


def _length(log: RunLog, planned: Planned | None, basis: Basis) -> tuple[int | None, str]:
    """Steps of the whole run and who says so; a plan's tokens are so many steps of the log's batch."""
    if log.ended and log.reached:  # before its last step, where it was told to stop early
        return log.reached, "log"
    if log.last_step is not None:
        return log.last_step, "log"
    if planned is None or not log.reached:
        return None, ""
    return planned.steps_of(basis.tokens_per_step or planned.recipe.tokens_per_step), "plan"


def _goodput(planned: Planned | None, basis: Basis) -> Estimate | None:
    """The plan's share of the time that is training; None where it has none, or the run has other GPUs."""
    ratio = None if planned is None or {"gpu", "gpus"} & set(basis.differs) else planned.plan.get("goodput_ratio")
    return None if not ratio or not ratio["low"] > 0 else Estimate(**{e: ratio[e] for e in ("low", "mid", "high")})


def _flagged(basis: Basis) -> bool:
    """Whether the user says GPUs and batch."""
    return basis.sources.get("gpus") == basis.sources.get("global_batch") == "flag"


def _gpu_hours(ahead: Forecast | None, basis: Basis) -> float | None:
    """Of the whole run, at mid; None where GPUs or times are unknown."""
    if ahead is None or ahead.gpu_hours is None or ahead.spent_days is None or basis.gpus is None:
        return None
    return ahead.gpu_hours.mid + ahead.spent_days * DAY_S / HOUR_S * basis.gpus


def _data_s(log: RunLog, durations: Durations) -> float | None:
    """Mean seconds of a step that waited for data; None where the log does not say."""
    known = durations.steady & ~np.isnan(log.steps.data_s)
    return float(np.mean(log.steps.data_s[known])) if np.any(known) else None

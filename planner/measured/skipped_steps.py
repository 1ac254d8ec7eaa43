"""From the steps that loss scaling skipped in real training to the term of the goodput that rests on them.

How many a settled scale skips is arithmetic for most runs: a few hundred steps hold no growth of a scale that doubles
every thousand. So what was measured counts where it is clearly more than that arithmetic, and where no step was taken
at all there is no goodput to speak of: the precision does not train.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import exp, hypot, sqrt
from typing import TYPE_CHECKING

from planner.evidence import Z90, Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.rates.terms import Term
from planner.training.loss_scalers import LossScaler, load_loss_scalers, loss_scaler_of
from planner.training.precision import PrecisionPolicy

if TYPE_CHECKING:  # an answer without such training starts without the records
    from planner.measured.training import PrecisionFinding

TERM = "useful_step_ratio"
"""The term that skipped steps set: 1 less their share."""
MEASURED, ARITHMETIC = "measured", "arithmetic"
CLEAR = 0.01
"""Probability, were the arithmetic true, of so many skipped steps, below which they are clearly more."""
CLEAR_SD, MOST_EXACT = 2.326, 100
"""The same in standard deviations, which does above so many expected skips."""
MOST_SKIPPED_RATIO = 0.5
"""Share of settled steps above which a run is no training any more: every second step undoes nothing but time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipping:
    """What the loss scale of a plan skips, and how that is known."""

    finding: PrecisionFinding
    """Of the training that showed it, or did not contradict the arithmetic."""
    basis: str
    """`measured` or `arithmetic`."""
    ratio: float | None
    """Share of the steps that are skipped and made again, 0..1; None where the precision does not train."""
    scaler: LossScaler
    """Of the plan's software stack."""

    @property
    def trains(self) -> bool:
        """Whether steps were taken at all."""
        return self.ratio is not None


def skipped_step_terms(
    findings: Iterable[PrecisionFinding], policy: PrecisionPolicy, stack: str, base: Mapping[str, Term]
) -> dict[str, Term]:
    """The goodput term of a policy that scales its loss; none for the others, and where nothing was tried or it fails.

    Args:
        findings: of records and documents of `mpplan numerics`.
        policy: of a plan.
        stack: of the plan, which says whose loss scaler it is.
        base: the terms without measurements, for labels.
    """
    told = skipping(findings, policy.precision, stack) if policy.loss_scaling else None
    if told is None or told.ratio is None:
        return {}
    useful = 1.0 - told.ratio
    steps = told.finding.settled_steps
    sampled = sqrt(told.ratio * useful / steps) / useful if steps and told.basis == MEASURED else 0.0
    own_sd = hypot(told.ratio / useful / Z90, sampled)  # the share lies between none and twice itself
    return {TERM: replace(base[TERM], value=useful, own_sd=own_sd, rests_on=(), evidence=_evidence(told, told.ratio))}


def skipping(findings: Iterable[PrecisionFinding], precision: str, stack: str) -> Skipping | None:
    """What a plan's loss scale skips in a precision, by the task that skips most; None where none was tried.

    Args:
        findings: of records and documents.
        precision: of the plan.
        stack: of the plan.
    """
    scaler = loss_scaler_of(stack)
    told = [
        _judged(row, scaler)
        for row in findings
        if row.precision == precision and row.figures.instrument == "loss-scaling"
    ]
    return max((row for row in told if row is not None), key=_most, default=None)


def _most(told: Skipping) -> float:
    return 1.0 if told.ratio is None else told.ratio


def _judged(finding: PrecisionFinding, scaler: LossScaler) -> Skipping | None:
    """One task's run under torch's defaults, told for another scaler."""
    figures, tried = finding.figures, load_loss_scalers()["pytorch"]
    steady, settled = figures.steady_skipped_step_ratio, finding.settled_skips
    if figures.skipped_step_ratio is None and steady is None:
        return None
    nothing = Skipping(finding=finding, basis=MEASURED, ratio=None, scaler=scaler)
    if figures.trains is False or (figures.skipped_step_ratio is not None and figures.skipped_step_ratio >= 1.0):
        return nothing
    expected = tried.steady_skipped_step_ratio
    share = 0.0
    if settled is not None and finding.settled_steps:
        share = settled / finding.settled_steps if _clearly_more(settled, finding.settled_steps, expected) else 0.0
    elif steady is not None and steady > 1.01 * expected:  # a record says the measured share where that is the larger
        share = steady
    if share > MOST_SKIPPED_RATIO:
        return nothing
    if share > scaler.steady_skipped_step_ratio:
        return replace(nothing, ratio=share)
    return replace(nothing, basis=ARITHMETIC, ratio=scaler.steady_skipped_step_ratio)


def _clearly_more(skipped: int, steps: int, expected: float) -> bool:
    """Whether so many of the steps would hardly be skipped, were the expected share true (tail of a Poisson count)."""
    mean = expected * steps
    if skipped <= mean or mean > MOST_EXACT:
        return skipped > mean + CLEAR_SD * sqrt(mean)
    term = fewer = exp(-mean)  # of no skip; then of one more each
    for count in range(1, min(skipped, 10 * MOST_EXACT)):
        term *= mean / count
        fewer += term
    return 1.0 - fewer < CLEAR


def _evidence(told: Skipping, ratio: float) -> Evidence:
    """What is assumed by whose defaults, or what was measured, on what, and whether the arithmetic was the device's."""
    finding, scaler = told.finding, told.scaler
    how = "emulated" if finding.figures.emulated else "run for real"
    trained = f"{finding.figures.task} on {finding.device_name}, {how}"
    name = f"numerics:{finding.probe_id.removeprefix('numerics/')}"
    if told.basis == ARITHMETIC:
        return Evidence(
            id=name,
            kind=EvidenceKind.ASSUMED,
            what=f"{ratio:.3%} of the steps skipped in {finding.precision} (0 to {2 * ratio:.3%}): "
            f"{scaler.hysteresis} for each growth of the loss scale, every {scaler.growth_interval_steps:,} steps "
            f"({scaler.name}); {trained}, showed no more",
            source=scaler.source,
            date=scaler.date,
            terms=(TERM,),
        )
    return Evidence(
        id=name,
        kind=EvidenceKind.MEASURED,
        what=f"{ratio:.3%} of the steps skipped for overflows of the loss scale in {finding.precision}, {trained}",
        source=f"mpplan numerics, {finding.source}" if finding.source else "mpplan numerics",
        date=finding.date,
        terms=(TERM,),
    )

"""Goodput term from the steps that loss scaling skipped in real training.

For most runs, the share of steps that a settled loss scale skips is calculated rather than measured: a few hundred
steps contain no growth of a scale that doubles every thousand steps. A measured share therefore counts only if it is
clearly larger than the calculated one. If no step was taken at all, there is no goodput: the precision does not train.
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

if TYPE_CHECKING:  # an answer without training results does not load the records
    from planner.measured.training import PrecisionFinding

TERM = "useful_step_ratio"
"""Term that skipped steps set: 1 minus their share."""
MEASURED, ARITHMETIC = "measured", "arithmetic"
CLEAR = 0.01
"""Skipped steps are clearly more than calculated if so many have less than this probability under the calculation."""
CLEAR_SD, MOST_EXACT = 2.326, 100
"""Threshold of `CLEAR` in standard deviations, which is used above this number of expected skips."""
MOST_SKIPPED_RATIO = 0.5
"""Share of skipped steps, once the scale has settled, above which a run no longer trains: every second is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipping:
    """Share of steps that the loss scale of a plan skips, and its basis."""

    finding: PrecisionFinding
    """Finding of the training that showed the share, or that did not contradict the arithmetic."""
    basis: str
    """`measured` or `arithmetic`."""
    ratio: float | None
    """Share of the steps that are skipped and repeated, 0..1; None if the precision does not train."""
    scaler: LossScaler
    """Loss scaler of the plan's software stack."""

    @property
    def trains(self) -> bool:
        """Whether the precision trains: not if no step was taken, or more than `MOST_SKIPPED_RATIO` were skipped."""
        return self.ratio is not None


def skipped_step_terms(
    findings: Iterable[PrecisionFinding], policy: PrecisionPolicy, stack: str, base: Mapping[str, Term]
) -> dict[str, Term]:
    """Goodput term of a policy with loss scaling; empty without it, without findings, or if training fails.

    Args:
        findings: findings of records and documents of `mpplan numerics`.
        policy: precision policy of a plan.
        stack: software stack of the plan, which determines the loss scaler.
        base: the terms without measurements, for labels.
    """
    skipping = worst_skipping(findings, policy.precision, stack) if policy.loss_scaling else None
    if skipping is None or skipping.ratio is None:
        return {}
    useful = 1.0 - skipping.ratio
    steps = skipping.finding.settled_steps
    sampled = sqrt(skipping.ratio * useful / steps) / useful if steps and skipping.basis == MEASURED else 0.0
    own_sd = hypot(skipping.ratio / useful / Z90, sampled)  # the share ranges from 0 to twice its value
    evidence = _evidence(skipping, skipping.ratio)
    return {TERM: replace(base[TERM], value=useful, own_sd=own_sd, rests_on=(), evidence=evidence)}


def worst_skipping(findings: Iterable[PrecisionFinding], precision: str, stack: str) -> Skipping | None:
    """Steps that a plan's loss scale skips in a precision, by the task that skips most; None if none was tried.

    Args:
        findings: findings of records and documents.
        precision: precision of the plan.
        stack: software stack of the plan.
    """
    scaler = loss_scaler_of(stack)
    judged = [
        _judged(row, scaler)
        for row in findings
        if row.precision == precision and row.figures.instrument == "loss-scaling"
    ]
    return max((row for row in judged if row is not None), key=_skipped_ratio, default=None)


def _skipped_ratio(skipping: Skipping) -> float:
    return 1.0 if skipping.ratio is None else skipping.ratio


def _judged(finding: PrecisionFinding, scaler: LossScaler) -> Skipping | None:
    """Convert one task's run, which used PyTorch's default scaler, to another loss scaler."""
    figures, pytorch_scaler = finding.figures, load_loss_scalers()["pytorch"]
    steady, settled = figures.steady_skipped_step_ratio, finding.settled_skips
    if figures.skipped_step_ratio is None and steady is None:
        return None
    failed = Skipping(finding=finding, basis=MEASURED, ratio=None, scaler=scaler)
    if figures.trains is False or (figures.skipped_step_ratio is not None and figures.skipped_step_ratio >= 1.0):
        return failed
    expected = pytorch_scaler.steady_skipped_step_ratio
    share = 0.0
    if settled is not None and finding.settled_steps:
        share = settled / finding.settled_steps if _clearly_more(settled, finding.settled_steps, expected) else 0.0
    elif steady is not None and steady > 1.01 * expected:  # a record gives the measured share if it is the larger one
        share = steady
    if share > MOST_SKIPPED_RATIO:
        return failed
    if share > scaler.steady_skipped_step_ratio:
        return Skipping(finding=finding, basis=MEASURED, ratio=share, scaler=scaler)
    return Skipping(finding=finding, basis=ARITHMETIC, ratio=scaler.steady_skipped_step_ratio, scaler=scaler)


def _clearly_more(skipped: int, steps: int, expected: float) -> bool:
    """Whether so many skipped steps would be improbable if the expected share were true (tail of a Poisson count)."""
    mean = expected * steps
    if skipped <= mean or mean > MOST_EXACT:
        return skipped > mean + CLEAR_SD * sqrt(mean)
    probability = cumulative = exp(-mean)  # probability of no skip; the loop adds one skip at a time
    for count in range(1, min(skipped, 10 * MOST_EXACT)):
        probability *= mean / count
        cumulative += probability
    return 1.0 - cumulative < CLEAR


def _evidence(skipping: Skipping, ratio: float) -> Evidence:
    """Evidence of the share: the assumed scaler's defaults, or the measurement, its device, and if it was emulated."""
    finding, scaler = skipping.finding, skipping.scaler
    how = "emulated" if finding.figures.emulated else "run for real"
    trained = f"{finding.figures.task} on {finding.device_name}, {how}"
    name = f"numerics:{finding.probe_id.removeprefix('numerics/')}"
    if skipping.basis == ARITHMETIC:
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

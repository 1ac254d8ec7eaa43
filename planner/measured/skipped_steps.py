"""From the steps that loss scaling skipped in real training to the term of the goodput that rests on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.evidence import Evidence, EvidenceKind
from planner.measured.training import PrecisionFinding
from planner.rates.terms import Term
from planner.training.precision import PrecisionPolicy

TERM = "useful_step_ratio"
"""The term that skipped steps set: 1 less their share."""


def skipped_step_terms(
    findings: Iterable[PrecisionFinding], policy: PrecisionPolicy, base: Mapping[str, Term]
) -> dict[str, Term]:
    """The goodput term of a policy that scales its loss; none for the others, and where nothing was measured.

    Args:
        findings: of records and documents of `mpplan numerics`.
        policy: of a plan.
        base: the terms without measurements, for labels.
    """
    finding = skipping(findings, policy.precision) if policy.loss_scaling else None
    ratio = None if finding is None else finding.figures.steady_skipped_step_ratio
    if finding is None or ratio is None or not 0.0 <= ratio < 1.0:
        return {}
    evidence = _evidence(finding, ratio)
    return {TERM: replace(base[TERM], value=1.0 - ratio, own_sd=0.0, rests_on=(), evidence=evidence)}


def skipping(findings: Iterable[PrecisionFinding], precision: str) -> PrecisionFinding | None:
    """The finding of the most steps that a settled loss scale skips in a precision; None where none was measured."""
    scaled = [
        row for row in findings if row.precision == precision and row.figures.steady_skipped_step_ratio is not None
    ]
    return max(scaled, key=lambda row: row.figures.steady_skipped_step_ratio or 0.0, default=None)


def _evidence(finding: PrecisionFinding, ratio: float) -> Evidence:
    """What was measured, on what, and whether the arithmetic was the device's own."""
    how = "emulated" if finding.figures.emulated else "run for real"
    return Evidence(
        id=f"numerics:{finding.probe_id.removeprefix('numerics/')}",
        kind=EvidenceKind.MEASURED,
        what=f"{ratio:.3%} of the steps skipped for overflows of the loss scale in {finding.precision}, "
        f"{finding.figures.task} on {finding.device_name}, {how}",
        source=f"mpplan numerics, {finding.source}" if finding.source else "mpplan numerics",
        date=finding.date,
        terms=(TERM,),
    )

"""What a calibration says of each of the user's runs and of each parameter: before, after, and contradictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.calibration.hierarchy import in_coordinate
from planner.calibration.linear import Observation
from planner.calibration.shifts import is_share
from planner.evidence import EvidenceKind
from planner.lazy import dataclass
from planner.rates.parameters import Parameter, Parameters
from planner.rates.terms import Floats
from planner.validation.runs import unlabelled

CONFLICT_SD = 3.0
"""Standard deviations from what the other rows say at which a row contradicts them."""
SAME_RATIO = 1.10
"""Two rows of one configuration that lie further apart contradict each other: repeated runs differ by a few percent."""
LEAST_SHIFT = 0.25
"""Standard deviations by which a parameter must move, or share by which its range must shrink, to be told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRow:
    """One of the user's rows, before and after learning."""

    id: str
    metric: str
    error_before: float
    """`mid / measured - 1` without any of the rows."""
    error_after: float
    """The same with all of them."""
    error_left_out: float
    """The same with all of them but this one (and its repeats)."""
    conflicts_with: tuple[str, ...]
    """Rows of the same configuration whose values differ; the row's own id where it is far from what all others say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedTerm:
    """A parameter before and after learning; of parameters that move together, the one that changed most."""

    term: str
    """Id of the row of parameters."""
    name: str
    """Of the term that the equations read."""
    label: str
    unit: str
    before: tuple[float, float, float]
    """Low, mid and high."""
    after: tuple[float, float, float]
    told_as: str
    """How its change is worded (`Family.told_as`)."""
    bounded: bool
    """Whether the runs asked for more than three standard deviations, and it was kept at three."""

    @property
    def ratio(self) -> float:
        """Middle after over middle before."""
        return self.after[1] / self.before[1]


def as_learned(row: Parameter, before: Parameter, source: str) -> Parameter:
    """A row whose value or range was learned from the user's runs.

    Args:
        row: with its new value and range.
        before: as shipped.
        source: what to name as its evidence.
    """
    return replace(
        row, source=f"{source}; before: {before.origin}", kind=EvidenceKind.MEASURED, prior=None, fitted_rows=None
    )


def own_rows(
    observations: Sequence[Observation], before: Floats, after: Floats, left_out: Floats, apart: Floats
) -> tuple[OwnRow, ...]:
    """Each row before and after.

    Args:
        observations: the rows.
        before: logarithm of prediction over measurement without any of them, `[row]`.
        after: the same with all of them.
        left_out: the same with all but the row and its repeats.
        apart: how far each left-out row is from what all have in common, over the spread of a single row, `[row]`.
    """
    same = defaultdict(list)
    for observation in observations:
        same[unlabelled(observation.run)].append(observation)
    rows = []
    for number, o in enumerate(observations):
        others = tuple(
            other.run.id
            for other in same[unlabelled(o.run)]
            if max(o.value / other.value, other.value / o.value) > SAME_RATIO
        )
        far = len(observations) > 2 and abs(apart[number]) > CONFLICT_SD * np.sqrt(2.0)
        rows.append(
            OwnRow(
                id=o.run.id, metric=o.run.metric, error_before=float(np.expm1(before[number])),
                error_after=float(np.expm1(after[number])), error_left_out=float(np.expm1(left_out[number])),
                conflicts_with=others or ((o.run.id,) if far else ()),
            )
        )  # fmt: skip
    return tuple(rows)


def restated(rows: Sequence[OwnRow], before: Floats, after: Floats) -> tuple[OwnRow, ...]:
    """The same rows with errors of other predictions; what leaving a row out changes stays, as a ratio.

    Args:
        rows: as learned.
        before: logarithm of prediction over measurement without any of them, `[row]`.
        after: the same with all of them.
    """
    return tuple(
        replace(
            row,
            error_before=float(np.expm1(old)),
            error_after=float(np.expm1(new)),
            error_left_out=float(np.exp(new) * (1.0 + row.error_left_out) / (1.0 + row.error_after) - 1.0),
        )
        for row, old, new in zip(rows, before, after, strict=True)
    )


def learned_terms(prior: Parameters, after: Parameters, bounded: np.ndarray) -> tuple[LearnedTerm, ...]:
    """One entry for each family that changed: of its rows, the one that changed most in units of its spread.

    Args:
        prior: parameters before, with their joint spread.
        after: the same parameters after.
        bounded: whether each was kept at its limit, `[parameter]`.
    """
    assert prior.joint is not None
    entries: dict[str, tuple[float, LearnedTerm]] = {}
    for number, name in enumerate(prior.joint.ids):
        old, new = prior.rows[name], after.rows[name]
        centre, sd = in_coordinate(old, new.value, share=is_share(prior, name))
        change = max(abs(centre) / sd, 1.0 - new.log_sd / max(old.log_sd, 1e-9))
        if change < LEAST_SHIFT or not new.learned:
            continue
        family = prior.families[old.family]
        entry = LearnedTerm(
            term=name,
            name=(*family.terms, family.name)[0],
            label=family.label,
            unit=old.unit,
            before=(old.low, old.value, old.high),
            after=(new.low, new.value, new.high),
            told_as=family.told_as,
            bounded=bool(bounded[number]),
        )
        if change > entries.get(old.family, (0.0, entry))[0]:
            entries[old.family] = (change, entry)
    ranked = sorted(entries.values(), key=lambda pair: -pair[0])
    return tuple(entry for _, entry in ranked)

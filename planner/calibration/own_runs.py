"""Report what a calibration found for each of the user's runs and each parameter: before, after and contradictions."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.calibration.design import ENERGY, SEPARATE_METRICS, own_repeats, vote_weight
from planner.calibration.hierarchy import in_coordinate
from planner.calibration.linear import Observation
from planner.calibration.shifts import is_share
from planner.evidence import EvidenceKind
from planner.lazy import dataclass
from planner.rates.parameters import Figure, Parameter, Parameters
from planner.rates.terms import Floats
from planner.validation.runs import one_configuration

NAMED = 5
"""Number of rows that a contradiction names; the rest are only counted."""
CONFLICT_SD = 3.0
"""Distance from the prediction of the other rows, in standard deviations, beyond which a row contradicts them."""
SAME_RATIO = 1.10
"""Two rows of one configuration that differ by more than this factor contradict each other: repeated runs differ by
only a few percent."""
ROUNDED = 1e-9
"""Rounding error of the logarithms; two rows that differ by exactly `SAME_RATIO` do not contradict each other."""
LEAST_CHANGE = 0.01
"""Relative change of a value, or of the width of its range, below which the parameter does not count as learned."""
LEAST_SHIFT = 0.25
"""Shift in standard deviations, or relative narrowing of the range, from which a parameter is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRow:
    """One of the user's rows, before and after learning."""

    id: str
    metric: str
    error_before: float
    """`mid / measured - 1` without any of the rows."""
    error_after: float
    """`mid / measured - 1` after learning from all rows."""
    error_left_out: float
    """`mid / measured - 1` after learning from all rows except this one and its repeats."""
    by_others: float
    """Share of the information about this row's prediction that comes from the other rows, 0 to 1."""
    conflicts_with: tuple[str, ...] = ()
    """Rows of the same configuration that disagree with this one, at most the `NAMED` farthest, each with its metric
    where that differs."""
    conflicts: int = 0
    """Number of conflicting rows, including those not named."""
    contradicts_all: bool = False
    """Whether the row is far from the prediction of all other rows."""

    @property
    def learned_share(self) -> float:
        """Share of the row's log error that learning removed: 1 where all of it."""
        before, after = math.log1p(self.error_before), math.log1p(self.error_after)
        return 1.0 - after / before if before else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedTerm:
    """A parameter before and after learning; for parameters that move together, the one that changed most."""

    term: str
    """Id of the row in the parameter table."""
    name: str
    """Name of the term that the equations read."""
    label: str
    unit: str
    before: tuple[float, float, float]
    """Low, mid and high."""
    after: tuple[float, float, float]
    member: str = ""
    """GPU, architecture or models to which it applies; blank where it applies to all of them."""
    told_as: str
    """How its change is worded (`Family.told_as`)."""
    bounded: bool
    """Whether the runs asked for a shift of more than three standard deviations, to which it was limited."""

    @property
    def ratio(self) -> float:
        """Middle after learning over middle before."""
        return self.after[1] / self.before[1]


def as_learned(row: Parameter, before: Parameter, source: str) -> Parameter:
    """Mark a parameter row whose value or range was learned from the user's runs.

    Args:
        row: the row with its new value and range.
        before: the row as shipped.
        source: source to name as its evidence.
    """
    return replace(
        row, source=f"{source}; before: {before.origin}", kind=EvidenceKind.MEASURED, prior=None, fitted_rows=None
    )


def as_learned_if_moved(row: Parameter, before: Parameter, source: str) -> Parameter:
    """Apply `as_learned` if value or width changed by at least `LEAST_CHANGE`; else keep the row's evidence."""
    wider = row.log_sd / before.log_sd if before.log_sd > 0 else 1.0
    hardly = all(abs(ratio - 1.0) < LEAST_CHANGE for ratio in (row.value / before.value, wider))
    return row if hardly else as_learned(row, before, source)


def slower(observations: Sequence[Observation]) -> Floats:
    """Return the sign of each metric, `[row]`: -1 for a step time, where more is slower; 1 for every other metric."""
    return np.array([-1.0 if o.run.metric == "step_time_s" else 1.0 for o in observations])


def own_rows(
    observations: Sequence[Observation],
    before: Floats,
    after: Floats,
    left_out: Floats,
    apart: Floats,
    by_others: Floats,
) -> tuple[OwnRow, ...]:
    """Return each row before and after learning.

    Args:
        observations: the rows.
        before: logarithm of prediction over measurement without any of the rows, `[row]`.
        after: the same logarithm after learning from all of them, `[row]`.
        left_out: the same logarithm after learning from all but the row and its repeats, `[row]`.
        apart: deviation of each left-out row from what all rows share, over the spread of a single row, `[row]`.
        by_others: share of the information about a row's prediction that comes from the other rows, `[row]`.
    """
    conflicts = _conflicts(observations, slower(observations) * before)
    figures = [o.figure for o in observations]
    # Of two rows, neither can be called the outlier.
    judgeable = np.array([figures.count(figure) > 2 for figure in figures])
    far = (np.abs(apart) > CONFLICT_SD * np.sqrt(2.0)) & judgeable
    return tuple(
        OwnRow(
            id=o.run.id, metric=o.run.metric, error_before=float(np.expm1(before[number])),
            error_after=float(np.expm1(after[number])), error_left_out=float(np.expm1(left_out[number])),
            by_others=float(by_others[number]),
            conflicts_with=names, conflicts=count, contradicts_all=bool(far[number]) and not count,
        )
        for number, (o, (names, count)) in enumerate(zip(observations, conflicts, strict=True))
    )  # fmt: skip


def _conflicts(observations: Sequence[Observation], ratio: Floats) -> list[tuple[tuple[str, ...], int]]:
    """Return, for each row, the farthest rows of its configuration that disagree with it, and how many do.

    A throughput, an MFU and a step time of one run are compared by the distance of each from its prediction.

    Args:
        observations: the rows.
        ratio: logarithm of prediction over measurement, `[row]`; inverted for a step time.
    """
    same: dict[object, list[int]] = defaultdict(list)
    for number, o in enumerate(observations):
        same[one_configuration(o.run), o.run.metric if o.run.metric in SEPARATE_METRICS else o.figure].append(number)
    result: list[tuple[tuple[str, ...], int]] = [((), 0)] * len(observations)
    for members in same.values():
        order = sorted(members, key=lambda number: float(ratio[number]))
        values, count = ratio[order], len(order)
        apart = np.log(SAME_RATIO) + ROUNDED
        below = np.searchsorted(values, values - apart, side="left")
        above = np.searchsorted(values, values + apart, side="right")
        for place, number in enumerate(order):
            others = [*order[: min(int(below[place]), NAMED)], *order[max(int(above[place]), count - NAMED) :]]
            others.sort(key=lambda other: -abs(float(ratio[other] - ratio[number])))
            names = tuple(_named(observations[other], observations[number]) for other in sorted(others[:NAMED]))
            result[number] = names, int(below[place]) + count - int(above[place])
    return result


def _named(other: Observation, row: Observation) -> str:
    return other.run.id if other.run.metric == row.run.metric else f"{other.run.id} ({other.run.metric})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Overall result of the rows of one figure against most teams: the geometric mean over configurations."""

    figure: str
    """A `Figure`, or `ENERGY`, which runs teach as part of a whole run."""
    measured_ratio: float
    """Time, memory, power or energy of the runs over the prediction for most teams."""
    learned_ratio: float
    """Prediction with the calibration over the prediction for most teams."""


def totals(observations: Sequence[Observation], before: Floats, after: Floats) -> tuple[Total, ...]:
    """Return the overall result of the rows by figure, with energy apart; the power of whole nodes is left out.

    Args:
        observations: the rows.
        before: logarithm of prediction over measurement without any of the rows, `[row]`.
        after: the same logarithm after learning from all of them, `[row]`.
    """
    weight = vote_weight(own_repeats(observations), len(observations))
    figures = np.array([SEPARATE_METRICS.get(o.run.metric, o.figure) for o in observations])
    rates = (figures == Figure.TIME) & (slower(observations) > 0)
    sign = np.where(rates, 1.0, -1.0)
    return tuple(
        Total(
            figure=figure,
            measured_ratio=float(np.exp(np.average((sign * before)[of_figure], weights=weight[of_figure]))),
            learned_ratio=float(np.exp(np.average((sign * (before - after))[of_figure], weights=weight[of_figure]))),
        )
        for figure, of_figure in ((figure, figures == figure) for figure in (*Figure, ENERGY))
        if of_figure.any()
    )


def count_runs(observations: Sequence[Observation]) -> int:
    """Return the number of runs behind the rows: a speed, a memory and an energy of one configuration are of one run.

    Rows with the same metric of one configuration are of different runs.
    """
    often: Counter[tuple[Hashable, str]] = Counter()
    for o in observations:
        run = replace(o.run, mem_kind="", energy_scope="", pue=None, tokens_total=None)
        often[one_configuration(run), o.run.metric] += 1
    most: dict[Hashable, int] = defaultdict(int)
    for (configuration, _), count in often.items():
        most[configuration] = max(most[configuration], count)
    return sum(most.values())


def restated(rows: Sequence[OwnRow], before: Floats, after: Floats) -> tuple[OwnRow, ...]:
    """Return the rows with the errors of predictions at the middle of the draws.

    These differ from predictions at the middle of each input, and by more the wider the inputs are: by several percent
    for a whole run. The error without a row assumes inputs as wide as the other rows leave them: where there are no
    other rows, as wide as before learning.

    Args:
        rows: the rows as learned, with errors at the middle of each input.
        before: logarithm of prediction over measurement without any of the rows, at the middle of the draws, `[row]`.
        after: the same logarithm after learning from all of them, `[row]`.
    """
    return tuple(
        replace(
            row,
            error_before=float(np.expm1(old)),
            error_after=float(np.expm1(new)),
            error_left_out=float(np.expm1(_left_out(row, old, new))),
        )
        for row, old, new in zip(rows, before, after, strict=True)
    )


def width_ratios(observations: Sequence[Observation], ratio: Floats) -> dict[str, float]:
    """Return the mean over the rows of each figure of the width of the range after over that before.

    Args:
        observations: the rows.
        ratio: width after over width before, each over the middle of its range, `[row]`.
    """
    figures = np.array([o.figure for o in observations])
    return {figure.value: float(np.mean(ratio[figures == figure])) for figure in Figure if (figures == figure).any()}


def _left_out(row: OwnRow, before: float, after: float) -> float:
    """Return the logarithm of the left-out row's prediction over its measurement, at the middle of the draws."""
    apart_before, apart_after = before - math.log1p(row.error_before), after - math.log1p(row.error_after)
    return math.log1p(row.error_left_out) + apart_before + row.by_others * (apart_after - apart_before)


def learned_terms(
    prior: Parameters, after: Parameters, bounded: np.ndarray, members: Mapping[str, str]
) -> tuple[LearnedTerm, ...]:
    """Return one entry for each GPU, architecture and model that differs, and one for each other family that changed.

    The rows of such a family move together; its entry is the row that changed most in units of its spread.

    Args:
        prior: parameters before learning, with their joint spread.
        after: the same parameters after learning.
        bounded: whether each parameter was kept at its limit, `[parameter]`.
        members: name of the GPU, architecture or models to which a row applies, by id of the row.
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
            member=members.get(name, ""),
            before=(old.low, old.value, old.high),
            after=(new.low, new.value, new.high),
            told_as=family.told_as,
            bounded=bool(bounded[number]),
        )
        key = name if name in members else old.family
        if change > entries.get(key, (0.0, entry))[0]:
            entries[key] = (change, entry)
    ranked = sorted(entries.values(), key=lambda pair: -pair[0])
    return tuple(entry for _, entry in ranked)

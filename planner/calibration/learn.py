"""What a team's own runs say: the joint posterior of a lineage that nobody measured, conditioned on its rows.

The prior is the shipped posterior for a new lineage, with a term of its own for each GPU and model of the rows. Rows
are linearised anew at each step (Gauss-Newton), rows far off count less (Student's t), and no parameter is moved
further than three of its spreads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.calibration.crossval import own_scale
from planner.calibration.hierarchy import LEAST_VARIANCE, in_coordinate, robust_weight
from planner.calibration.linear import Figure, Linear, Observation, linearize, residuals
from planner.calibration.shifts import cholesky
from planner.calibration.spreads import BY_GPU, BY_SHAPE, RESIDUALS, spread
from planner.evidence import EvidenceKind
from planner.rates.ladder import shape_key
from planner.rates.parameters import Z90, Joint, Parameter, Parameters, moved
from planner.rates.terms import Floats
from planner.validation.predict import WIDENED, decisive_defaults

ITERATIONS = 3
LIMIT = 3.0
"""Spreads beyond which no parameter is moved."""
INDEPENDENT = 10
"""Series of a figure up to which rows count in full; more of them say less each, since a team's rows resemble."""
CROWD_POWER = 0.6
CONFLICT_SD = 3.0
"""Spreads from what the other rows say at which a row contradicts them."""
SAME_RATIO = 1.10
"""Two rows of one configuration that lie further apart contradict each other: repeated runs differ by a few percent."""
LEAST_SHIFT = 0.25
"""Spreads by which a parameter must move, or its spread shrink, to be told of."""


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
    """Rows of the same configuration that say something else; the row's own id where it contradicts all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedTerm:
    """A parameter, or what a lineage moves together, before and after learning."""

    term: str
    """Id of the row of parameters."""
    name: str
    """Of the term that the equations read."""
    label: str
    unit: str
    before: tuple[float, float, float]
    """Low, mid and high."""
    after: tuple[float, float, float]
    bounded: bool
    """Whether it was kept at three of its spreads."""

    @property
    def family(self) -> str:
        """The part of the id before the first point."""
        return self.term.partition(".")[0]

    @property
    def ratio(self) -> float:
        """Middle after over middle before."""
        return self.after[1] / self.before[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a team's own runs changed."""

    parameters: Parameters
    """With the joint posterior of this team's stack."""
    rows: tuple[OwnRow, ...]
    terms: tuple[LearnedTerm, ...]
    """Those that changed, the largest change in units of its spread first."""
    gpus: tuple[str, ...]
    figures: tuple[Figure, ...]
    width_ratio: dict[str, float] = field(default_factory=dict)
    """Width of the range after over before, the mean of the rows, by figure."""


def learn(observations: Sequence[Observation], shipped: Parameters, source: str) -> Calibration:
    """Condition on rows of one lineage.

    Args:
        observations: the rows; at least one.
        shipped: parameters with the joint posterior of a new lineage.
        source: what to name as evidence of the rows that change, for example `our-stack.json: 3 runs`.
    """
    prior = extended(shipped, observations)
    assert prior.joint is not None
    ids, factor = prior.joint.ids, prior.joint.factor
    slopes_of = [*ids, *(name for name in RESIDUALS)]
    shift: Floats = np.zeros(len(ids))
    whitened: Floats = np.zeros(len(ids))
    first = linear = linearize(observations, prior, slopes_of)
    spreads = np.sqrt(np.diag(prior.joint.covariance))
    own_sd, weight = _own_sd(observations, first, len(ids), prior), _weight(observations)
    for turn in range(ITERATIONS):
        if turn:
            linear = _in_prior_coordinates(
                linearize(observations, moved_by(prior, ids, shift), slopes_of), prior, ids, shift
            )
        slopes = linear.slopes[:, : len(ids)]
        at_prior = linear.residual - slopes @ shift
        share = weight * robust_weight(linear.residual, own_sd) / own_sd**2
        by_factor = slopes @ factor
        precision = np.eye(len(ids)) + (by_factor.T * share) @ by_factor
        whitened = -np.asarray(np.linalg.solve(precision, (by_factor.T * share) @ at_prior), dtype=np.float64)
        shift = np.clip(factor @ whitened, -LIMIT * spreads, LIMIT * spreads)
    bounded = np.abs(factor @ whitened) > LIMIT * spreads * (1.0 + 1e-9)
    after = residuals(observations, moved_by(prior, ids, shift))
    posterior = factor @ np.linalg.inv(precision) @ factor.T
    left_out, leverage = _left_out(observations, after, slopes, posterior, share)
    standardised = left_out / (own_sd / np.sqrt(np.maximum(1.0 - leverage, 1e-6)))
    scales = _scales(observations, standardised, weight)
    calibrated = _scaled(_calibrated(prior, shift, (posterior + posterior.T) / 2.0, source), scales, source)
    predictive = np.sqrt(np.einsum("ij,jk,ik->i", slopes, prior.joint.covariance, slopes) + own_sd**2)
    return Calibration(
        parameters=calibrated,
        rows=_rows(observations, first.residual, after, left_out, own_sd),
        terms=_terms(prior, calibrated, bounded),
        gpus=tuple(sorted({o.prepared.cluster.gpu.id for o in observations})),
        figures=tuple(dict.fromkeys(o.figure for o in observations)),
        width_ratio=_widths(observations, slopes, posterior, own_sd * _of_rows(observations, scales), predictive),
    )


def _scales(observations: Sequence[Observation], standardised: Floats, weight: Floats) -> dict[Figure, float]:
    """By what this team's single rows scatter more or less than those of most teams, for each figure."""
    figures = np.array([o.figure for o in observations])
    return {
        figure: own_scale(standardised[figures == figure], weight[figures == figure])
        for figure in Figure
        if (figures == figure).any()
    }


def _of_rows(observations: Sequence[Observation], scales: Mapping[Figure, float]) -> Floats:
    return np.array([scales[o.figure] for o in observations])


def _scaled(parameters: Parameters, scales: Mapping[Figure, float], source: str) -> Parameters:
    """What is left out of single rows, as wide as this team's rows scatter."""
    rows = (parameters.rows[name] for name, figure in RESIDUALS.items() if figure in scales)
    return parameters.replaced(
        replace(
            row,
            low=float(np.exp(-Z90 * row.log_sd * scales[RESIDUALS[row.id]])),
            high=float(np.exp(Z90 * row.log_sd * scales[RESIDUALS[row.id]])),
            source=f"{source}; before: {row.origin}",
            kind=EvidenceKind.MEASURED,
        )
        for row in rows
    )


def extended(shipped: Parameters, observations: Sequence[Observation]) -> Parameters:
    """The shipped rows with one more for each GPU and model of the observations, independent of the others."""
    assert shipped.joint is not None
    gpus = sorted({o.prepared.cluster.gpu.id for o in observations})
    shapes = sorted({shape_key(o.prepared.recipe.model) for o in observations})
    rows = [
        replace(shipped.rows[name], id=f"{name}.{label}", meaning=f"{shipped.rows[name].meaning}: {label}")
        for names, labels in ((BY_GPU, gpus), (BY_SHAPE, shapes))
        for name in names
        for label in labels
    ]
    size, more = len(shipped.joint.ids), len(rows)
    factor = np.zeros((size + more, size + more))
    factor[:size, :size] = shipped.joint.factor
    factor[range(size, size + more), range(size, size + more)] = [row.log_sd for row in rows]
    joint = Joint(ids=(*shipped.joint.ids, *(row.id for row in rows)), factor=factor)
    return replace(shipped.replaced(rows), joint=joint)


def _share(parameters: Parameters, row: Parameter) -> bool:
    return parameters.families[row.family].bound == "share"


def moved_by(parameters: Parameters, ids: Sequence[str], shift: Floats) -> Parameters:
    """Parameters with rows moved in their logarithms, `[parameter]`, and the same joint spread."""
    rows = [parameters.rows[name] for name in ids]
    return parameters.replaced(
        replace(row, value=float(moved(row.value, float(by), share=_share(parameters, row))))
        for row, by in zip(rows, shift, strict=True)
    )


def _in_prior_coordinates(linear: Linear, prior: Parameters, ids: Sequence[str], shift: Floats) -> Linear:
    """Slopes by the shifts from the prior's values: those of shares bend."""
    stretch = np.ones(linear.slopes.shape[1])
    for number, name in enumerate(ids):
        row = prior.rows[name]
        if _share(prior, row) and row.value < 0.99:
            now = float(moved(row.value, float(shift[number]), share=True))
            stretch[number] = (1.0 - now) / (1.0 - row.value)
    return replace(linear, slopes=linear.slopes * stretch)


def _own_sd(observations: Sequence[Observation], linear: Linear, joint: int, parameters: Parameters) -> Floats:
    """Spread of what the equations leave out of each single row, `[row]`."""
    defaults = np.array([decisive_defaults(o.prepared) for o in observations])
    variance = np.zeros(len(observations))
    for number, name in enumerate(RESIDUALS):
        own = spread(parameters, name) ** 2 * np.ones(len(observations))
        if name in WIDENED:
            own = own + defaults * spread(parameters, WIDENED[name]) ** 2
        variance += linear.slopes[:, joint + number] ** 2 * own
    return np.sqrt(np.maximum(variance, 1e-6))


def _weight(observations: Sequence[Observation]) -> Floats:
    """One over the size of a row's series; less where a figure has very many series, `[row]`."""
    series = [(o.run.series or o.run.id, o.run.metric) for o in observations]
    sizes, figures = Counter(series), Counter(o.figure for o in observations)
    crowd = {figure: (min(1.0, INDEPENDENT / count)) ** (1.0 - CROWD_POWER) for figure, count in figures.items()}
    return np.array([crowd[o.figure] / sizes[name] for o, name in zip(observations, series, strict=True)])


def _left_out(
    observations: Sequence[Observation], residual: Floats, slopes: Floats, posterior: Floats, share: Floats
) -> tuple[Floats, Floats]:
    """Residual of each row had it and its repeats not been learned from, to first order, and its leverage, `[row]`."""
    result, alone = residual.copy(), np.zeros(len(residual))
    groups: dict[tuple[str, str], list[int]] = {}
    for number, observation in enumerate(observations):
        groups.setdefault((observation.run.series or observation.run.id, observation.run.metric), []).append(number)
    for members in groups.values():
        own = slopes[members]
        leverage = (own @ posterior @ own.T) * share[members]
        result[members] = np.linalg.solve(np.eye(len(members)) - leverage, residual[members])
        alone[members] = leverage.sum(axis=1)
    return result, alone


def _rows(
    observations: Sequence[Observation], before: Floats, after: Floats, left_out: Floats, own_sd: Floats
) -> tuple[OwnRow, ...]:
    same: dict[object, list[int]] = {}
    for number, o in enumerate(observations):
        key = replace(o.run, id="", group="", pair="", series="", tier="", flag="", source_kind="", lineage="")
        same.setdefault(key, []).append(number)
    partners = {number: members for members in same.values() for number in members}
    rows = []
    for number, o in enumerate(observations):
        others = tuple(
            observations[other].run.id
            for other in partners[number]
            if max(o.value / observations[other].value, observations[other].value / o.value) > SAME_RATIO
        )
        far = len(observations) > 2 and abs(left_out[number]) > CONFLICT_SD * own_sd[number] * np.sqrt(2.0)
        rows.append(
            OwnRow(
                id=o.run.id, metric=o.run.metric, error_before=float(np.expm1(before[number])),
                error_after=float(np.expm1(after[number])), error_left_out=float(np.expm1(left_out[number])),
                conflicts_with=others or ((o.run.id,) if far else ()),
            )
        )  # fmt: skip
    return tuple(rows)


def _widths(
    observations: Sequence[Observation], slopes: Floats, posterior: Floats, own_sd: Floats, before: Floats
) -> dict[str, float]:
    after = np.sqrt(np.einsum("ij,jk,ik->i", slopes, posterior, slopes) + own_sd**2)
    figures = np.array([o.figure for o in observations])
    return {
        figure.value: float(np.mean(np.sinh(Z90 * after[figures == figure]) / np.sinh(Z90 * before[figures == figure])))
        for figure in Figure
        if (figures == figure).any()
    }


def _calibrated(prior: Parameters, shift: Floats, covariance: Floats, source: str) -> Parameters:
    """The rows with their new values and ranges; those that the runs say nothing of stay as they are."""
    assert prior.joint is not None
    ids = prior.joint.ids
    before = np.sqrt(np.diag(prior.joint.covariance))
    # In the coordinate of the new value a share's shifts are stretched.
    stretch = np.ones(len(ids))
    rows = []
    for number, name in enumerate(ids):
        row = prior.rows[name]
        share = _share(prior, row)
        value = float(moved(row.value, float(shift[number]), share=share))
        if share and row.value < 0.99:
            stretch[number] = (1.0 - value) / (1.0 - row.value)
        sd = float(np.sqrt(covariance[number, number])) * stretch[number]
        told = abs(shift[number]) > 0.02 * before[number] or sd < 0.99 * before[number] * stretch[number]
        if told:
            low, high = (float(moved(value, side * Z90 * sd, share=share)) for side in (-1, 1))
            row = replace(
                row, value=value, low=low, high=high, source=f"{source}; before: {row.origin}", prior=None,
                fitted_rows=None, kind=EvidenceKind.MEASURED,
            )  # fmt: skip
        rows.append(row)
    scaled = covariance * np.outer(stretch, stretch)
    factor = cholesky(scaled + LEAST_VARIANCE * np.eye(len(ids)))
    return replace(prior.replaced(rows), joint=Joint(ids=ids, factor=factor))


def _terms(prior: Parameters, after: Parameters, bounded: np.ndarray) -> tuple[LearnedTerm, ...]:
    """One entry for each family that changed: of its rows, the one that changed most in units of its spread."""
    assert prior.joint is not None
    entries: dict[str, tuple[float, LearnedTerm]] = {}
    for number, name in enumerate(prior.joint.ids):
        old, new = prior.rows[name], after.rows[name]
        centre, sd = in_coordinate(old, new.value, share=_share(prior, old))
        change = max(abs(centre) / sd, 1.0 - new.log_sd / max(old.log_sd, 1e-9))
        if change < LEAST_SHIFT or new.source == old.source:
            continue
        family = prior.families[old.family]
        entry = LearnedTerm(
            term=name,
            name=(*family.terms, family.name)[0],
            label=family.label,
            unit=old.unit,
            before=(old.low, old.value, old.high),
            after=(new.low, new.value, new.high),
            bounded=bool(bounded[number]),
        )
        if change > entries.get(old.family, (0.0, entry))[0]:
            entries[old.family] = (change, entry)
    ranked = sorted(entries.values(), key=lambda pair: -pair[0])
    return tuple(entry for _, entry in ranked)

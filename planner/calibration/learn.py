"""Learn from a team's own runs: the joint posterior of a new lineage, conditioned on the rows of that team.

The prior is the shipped posterior for a lineage without measurements, with an additional term for each GPU and model of
the rows. Rows are linearised again at each step (Gauss-Newton), outliers are downweighted (Student's t), all rows count
less where they scatter more than those of most teams, and no parameter moves by more than three of its standard
deviations.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from planner.calibration.crossval import own_scale
from planner.calibration.design import count_defaults, own_repeats, part_labels, vote_weight
from planner.calibration.hierarchy import AGREEING, LEAST_VARIANCE, common_far, own_sd, robust_weight
from planner.calibration.linear import Linear, Observation, linearize, residuals
from planner.calibration.own_runs import (
    LearnedTerm,
    OwnRow,
    Total,
    as_learned_if_moved,
    count_runs,
    learned_terms,
    own_rows,
    slower,
    totals,
    width_ratios,
)
from planner.calibration.shifts import at_shift, cholesky, is_share, slope_ratios, with_range
from planner.calibration.spreads import BY_PART, RESIDUALS
from planner.evidence import Z90
from planner.lazy import dataclass
from planner.rates.parameters import Figure, Joint, Parameters
from planner.rates.terms import Floats
from planner.training.method import find_method

ITERATIONS = 3
LIMIT = 3.0
"""Standard deviations beyond which no parameter is moved."""
INDEPENDENT = 10
"""Number of configurations up to which the rows of a figure count in full. Beyond it each counts less, because the
runs of one team resemble each other."""
CROWD_POWER = 0.6
"""Beyond `INDEPENDENT`, twice as many configurations weigh 2 to this power as much."""
CHANGED = 0.02
"""Shift in standard deviations below which a parameter whose range does not narrow noticeably stays as shipped."""
LEAST_SHARE = 1e-6
"""Share of the information on a row's prediction that comes from other rows, below which it is rounding error."""
HARDLY_NARROWER = 0.99
"""Standard deviation after over before, above which a range does not count as narrowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The changes that a team's own runs made."""

    parameters: Parameters
    """Parameters with the joint posterior of this team's stack."""
    runs: int
    """Number of runs; a run with several measured figures has several rows."""
    rows: tuple[OwnRow, ...]
    terms: tuple[LearnedTerm, ...]
    """Terms that changed, in descending order of the change in units of the spread."""
    gpus: tuple[str, ...]
    stacks: tuple[str, ...]
    """Kernels of the runs, as `--stack` names them."""
    mixtures: tuple[bool, ...]
    """Whether the models are mixtures of experts: one value if all are of one kind, else both."""
    images: tuple[bool, ...]
    """Whether they are vision models: one value if all are of one kind, else both."""
    adapters: tuple[bool, ...]
    """Whether they train adapters (LoRA and the like): one value if all do or none does, else both."""
    precisions: tuple[str, ...]
    """Precisions of the runs."""
    most_nodes: int
    """Nodes of the largest run."""
    figures: tuple[Figure, ...]
    width_ratio: dict[str, float] = field(default_factory=dict)
    """Width of the range, over its middle, after over before, averaged over the rows, by figure."""
    totals: tuple[Total, ...] = ()
    """Overall result of the rows, by figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """The prior conditioned on the rows, which are linearised at the last iterate."""

    shift: Floats
    """Shift of each parameter from its prior value, in the logarithm, `[parameter]`."""
    covariance: Floats
    """Covariance of these shifts, `[parameter, parameter]`."""
    bounded: np.ndarray
    """Whether a parameter was kept at its limit, `[parameter]`."""
    slopes: Floats
    """Slope of each row with respect to the shifts, `[row, parameter]`."""
    precision: Floats
    """Precision with which each row counts, `[row]`."""


def learn(observations: Sequence[Observation], shipped: Parameters, source: str) -> Calibration:
    """Condition the parameters on rows of one lineage.

    Args:
        observations: the rows; at least one.
        shipped: parameters with the joint posterior of a new lineage.
        source: source to name as evidence of the parameters that change, for example `our-stack.json: 3 runs`.
    """
    prior = extended(shipped, observations)
    assert prior.joint is not None
    ids = prior.joint.ids
    first = linearize(observations, prior, [*ids, *RESIDUALS])
    sd = own_sd(first.slopes[:, len(ids) :], count_defaults(observations), prior)
    weight = _weight(observations)
    solved = _solved(observations, prior, first, weight, sd)
    after = residuals(observations, at_shift(prior, ids, solved.shift))
    left_out, leverage, by_others = _left_out(observations, after, solved, prior.joint)
    scales = _scales(observations, left_out / sd, leverage, weight)
    if not by_others.any():  # without all rows that taught anything the prior remains: exactly, not just to first order
        left_out = first.residual
    calibrated = _scaled(_calibrated(prior, solved, source), scales, source)
    return Calibration(
        parameters=calibrated,
        runs=count_runs(observations),
        rows=own_rows(
            observations, first.residual, after, left_out, _apart(observations, left_out, sd) / sd, by_others
        ),
        terms=learned_terms(prior, calibrated, solved.bounded, _members(observations, prior)),
        gpus=tuple(sorted({o.prepared.cluster.gpu.id for o in observations})),
        stacks=tuple(sorted({o.prepared.recipe.stack for o in observations})),
        mixtures=tuple(sorted({o.prepared.recipe.model.experts > 0 for o in observations})),
        images=tuple(sorted({o.prepared.recipe.model.has_network for o in observations})),
        adapters=tuple(sorted({find_method(o.prepared.recipe.method).adapts for o in observations})),
        precisions=tuple(sorted({o.prepared.recipe.policy.precision for o in observations})),
        most_nodes=max(map(_nodes, observations)),
        figures=tuple(dict.fromkeys(o.figure for o in observations)),
        width_ratio=_widths(observations, prior.joint, solved, sd, scales),
        totals=totals(observations, first.residual, after),
    )


def _nodes(observation: Observation) -> int:
    """Return the number of nodes of a run."""
    prepared = observation.prepared
    return -(-int(prepared.layouts.gpus[0]) // prepared.cluster.gpus_per_node)


def _solved(
    observations: Sequence[Observation], prior: Parameters, first: Linear, weight: Floats, sd: Floats
) -> _Solved:
    """Solve by Gauss-Newton from the prior's values, from which all shifts are counted.

    The first step takes the rows of a figure with fewer than `AGREEING` configurations in full, as
    `planner.calibration.crossval.condition` does: too few to show that they agree, all rows of a team that is far from
    most teams would pass for outliers of the prior. Later steps downweight rows that the team's own shift does not
    explain.

    Args:
        observations: the rows.
        prior: parameters with their joint spread.
        first: the rows linearised at the prior's values.
        weight: weight of each row, `[row]`.
        sd: spread of the model error of each row, `[row]`.
    """
    assert prior.joint is not None
    ids, factor = prior.joint.ids, prior.joint.factor
    limit = LIMIT * np.sqrt(np.diag(prior.joint.covariance))
    shift, at, linear, scale = np.zeros(len(ids)), prior, first, np.ones(len(sd))
    figures = [o.figure for o in observations]
    few = _are_few(observations)
    for turn in range(ITERATIONS):
        if turn:
            at = at_shift(prior, ids, shift)
            linear = linearize(observations, at, ids)
        slopes = linear.slopes[:, : len(ids)] * slope_ratios(prior, at, ids)
        robust = robust_weight(_apart(observations, linear.residual, sd), sd)
        if not turn:
            robust = np.where(few, 1.0, robust)
        row_precision = weight * robust / (scale * sd) ** 2
        by_factor = slopes @ factor
        precision = np.eye(len(ids)) + (by_factor.T * row_precision) @ by_factor
        at_prior = linear.residual - slopes @ shift
        free = -factor @ np.linalg.solve(precision, (by_factor.T * row_precision) @ at_prior)
        shift = np.clip(free, -limit, limit)
        covariance = factor @ np.linalg.inv(precision) @ factor.T
        solved = _Solved(
            shift=shift, covariance=(covariance + covariance.T) / 2.0, bounded=np.abs(free) > limit * (1.0 + 1e-9),
            slopes=slopes, precision=row_precision,
        )  # fmt: skip
        if turn + 1 < ITERATIONS:
            left_out, leverage, _ = _left_out(observations, at_prior + slopes @ shift, solved, prior.joint)
            scales = _scales(observations, _apart(observations, left_out, sd) / sd, leverage, weight)
            scale = np.array([scales[figure] for figure in figures])
    return solved


def _are_few(observations: Sequence[Observation]) -> np.ndarray:
    """Return whether each row is of a figure with fewer than `AGREEING` configurations, `[row]`."""
    configurations = Counter(observations[members[0]].figure for members in own_repeats(observations))
    return np.array([configurations[observation.figure] < AGREEING for observation in observations])


def _apart(observations: Sequence[Observation], residual: Floats, sd: Floats) -> Floats:
    """Return the deviation of each row from what the configurations of its figure have in common, `[row]`."""
    sign, by_figure = slower(observations), defaultdict(list)
    for members in own_repeats(observations):
        by_figure[observations[members[0]].figure].append(members)
    result = sign * residual
    for groups in by_figure.values():
        means = (np.array([values[members].mean() for members in groups]) for values in (sign * residual, sd))
        result[np.concatenate(groups)] -= common_far(*means)
    return sign * result


def _scales(
    observations: Sequence[Observation], left_out: Floats, leverage: Floats, weight: Floats
) -> dict[Figure, float]:
    """Return the scatter of this team's single rows over the scatter of most teams' rows, by figure.

    Args:
        observations: the rows.
        left_out: error of each row predicted from the others, over the spread of its own error, `[row]`.
        leverage: share of the row's prediction that it decides itself, `[row]`.
        weight: weight of each row, `[row]`.
    """
    figures = np.array([o.figure for o in observations])
    standardised = left_out * np.sqrt(np.maximum(1.0 - leverage, 1e-6))
    return {
        figure: float(own_scale(standardised[figures == figure], weight[figures == figure]))
        for figure in Figure
        if (figures == figure).any()
    }


def _scaled(parameters: Parameters, scales: Mapping[Figure, float], source: str) -> Parameters:
    """Scale the error of a single row to the scatter of this team's rows."""
    rows = (parameters.rows[name] for name, figure in RESIDUALS.items() if figure in scales)
    return parameters.replaced(
        as_learned_if_moved(
            with_range(row, row.value, row.log_sd * scales[RESIDUALS[row.id]], share=False), row, source
        )
        for row in rows
    )


def extended(shipped: Parameters, observations: Sequence[Observation]) -> Parameters:
    """Return the shipped rows plus one for each GPU, architecture and model of the observations, all independent."""
    assert shipped.joint is not None
    rows = [
        replace(shipped.rows[name], id=f"{name}.{label}", meaning=f"{shipped.rows[name].meaning}: {label}")
        for name in BY_PART
        for label in np.unique(part_labels(observations, shipped, name)).tolist()
    ]
    size, more = len(shipped.joint.ids), len(rows)
    factor = np.zeros((size + more, size + more))
    factor[:size, :size] = shipped.joint.factor
    factor[range(size, size + more), range(size, size + more)] = [row.log_sd for row in rows]
    joint = Joint(ids=(*shipped.joint.ids, *(row.id for row in rows)), factor=factor)
    return replace(shipped.replaced(rows), joint=joint)


def _members(observations: Sequence[Observation], prior: Parameters) -> dict[str, str]:
    """Return the GPU, architecture or models to which each specific parameter row applies, by id of the row."""
    models: dict[str, dict[str, None]] = defaultdict(dict)
    for name in BY_PART:
        (by,) = prior.families[prior.rows[name].family].by
        for label, o in zip(part_labels(observations, prior, name).tolist(), observations, strict=True):
            models[f"{name}.{label}"][(o.run.model or label) if by == "shape" else label] = None
    return {row: ", ".join(names) for row, names in models.items()}


def _weight(observations: Sequence[Observation]) -> Floats:
    """Return the weight of each row, `[row]`: 1 over its repeats, less for figures with many configurations."""
    weight, figures = (
        vote_weight(own_repeats(observations), len(observations)),
        np.array([o.figure for o in observations]),
    )
    for figure in Figure:
        members = figures == figure
        configurations = weight[members].sum()
        if configurations > INDEPENDENT:
            weight[members] *= (INDEPENDENT / configurations) ** (1.0 - CROWD_POWER)
    return weight


def _left_out(
    observations: Sequence[Observation], residual: Floats, solved: _Solved, prior: Joint
) -> tuple[Floats, Floats, Floats]:
    """Return the remaining error of each row when it and its repeats are not learned from, to first order.

    Returns:
        The residual, the leverage, and the share of the information about the row's prediction (the reduction of its
        variance) that comes from the other rows: 0 where there are none. Each is `[row]`.
    """
    result, alone, by_others = residual.copy(), np.zeros(len(residual)), np.ones(len(residual))
    for members in own_repeats(observations):
        rows, at = np.unique(solved.slopes[members], axis=0, return_inverse=True)
        precision = solved.precision[members]
        shared = rows @ solved.covariance @ rows.T  # a repeat has the same slopes as the row that it repeats
        pooled = np.bincount(at, weights=precision, minlength=len(rows))
        moved = np.bincount(at, weights=precision * residual[members], minlength=len(rows))
        without = np.linalg.solve(np.eye(len(rows)) - shared * pooled, np.column_stack([shared, shared @ moved]))
        result[members] += without[:, -1][at]
        alone[members] = (np.abs(shared) @ pooled)[at]  # a time and a throughput of one run have opposite signs
        at_first = np.square(rows @ prior.factor).sum(axis=1)
        by_all = at_first - np.diagonal(shared)
        share = np.divide(at_first - np.diagonal(without), by_all, out=np.ones(len(rows)), where=by_all > 0)
        by_others[members] = np.where(share > LEAST_SHARE, np.minimum(share, 1.0), 0.0)[at]
    return result, alone, by_others


def _widths(
    observations: Sequence[Observation], joint: Joint, solved: _Solved, sd: Floats, scales: Mapping[Figure, float]
) -> dict[str, float]:
    """Return the width of the range after over before to first order, averaged over the rows, by figure."""
    slopes = solved.slopes
    own_after = sd * np.array([scales[o.figure] for o in observations])
    before, after = (
        np.sinh(Z90 * np.sqrt(((slopes @ covariance) * slopes).sum(axis=1) + own**2))
        for covariance, own in ((joint.covariance, sd), (solved.covariance, own_after))
    )
    return width_ratios(observations, after / before)


def _calibrated(prior: Parameters, solved: _Solved, source: str) -> Parameters:
    """Return the rows with new values and ranges; rows about which the runs say nothing stay as they are.

    A row that changed very little moves with the others, since many small shifts add up, but keeps its evidence.
    """
    assert prior.joint is not None
    ids = prior.joint.ids
    at = at_shift(prior, ids, solved.shift)
    ratios = slope_ratios(prior, at, ids)
    before_sd, after_sd = (np.sqrt(np.diag(covariance)) for covariance in (prior.joint.covariance, solved.covariance))
    changed = (np.abs(solved.shift) > CHANGED * before_sd) | (after_sd < HARDLY_NARROWER * before_sd)
    rows = []
    for name, sd in (
        (name, sd) for name, sd, is_changed in zip(ids, after_sd * ratios, changed, strict=True) if is_changed
    ):
        row = with_range(prior.rows[name], at.rows[name].value, float(sd), share=is_share(prior, name))
        rows.append(as_learned_if_moved(row, prior.rows[name], source))
    factor = cholesky(solved.covariance * np.outer(ratios, ratios) + LEAST_VARIANCE * np.eye(len(ids)))
    return replace(prior.replaced(rows), joint=Joint(ids=ids, factor=factor))

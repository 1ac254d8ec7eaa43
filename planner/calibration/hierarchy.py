"""One hierarchical model of what runs tell about the parameters: all lineages, one lineage, its GPUs and models, a run.

In logarithms, and linearised at some parameters, the residual of a row is

    r = r0 + J theta + J_dev delta[lineage] + u[lineage, GPU] + v[lineage, model] + e[row]

`theta` shifts the parameters of all lineages together, `delta` is what one lineage (a team and its software) has
against the others, `u` and `v` what the equations leave out of one GPU and of one model within it, `e` of one row. All
are normal, `e` robustly so (Student's t). The spreads of `delta`, `u`, `v` and `e` are part of the model: a lineage
that nobody measured draws its own. Varying slopes: Gelman & Hill 2006, chapter 13; equations with a discrepancy:
Kennedy & O'Hagan 2001 (doi:10.1111/1467-9868.00294), section 4.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.calibration.linear import Figure, Linear, Observation
from planner.calibration.spreads import BY_GPU, BY_SHAPE, RESIDUALS, deviation_groups, joint_ids, spread
from planner.rates.ladder import shape_key
from planner.rates.parameters import Parameter, Parameters
from planner.rates.terms import Floats
from planner.validation.predict import WIDENED, decisive_defaults

Numbers = npt.NDArray[np.intp]
"""Numbers of rows."""

FREEDOM = 5.0
"""Degrees of freedom of the robust residual of a row."""
LINEAGE_POWER = 0.6
"""A lineage with n series weighs n to this power among the others, so that no grid or table decides alone."""
TIER_WEIGHT = {"A": 1.0, "B": 0.7, "C": 0.3}
"""By how sure the reading of a row is; rows that do not say are the user's own."""
LEAST_SD = 1e-3
LEAST_VARIANCE = 1e-12
ROUNDS = 3
"""Reweightings of rows that are far off, and turns between them and the shifts."""


def model_ids(parameters: Parameters) -> list[str]:
    """Every row whose slopes the model needs."""
    return [*joint_ids(parameters), *BY_GPU, *BY_SHAPE, *RESIDUALS]


def in_coordinate(prior: Parameter, value: float, *, share: bool) -> tuple[float, float]:
    """Centre and standard deviation of a prior, as a shift from a value in its logarithm.

    Args:
        prior: before the fit.
        value: to count shifts from; above 0.
        share: whether it is a share of something, whose shifts bend so that it stays below 1.
    """
    before = min(prior.value, 0.99) if share else prior.value
    sd = max(prior.log_sd, LEAST_SD)
    if not share or value >= 0.99:
        return math.log(before / value), sd
    odds = math.log(before / (1.0 - before)) - math.log(value / (1.0 - value))
    return odds * (1.0 - value), sd * (1.0 - value) / (1.0 - before)


def robust_weight(residual: Floats, sd: Floats) -> Floats:
    """Weight of residuals under Student's t: 1.2 in the middle, less far off."""
    weight: Floats = (FREEDOM + 1.0) / (FREEDOM + (residual / sd) ** 2)
    return weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows of one lineage, with what they share beyond the population."""

    rows: Numbers
    latent: Floats
    """Design of what the lineage, its GPUs and its models have of their own, `[row, latent]`."""
    variance: Floats
    """Prior variance of each of these, `[latent]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """What lineages together tell about the joint rows."""

    shift: Floats
    """From the values at which the rows were linearised, in the logarithm, `[parameter]`."""
    covariance: Floats
    """`[parameter, parameter]`."""


class Hierarchy:
    """Linearised rows under the spreads that some parameters hold."""

    def __init__(
        self, observations: Sequence[Observation], linear: Linear, parameters: Parameters, priors: Parameters
    ) -> None:
        """Put rows and spreads together.

        Args:
            observations: the rows.
            linear: their residuals and slopes by `model_ids`.
            parameters: hold the spreads, and the values from which shifts count.
            priors: rows before any fit.
        """
        self.observations, self.linear, self.parameters, self.priors = observations, linear, parameters, priors

    def under(self, parameters: Parameters) -> Hierarchy:
        """The same rows under other spreads."""
        return Hierarchy(self.observations, self.linear, parameters, self.priors)

    @cached_property
    def place(self) -> dict[str, int]:
        """Column of each parameter in the slopes."""
        return {name: number for number, name in enumerate(model_ids(self.parameters))}

    @cached_property
    def joint(self) -> list[str]:
        """Ids of the rows with a joint posterior."""
        return joint_ids(self.parameters)

    @cached_property
    def slopes(self) -> Floats:
        """By the joint rows, `[row, parameter]`."""
        return self.linear.slopes[:, : len(self.joint)]

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """Centre and standard deviation of each joint row for all lineages together, `[parameter]` each."""
        known = [self._prior_of(name) for name in self.joint]
        return np.array([centre for centre, _ in known]), np.array([sd for _, sd in known])

    def _prior_of(self, name: str) -> tuple[float, float]:
        row = self.parameters.rows[name]
        family = self.parameters.families[row.family]
        if family.deviates == "apart":
            return 0.0, LEAST_SD
        return in_coordinate(self.priors.rows[name].before_fit, row.value, share=family.bound == "share")

    @cached_property
    def deviations(self) -> tuple[Floats, Floats]:
        """Which joint rows each deviation of a lineage moves, `[parameter, deviation]`, and its standard deviation."""
        groups = deviation_groups(self.parameters)
        design = np.zeros((len(self.joint), len(groups)))
        for number, members in enumerate(groups.values()):
            design[[self.place[name] for name in members], number] = 1.0
        return design, np.array([spread(self.parameters, holder) for holder in groups])

    @cached_property
    def lineages(self) -> dict[str, Numbers]:
        """Numbers of the rows of each lineage."""
        rows: dict[str, list[int]] = defaultdict(list)
        for number, observation in enumerate(self.observations):
            rows[observation.lineage].append(number)
        return {name: np.array(rows[name]) for name in sorted(rows)}

    @cached_property
    def weight(self) -> Floats:
        """One over the size of a row's series, times its tier, less in large lineages, `[row]`."""
        series = [(o.run.series or o.run.id, o.run.metric) for o in self.observations]
        sizes = Counter(series)
        tiers = [TIER_WEIGHT.get(o.run.tier or "A", TIER_WEIGHT["B"]) for o in self.observations]
        weight = np.array([tier / sizes[name] for tier, name in zip(tiers, series, strict=True)])
        figures = np.array([o.figure for o in self.observations])
        for rows in self.lineages.values():
            for figure in Figure:
                members = rows[figures[rows] == figure]
                if len(members):
                    weight[members] *= weight[members].sum() ** (LINEAGE_POWER - 1.0)
        return weight

    @cached_property
    def own_sd(self) -> Floats:
        """Spread of what the equations leave out of each single row, `[row]`."""
        variance = np.zeros(len(self.observations))
        defaults = np.array([decisive_defaults(o.prepared) for o in self.observations])
        for name in RESIDUALS:
            own = np.full(len(variance), spread(self.parameters, name) ** 2)
            if name in WIDENED:
                own += defaults * spread(self.parameters, WIDENED[name]) ** 2
            variance += self.linear.slopes[:, self.place[name]] ** 2 * own
        return np.sqrt(np.maximum(variance, LEAST_SD**2))

    @cached_property
    def labels(self) -> tuple[list[str], list[str]]:
        """GPU of each row, and its model by its shape."""
        gpus = [o.prepared.cluster.gpu.id for o in self.observations]
        return gpus, [shape_key(o.prepared.recipe.model) for o in self.observations]

    def block(self, rows: Numbers) -> Block:
        """The latent design of rows of one lineage."""
        design, sd = self.deviations
        parts, variances = [self.slopes[rows] @ design], [sd**2]
        for names, labels in zip((BY_GPU, BY_SHAPE), self.labels, strict=True):
            present = sorted({labels[row] for row in rows})
            member = np.array([[labels[row] == label for label in present] for row in rows])
            for name in names:
                slope = self.linear.slopes[rows, self.place[name]]
                if slope.any():
                    parts.append(member * slope[:, None])
                    variances.append(np.full(len(present), spread(self.parameters, name) ** 2))
        return Block(rows=rows, latent=np.hstack(parts), variance=np.concatenate(variances))

    @cached_property
    def blocks(self) -> dict[str, Block]:
        """One of each lineage."""
        return {name: self.block(rows) for name, rows in self.lineages.items()}

    def information(self, block: Block, theta: Floats) -> tuple[Floats, Floats]:
        """What a lineage tells about the joint rows: precision `[parameter, parameter]` and gradient `[parameter]`.

        What the lineage has of its own is integrated out.
        """
        slopes, at_zero, own_sd = self.slopes[block.rows], self.linear.residual[block.rows], self.own_sd[block.rows]
        expected = at_zero + slopes @ theta
        own = np.zeros(len(block.variance))
        inner: Floats = np.diag(block.variance)
        by_latent, weight = block.latent.T, own_sd
        for _ in range(ROUNDS):
            weight = self.weight[block.rows] * robust_weight(expected + block.latent @ own, own_sd) / own_sd**2
            by_latent = block.latent.T * weight
            precision_of_own = np.diag(1.0 / np.maximum(block.variance, LEAST_VARIANCE)) + by_latent @ block.latent
            inner = np.asarray(np.linalg.inv(precision_of_own), dtype=np.float64)
            own = -inner @ (by_latent @ expected)
        by_slope = slopes.T * weight
        across = by_slope @ block.latent @ inner
        precision = by_slope @ slopes - across @ (by_latent @ slopes)
        return precision, across @ (by_latent @ at_zero) - by_slope @ at_zero

    def population(self, without: str | None = None) -> Population:
        """Maximum a posteriori of the shifts of all lineages together, and their covariance.

        Args:
            without: a lineage to leave out.
        """
        centre, sd = self.prior
        theta: Floats = np.zeros(len(centre))
        covariance: Floats = np.diag(sd**2)
        for _ in range(ROUNDS - 1):
            precision, gradient = np.diag(1.0 / sd**2), centre / sd**2
            for name, block in self.blocks.items():
                if name != without:
                    own_precision, own_gradient = self.information(block, theta)
                    precision, gradient = precision + own_precision, gradient + own_gradient
            covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
            theta = covariance @ gradient
        return Population(shift=theta, covariance=(covariance + covariance.T) / 2.0)

    def of_new_lineage(self, population: Population) -> Floats:
        """Covariance of the joint rows in a lineage that nobody measured, `[parameter, parameter]`."""
        design, sd = self.deviations
        covariance: Floats = population.covariance + (design * sd**2) @ design.T
        return covariance

    def expected(self, rows: Numbers, population: Population) -> tuple[Floats, Floats]:
        """Residuals of rows of one new lineage, `[row]`, and what they share, `[row, row]`."""
        block, slopes = self.block(rows), self.slopes[rows]
        shared = slopes @ population.covariance @ slopes.T + (block.latent * block.variance) @ block.latent.T
        return self.linear.residual[rows] + slopes @ population.shift, shared

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
from functools import cached_property

import numpy as np

from planner.calibration.design import Design, Numbers
from planner.calibration.spreads import RESIDUALS, spread
from planner.lazy import dataclass
from planner.rates.parameters import NEARLY_ALL, Parameter, Parameters
from planner.rates.terms import Floats
from planner.validation.predict import WIDENED

FREEDOM = 5.0
"""Degrees of freedom of the robust residual of a row."""
LEAST_SD = 1e-3
LEAST_VARIANCE = 1e-12
REWEIGHTINGS = 3
"""How often rows far off are weighed anew within a lineage, each time at what it was just found to have of its own."""
TURNS = 2
"""How often the shifts are solved for, each time with rows weighed at the shifts of the turn before. Of the shipped
runs a third turn moves no shift by more than 0.0001 of its standard deviation."""


def in_coordinate(prior: Parameter, value: float, *, share: bool) -> tuple[float, float]:
    """Centre and standard deviation of a prior, as a shift from a value in its logarithm.

    Args:
        prior: before the fit.
        value: to count shifts from; above 0.
        share: whether it is a share of something, whose shifts bend so that it stays below 1.
    """
    before = min(prior.value, NEARLY_ALL) if share else prior.value
    sd = max(prior.log_sd, LEAST_SD)
    if not share or value >= NEARLY_ALL:
        return math.log(before / value), sd
    odds = math.log(before / (1.0 - before)) - math.log(value / (1.0 - value))
    return odds * (1.0 - value), sd * (1.0 - value) / (1.0 - before)


def robust_weight(residual: Floats, sd: Floats) -> Floats:
    """Weight of residuals under Student's t: 1.2 in the middle, less far off."""
    weight: Floats = (FREEDOM + 1.0) / (FREEDOM + (residual / sd) ** 2)
    return weight


AGREEING = 3
"""Rows of a team from which on what they have in common tells which of them is far off."""


FAR = 2.0
"""Standard deviations from the prediction beyond which a deviation that all rows share is not held against each."""


def apart_from_team(residual: Floats, sd: Floats) -> Floats:
    """Residuals of one team and figure, less what they have in common beyond `FAR` standard deviations, `[..., row]`.

    Where all rows are far from the prediction alike, none is an outlier; of one or two nobody can tell.

    Args:
        residual: of each row, `[..., row]`.
        sd: its spread, `[..., row]`.
    """
    if residual.shape[-1] < AGREEING:
        return residual
    common, within = np.median(residual, axis=-1, keepdims=True), FAR * np.median(sd, axis=-1, keepdims=True)
    return np.asarray(residual - np.sign(common) * np.maximum(np.abs(common) - within, 0.0))


def own_sd(slopes: Floats, defaults: Floats, parameters: Parameters) -> Floats:
    """Spread of what the equations leave out of each single row, `[row]`.

    Args:
        slopes: of each row by the terms of `RESIDUALS`, `[row, residual]`.
        defaults: inputs that decide and are defaults, `[row]`: each makes the spread wider.
        parameters: hold the spreads.
    """
    variance = np.zeros(len(slopes))
    for number, name in enumerate(RESIDUALS):
        own = np.full(len(slopes), spread(parameters, name) ** 2)
        if name in WIDENED:
            own += defaults * spread(parameters, WIDENED[name]) ** 2
        variance += slopes[:, number] ** 2 * own
    return np.sqrt(np.maximum(variance, LEAST_SD**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """What lineages together tell about the joint rows."""

    shift: Floats
    """From the values at which the rows were linearised, in the logarithm, `[parameter]`."""
    covariance: Floats
    """`[parameter, parameter]`."""


class Hierarchy:
    """Linearised rows under the spreads that some parameters hold."""

    def __init__(self, design: Design, parameters: Parameters, priors: Parameters) -> None:
        """Put rows and spreads together.

        Args:
            design: the rows, linearised at the values of `parameters`.
            parameters: hold the spreads, and the values from which shifts count.
            priors: rows before any fit.
        """
        self.design, self.parameters, self.priors = design, parameters, priors

    def under(self, parameters: Parameters) -> Hierarchy:
        """The same rows under other spreads."""
        return Hierarchy(self.design, parameters, self.priors)

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """Centre and standard deviation of each joint row for all lineages together, `[parameter]` each."""
        known = [self._prior_of(name) for name in self.design.joint]
        return np.array([centre for centre, _ in known]), np.array([sd for _, sd in known])

    def _prior_of(self, name: str) -> tuple[float, float]:
        row = self.parameters.rows[name]
        family = self.parameters.families[row.family]
        if family.deviates == "apart":
            return 0.0, LEAST_SD
        return in_coordinate(self.priors.rows[name].before_fit, row.value, share=family.bound == "share")

    @cached_property
    def own_sd(self) -> Floats:
        """Spread of what the equations leave out of each single row, `[row]`."""
        places = [self.design.place[name] for name in RESIDUALS]
        return own_sd(self.design.all_slopes[:, places], self.design.defaults, self.parameters)

    def latent(self, rows: Numbers) -> tuple[Floats, Floats]:
        """What rows of one lineage have in common, `[row, latent]`, and the variance of each, `[latent]`."""
        latent = self.design.latent(rows)
        return latent.design, np.array([spread(self.parameters, name) ** 2 for name in latent.spreads])

    def information(self, rows: Numbers, theta: Floats) -> tuple[Floats, Floats]:
        """What a lineage tells about the joint rows: precision `[parameter, parameter]` and gradient `[parameter]`.

        What the lineage has of its own is integrated out.

        Args:
            rows: of the lineage.
            theta: shifts at which rows far off are told from the others, `[parameter]`.
        """
        slopes, at_zero, own_sd = self.design.slopes[rows], self.design.residual[rows], self.own_sd[rows]
        latent, variance = self.latent(rows)
        expected = at_zero + slopes @ theta
        own = np.zeros(len(variance))
        inner: Floats = np.diag(variance)
        by_latent, weight = latent.T, own_sd
        for _ in range(REWEIGHTINGS):
            weight = self.design.weight[rows] * robust_weight(expected + latent @ own, own_sd) / own_sd**2
            by_latent = latent.T * weight
            precision_of_own = np.diag(1.0 / np.maximum(variance, LEAST_VARIANCE)) + by_latent @ latent
            inner = np.asarray(np.linalg.inv(precision_of_own), dtype=np.float64)
            own = -inner @ (by_latent @ expected)
        by_slope = slopes.T * weight
        across = by_slope @ latent @ inner
        precision = by_slope @ slopes - across @ (by_latent @ slopes)
        return precision, across @ (by_latent @ at_zero) - by_slope @ at_zero

    @cached_property
    def _information_at_zero(self) -> dict[str, tuple[Floats, Floats]]:
        """Of each lineage before anything has moved: the first turn of every population, whoever is left out."""
        zero = np.zeros(len(self.design.joint))
        return {name: self.information(rows, zero) for name, rows in self.design.lineages.items()}

    def population(self, without: str | None = None) -> Population:
        """Maximum a posteriori of the shifts of all lineages together, and their covariance.

        Args:
            without: a lineage to leave out.
        """
        centre, sd = self.prior
        theta: Floats = np.zeros(len(centre))
        covariance: Floats = np.diag(sd**2)
        for turn in range(TURNS):
            precision, gradient = np.diag(1.0 / sd**2), centre / sd**2
            for name, rows in self.design.lineages.items():
                if name != without:
                    told = self.information(rows, theta) if turn else self._information_at_zero[name]
                    precision, gradient = precision + told[0], gradient + told[1]
            covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
            theta = covariance @ gradient
        return Population(shift=theta, covariance=(covariance + covariance.T) / 2.0)

    def of_new_lineage(self, population: Population) -> Floats:
        """Covariance of the joint rows in a lineage that nobody measured, `[parameter, parameter]`."""
        design = self.design.moved_together
        variance = np.array([spread(self.parameters, holder) ** 2 for holder in self.design.groups])
        covariance: Floats = population.covariance + (design * variance) @ design.T
        return covariance

    def expected(self, rows: Numbers, population: Population) -> tuple[Floats, Floats]:
        """Residuals of rows of one new lineage, `[row]`, and what they share, `[row, row]`."""
        slopes, (latent, variance) = self.design.slopes[rows], self.latent(rows)
        shared = slopes @ population.covariance @ slopes.T + (latent * variance) @ latent.T
        return self.design.residual[rows] + slopes @ population.shift, shared

"""A hierarchical model of what runs reveal about the parameters, by lineage, by GPU and model within it, and by run.

In logarithms, and linearised at given parameters, the residual of a row is

    r = r0 + J theta + J_dev delta[lineage] + u[lineage, GPU] + v[lineage, model] + e[row]

`theta` shifts the parameters of all lineages together. `delta` is the deviation of one lineage (a team and its
software) from the others. `u` and `v` are the errors of the equations for one GPU and one model within a lineage, and
`e` is the error of one row. All are normal, except that `e` is robust (Student's t). The spreads of `delta`, `u`, `v`
and `e` are part of the model: a lineage without measurements draws its own deviations from them. Varying slopes: Gelman
& Hill 2006, chapter 13; equations with a discrepancy: Kennedy & O'Hagan 2001 (doi:10.1111/1467-9868.00294), section 4.
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
"""Degrees of freedom of the Student's t distribution of a row's residual."""
LEAST_SD = 1e-3
LEAST_VARIANCE = 1e-12
REWEIGHTINGS = 3
"""Iterations of the robust reweighting within a lineage, each at the lineage's own deviations as just estimated."""
TURNS = 2
"""Number of times the shifts are solved for, each with rows weighted at the shifts of the turn before. On the
shipped runs a third turn moves no shift by more than 0.0001 of its standard deviation."""


def in_coordinate(prior: Parameter, value: float, *, share: bool) -> tuple[float, float]:
    """Return the centre and standard deviation of a prior, as a shift from a value in its logarithm.

    Args:
        prior: the parameter before the fit.
        value: value from which shifts are counted; above 0.
        share: whether it is a share of something, whose shifts bend so that it stays below 1.
    """
    before = min(prior.value, NEARLY_ALL) if share else prior.value
    sd = max(prior.log_sd, LEAST_SD)
    if not share or value >= NEARLY_ALL:
        return math.log(before / value), sd
    odds = math.log(before / (1.0 - before)) - math.log(value / (1.0 - value))
    return odds * (1.0 - value), sd * (1.0 - value) / (1.0 - before)


def robust_weight(residual: Floats, sd: Floats) -> Floats:
    """Return the weight of residuals under Student's t: 1.2 at the centre, less for outliers."""
    weight: Floats = (FREEDOM + 1.0) / (FREEDOM + (residual / sd) ** 2)
    return weight


AGREEING = 3
"""Number of rows from which a team's median residual is trusted to tell its outliers."""


FAR = 2.0
"""Standard deviations beyond which a deviation that all rows of a team share does not count as each row's error."""


def apart_from_team(residual: Floats, sd: Floats) -> Floats:
    """Return the residuals of one team and figure, less their common deviation beyond `FAR` standard deviations.

    Where all rows are equally far from the prediction, none is an outlier. One or two rows cannot show that.

    Args:
        residual: residual of each row, `[..., row]`; each row is of another configuration.
        sd: spread of each row's residual, `[..., row]`.

    Returns:
        The remaining residuals, `[..., row]`.
    """
    return np.asarray(residual - common_far(residual, sd))


def common_far(residual: Floats, sd: Floats) -> Floats:
    """Return the common deviation of residuals beyond `FAR` standard deviations, `[..., 1]`; see `apart_from_team`."""
    if residual.shape[-1] < AGREEING:
        return np.zeros((*residual.shape[:-1], 1))
    common, within = np.median(residual, axis=-1, keepdims=True), FAR * np.median(sd, axis=-1, keepdims=True)
    return np.asarray(np.sign(common) * np.maximum(np.abs(common) - within, 0.0))


def own_sd(slopes: Floats, defaults: Floats, parameters: Parameters) -> Floats:
    """Return the spread of the model error of each single row, `[row]`.

    Args:
        slopes: slope of each row with respect to the terms of `RESIDUALS`, `[row, residual]`.
        defaults: number of decisive inputs that are defaults, `[row]`; each widens the spread.
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
    """What the lineages together reveal about the joint rows."""

    shift: Floats
    """Shift from the values at which the rows were linearised, in the logarithm, `[parameter]`."""
    covariance: Floats
    """Covariance of the shifts, `[parameter, parameter]`."""


class Hierarchy:
    """Linearised rows with the spreads that the given parameters hold."""

    def __init__(self, design: Design, parameters: Parameters, priors: Parameters) -> None:
        """Combine rows and spreads.

        Args:
            design: the rows, linearised at the values of `parameters`.
            parameters: hold the spreads, and the values from which shifts are counted.
            priors: parameter rows before any fit.
        """
        self.design, self.parameters, self.priors = design, parameters, priors

    def under(self, parameters: Parameters) -> Hierarchy:
        """Return the same rows with the spreads of other parameters."""
        return Hierarchy(self.design, parameters, self.priors)

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """Centre and standard deviation of the shift common to all lineages, for each joint row, `[parameter]` each."""
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
        """Spread of the model error of each single row, `[row]`."""
        places = [self.design.place[name] for name in RESIDUALS]
        return own_sd(self.design.all_slopes[:, places], self.design.defaults, self.parameters)

    def latent(self, rows: Numbers) -> tuple[Floats, Floats]:
        """Return the latent design of one lineage's rows, `[row, latent]`, and the latents' variances, `[latent]`."""
        latent = self.design.latent(rows)
        return latent.design, np.array([spread(self.parameters, name) ** 2 for name in latent.spreads])

    def information(self, rows: Numbers, theta: Floats) -> tuple[Floats, Floats]:
        """Return what a lineage adds to the joint rows' precision `[parameter, parameter]` and gradient `[parameter]`.

        The lineage's own deviations are integrated out.

        Args:
            rows: rows of the lineage.
            theta: shifts at which outliers are identified, `[parameter]`.
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
        """Information of each lineage at zero shift: the first turn of each population, whatever it leaves out."""
        zero = np.zeros(len(self.design.joint))
        return {name: self.information(rows, zero) for name, rows in self.design.lineages.items()}

    def population(self, without: str | None = None) -> Population:
        """Return the maximum a posteriori estimate of the shifts common to all lineages, and their covariance.

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
                    information = self.information(rows, theta) if turn else self._information_at_zero[name]
                    precision, gradient = precision + information[0], gradient + information[1]
            covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
            theta = covariance @ gradient
        return Population(shift=theta, covariance=(covariance + covariance.T) / 2.0)

    def of_new_lineage(self, population: Population) -> Floats:
        """Return the covariance of the joint rows in a lineage without measurements, `[parameter, parameter]`."""
        design = self.design.moved_together
        variance = np.array([spread(self.parameters, holder) ** 2 for holder in self.design.groups])
        covariance: Floats = population.covariance + (design * variance) @ design.T
        return covariance

    def expected(self, rows: Numbers, population: Population) -> tuple[Floats, Floats]:
        """Return the expected residuals of a new lineage's rows, `[row]`, and their shared covariance, `[row, row]`."""
        slopes, (latent, variance) = self.design.slopes[rows], self.latent(rows)
        shared = slopes @ population.covariance @ slopes.T + (latent * variance) @ latent.T
        return self.design.residual[rows] + slopes @ population.shift, shared

"""Network terms fitted to times of collectives: the equations of `performance.collectives`, inverted.

The fit is a weighted least squares of the relative errors over all sizes of all runs. It works in the logarithm of each
term, so that none is negative. The runs may not identify all terms: a single number of nodes cannot separate the
latency per node from the start-up latency. The split then follows the catalogue, whose ranges are the prior and count
for little against a measured time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.measured.network.runs import CollectiveRun
from planner.performance.collectives import RankGroup, all_reduce_s, all_to_all_s, gather_s, send_s
from planner.rates.terms import Rates, Value

Floats = npt.NDArray[np.float64]

TIMES: Mapping[str, Callable[[Floats, RankGroup, Rates], Value]] = {
    "all_reduce": all_reduce_s,
    "all_gather": gather_s,
    "reduce_scatter": gather_s,
    "alltoall": all_to_all_s,
    "sendrecv": lambda sizes, group, rates: send_s(sizes, group.crosses, rates, link_share=group.peer_share),
}
"""The planner's equation for each collective, by its name in nccl-tests."""

TIME_SD = 0.001
"""Relative standard deviation of a time in the cost: so small that the prior decides only what no time informs."""
LINE_SD = 0.1
"""Relative error of a straight line against exact times (decision 0003). A time whose samples scatter much less counts
in full."""
LEAST_TIME_SD = 0.01
"""Least relative standard deviation of a time for the ranges of terms: no time is known better."""
OPEN_RATIO, MOVED = 0.995, 0.01
"""A term was not measured if its spread is still this share of the prior's and its logarithm moved by no more than
this."""
STEP = 1e-5
"""Step in the logarithm of a term for numerical derivatives."""
MOST_STEPS, CONVERGED_RATIO = 60, 1e-8
"""The descent ends after this many steps, or when a step reduces the cost by less than this share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Prior knowledge of a term, before anything was measured."""

    value: float
    log_sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTerm:
    """A term as fitted to the runs."""

    value: float
    log_sd: float
    """Standard deviation of its logarithm, including what the runs leave undetermined."""
    informed: bool
    """Whether the runs carry information about the term."""


class Link(Enum):
    """Link that limits the rate of a run; the equations take the slower of the two.

    The value of each member is the term of its own rate.
    """

    INSIDE = "nvlink_bytes_per_s"
    """The links inside a node or rack: NVLink, else PCIe."""
    BETWEEN = "nic_bytes_per_s"
    """The network between nodes or racks."""

    @property
    def other(self) -> Link:
        """The link that does not limit the run."""
        return Link.BETWEEN if self is Link.INSIDE else Link.INSIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRun:
    """A run, the placement of its ranks, and the link that limits it."""

    run: CollectiveRun
    group: RankGroup
    link: Link

    def time_s(self, rates: Rates) -> Floats:
        """Times by the planner's equation with this link alone, `[..., size]`."""
        time = TIMES[self.run.collective](
            self.run.sizes_bytes, self.group, rates.replaced(**{self.link.other.value: float("inf")})
        )
        return np.asarray(time, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFit:
    """Terms fitted to runs."""

    terms: dict[str, FittedTerm]
    residual_ratio: float
    """Root mean square of the remaining relative errors, with the weights of the times."""


def fit_network(placed: Sequence[PlacedRun], rates: Rates, priors: Mapping[str, Prior]) -> NetworkFit:
    """Fit terms to runs.

    Args:
        placed: the runs.
        rates: mid values of all terms; the terms in `priors` are replaced.
        priors: priors of the fitted terms, by name.
    """
    problem = _Problem(placed, rates, priors)
    best = problem.descend(np.zeros(len(priors)))
    residual = problem.residual(best)
    sds = problem.log_sds(best, max(residual, LEAST_TIME_SD))
    terms = {
        name: FittedTerm(
            value=prior.value * float(np.exp(shift)),
            log_sd=float(sd),
            informed=bool(sd < OPEN_RATIO * prior.log_sd or abs(shift) > MOVED),
        )
        for (name, prior), shift, sd in zip(priors.items(), best, sds, strict=True)
    }
    return NetworkFit(terms=terms, residual_ratio=residual)


class _Problem:
    """Errors, their derivatives and the cost, as functions of shifts of the logarithms of the terms, `[term]`."""

    def __init__(self, placed: Sequence[PlacedRun], rates: Rates, priors: Mapping[str, Prior]) -> None:
        self._placed = placed
        self._rates = rates
        self._values = {name: prior.value for name, prior in priors.items()}
        self._precision = np.array([prior.log_sd**-2.0 for prior in priors.values()])
        self._log_times = np.log(np.concatenate([item.run.times_s for item in placed]))
        self._weights = np.concatenate([_weights(item.run) for item in placed])

    def errors(self, shifts: Floats) -> Floats:
        """Logarithm of predicted over measured times, `[..., size]`, for shifts `[..., term]`."""
        values = {
            name: value * np.exp(shifts[..., index, None]) for index, (name, value) in enumerate(self._values.items())
        }
        rates = self._rates.replaced(**values)
        times_s = np.concatenate([item.time_s(rates) for item in self._placed], axis=-1)
        return np.asarray(np.log(times_s) - self._log_times)

    def residual(self, shifts: Floats) -> float:
        """Root mean square of the errors, with the weights of the times."""
        squared = (self._weights * self.errors(shifts)) ** 2
        return float(np.sqrt(squared.sum() / (self._weights**2).sum()))

    def cost(self, shifts: Floats) -> float:
        """Half the sum of the squared errors and squared shifts from the prior, each over its standard deviation."""
        errors = self._weights * self.errors(shifts) / TIME_SD
        return 0.5 * float(errors @ errors + self._precision @ shifts**2)

    def derivatives(self, shifts: Floats, errors: Floats) -> Floats:
        """Derivatives of the errors with respect to the shifts, `[size, term]`."""
        shifted_errors = self.errors(shifts + STEP * np.eye(len(shifts)))
        return np.asarray((shifted_errors - errors).T / STEP)

    def descend(self, start: Floats) -> Floats:
        """Minimise the cost by the Levenberg-Marquardt method (Marquardt 1963, doi 10.1137/0111030)."""
        shifts, cost, damping = start, self.cost(start), 1e-3
        for _ in range(MOST_STEPS):
            errors = self.errors(shifts)
            slopes = self._weights[:, None] * self.derivatives(shifts, errors)
            errors = self._weights * errors
            curvature = slopes.T @ slopes / TIME_SD**2 + np.diag(self._precision)
            downhill = slopes.T @ errors / TIME_SD**2 + self._precision * shifts
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), -downhill)
            candidate = shifts + np.clip(step, -2.0, 2.0)
            if (candidate_cost := self.cost(candidate)) < cost:
                reduction = cost - candidate_cost
                shifts, cost, damping = candidate, candidate_cost, damping / 5.0
                if reduction < CONVERGED_RATIO * (1.0 + cost):
                    break
            else:
                damping *= 5.0
        return shifts

    def log_sds(self, shifts: Floats, time_sd: float) -> Floats:
        """Standard deviation of each term's logarithm if times have the relative standard deviation `time_sd`."""
        slopes = self._weights[:, None] * self.derivatives(shifts, self.errors(shifts))
        covariance = np.linalg.inv(slopes.T @ slopes / time_sd**2 + np.diag(self._precision))
        return np.asarray(np.sqrt(np.diag(covariance)))


def _weights(run: CollectiveRun) -> Floats:
    """Weight of each time, `[size]`: 1, and less if its samples scatter widely."""
    if run.sampled_sds is None:
        return np.ones(len(run.times_s))
    return np.asarray(LINE_SD / np.hypot(LINE_SD, run.sampled_sds))

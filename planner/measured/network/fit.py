"""From times of collectives to the terms of the network: the equations of `performance.collectives`, inverted.

Weighted least squares of the relative errors over all sizes of all runs, in the logarithm of each term, so that none
is negative. What the runs leave open (one number of nodes does not tell the latency per node from that of the start)
is divided as the catalogue has it: its ranges are the prior, and count for little against a measured time.
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
    "sendrecv": lambda sizes, group, rates: send_s(sizes, group.crosses, rates),
}
"""The planner's equation of each collective, by the name that nccl-tests gives it."""

TIME_SD = 0.001
"""Relative standard deviation of a time, for its weight: so small that the prior decides only what no time tells."""
LINE_SD = 0.1
"""What a straight line leaves of exact times (decision 0003): a time whose samples spread less counts in full."""
LEAST_TIME_SD = 0.01
"""The same for the ranges: no time is known better."""
OPEN_RATIO, MOVED = 0.995, 0.01
"""A term whose spread is still this much of the prior's, and whose logarithm moved by less, was not measured."""
STEP = 1e-5
"""Of the logarithm of a term, for its derivative."""
MOST_STEPS, CONVERGED_RATIO = 60, 1e-8
"""When the descent ends: after so many steps, or when one gains no more than this of the cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What is known of a term before anything was measured."""

    value: float
    log_sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTerm:
    """A term as the runs have it."""

    value: float
    log_sd: float
    """Of its logarithm, with what the runs leave open of it."""
    informed: bool
    """Whether the runs say anything of it."""


class Link(Enum):
    """What limits the rate of a run; the equations have the slower of the two."""

    INSIDE = "nic_bytes_per_s"
    """The links inside a node or rack: NVLink, else PCIe. Its value is the term that does not count."""
    BETWEEN = "nvlink_bytes_per_s"
    """The network between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRun:
    """A run, where its ranks sit, and what limits it."""

    run: CollectiveRun
    group: RankGroup
    link: Link

    def time_s(self, rates: Rates) -> Floats:
        """By the planner's equation with this link alone, `[..., size]`."""
        time = TIMES[self.run.collective](
            self.run.sizes_bytes, self.group, rates.replaced(**{self.link.value: float("inf")})
        )
        return np.asarray(time, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFit:
    """Terms fitted to runs."""

    terms: dict[str, FittedTerm]
    residual_ratio: float
    """Root mean square of the relative errors that remain, each by what its time counts for."""


def fit_network(placed: Sequence[PlacedRun], rates: Rates, priors: Mapping[str, Prior]) -> NetworkFit:
    """Fit terms to runs.

    Args:
        placed: the runs.
        rates: mid values of all terms; those of `priors` are replaced.
        priors: of the terms that are fitted, by name.
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
    """Errors, their derivatives and the cost at shifts of the logarithms of the terms, `[term]`."""

    def __init__(self, placed: Sequence[PlacedRun], rates: Rates, priors: Mapping[str, Prior]) -> None:
        self._placed = placed
        self._rates = rates
        self._values = {name: prior.value for name, prior in priors.items()}
        self._precision = np.array([prior.log_sd**-2.0 for prior in priors.values()])
        self._log_times = np.log(np.concatenate([item.run.times_s for item in placed]))
        self._weights = np.concatenate([_weights(item.run) for item in placed])

    def errors(self, shifts: Floats) -> Floats:
        """Logarithm of predicted over measured times; `shifts` `[..., term]` give `[..., size]`."""
        values = {name: value * np.exp(shifts[..., at, None]) for at, (name, value) in enumerate(self._values.items())}
        rates = self._rates.replaced(**values)
        times_s = np.concatenate([item.time_s(rates) for item in self._placed], axis=-1)
        return np.asarray(np.log(times_s) - self._log_times)

    def residual(self, shifts: Floats) -> float:
        """Root mean square of the errors, by the weights of the times."""
        squared = (self._weights * self.errors(shifts)) ** 2
        return float(np.sqrt(squared.sum() / (self._weights**2).sum()))

    def cost(self, shifts: Floats) -> float:
        """Half the sum of squared errors and of the distance to the prior, each over its spread."""
        errors = self._weights * self.errors(shifts) / TIME_SD
        return 0.5 * float(errors @ errors + self._precision @ shifts**2)

    def derivatives(self, shifts: Floats, errors: Floats) -> Floats:
        """Of the errors, `[size, term]`."""
        beside = self.errors(shifts + STEP * np.eye(len(shifts)))
        return np.asarray((beside - errors).T / STEP)

    def descend(self, start: Floats) -> Floats:
        """Levenberg and Marquardt's method (Marquardt 1963, doi 10.1137/0111030)."""
        shifts, cost, damping = start, self.cost(start), 1e-3
        for _ in range(MOST_STEPS):
            errors = self.errors(shifts)
            slopes = self._weights[:, None] * self.derivatives(shifts, errors)
            errors = self._weights * errors
            curvature = slopes.T @ slopes / TIME_SD**2 + np.diag(self._precision)
            downhill = slopes.T @ errors / TIME_SD**2 + self._precision * shifts
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), -downhill)
            there = shifts + np.clip(step, -2.0, 2.0)
            if (cost_there := self.cost(there)) < cost:
                gained = cost - cost_there
                shifts, cost, damping = there, cost_there, damping / 5.0
                if gained < CONVERGED_RATIO * (1.0 + cost):
                    break
            else:
                damping *= 5.0
        return shifts

    def log_sds(self, shifts: Floats, time_sd: float) -> Floats:
        """Standard deviation of each term's logarithm, where times have this relative one."""
        slopes = self._weights[:, None] * self.derivatives(shifts, self.errors(shifts))
        covariance = np.linalg.inv(slopes.T @ slopes / time_sd**2 + np.diag(self._precision))
        return np.asarray(np.sqrt(np.diag(covariance)))


def _weights(run: CollectiveRun) -> Floats:
    """What each time counts for, `[size]`: 1, and less where its samples lie far apart."""
    if run.sampled_sds is None:
        return np.ones(len(run.times_s))
    return np.asarray(LINE_SD / np.hypot(LINE_SD, run.sampled_sds))

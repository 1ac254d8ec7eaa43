"""Linearised rows with what they have in common: all of the hierarchical model that its spreads do not touch.

Tuning tries hundreds of spreads on the same rows; what stands here is worked out once for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.calibration.linear import Linear, Observation
from planner.calibration.spreads import BY_PART, RESIDUALS, deviation_groups, joint_ids
from planner.lazy import dataclass
from planner.rates.ladder import part_label
from planner.rates.parameters import Figure, Parameters
from planner.rates.terms import Floats
from planner.validation.predict import decisive_defaults
from planner.validation.runs import one_configuration

Numbers = npt.NDArray[np.intp]
"""Numbers of rows."""

LINEAGE_POWER = 0.6
"""A lineage with n series weighs n to this power among the others, so that no grid or table decides alone."""
TIER_WEIGHT = {"A": 1.0, "B": 0.7, "C": 0.3}
"""By how sure the reading of a row is; rows that do not say are the user's own."""


def model_ids(parameters: Parameters) -> list[str]:
    """Every row of parameters whose slopes the model needs."""
    return [*joint_ids(parameters), *BY_PART, *RESIDUALS]


def repeats(observations: Sequence[Observation]) -> list[list[int]]:
    """Numbers of the rows of one series and metric, in the order of the first of each."""
    return _alike((observation.series, observation.run.metric) for observation in observations)


def own_repeats(observations: Sequence[Observation]) -> list[list[int]]:
    """Numbers of the rows of one team that say one thing of one configuration, in the order of the first of each.

    A speed in tokens per second is the same measurement as an MFU; rows need no series to be of one configuration.
    """
    return _alike(
        (o.run.series or one_configuration(o.run), o.run.metric if o.run.metric in APART else o.figure)
        for o in observations
    )


APART = ("energy_mwh", "avg_node_power_w")
"""Metrics that say something else than the others of their figure."""


def _alike(keys: Iterable[Hashable]) -> list[list[int]]:
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for number, key in enumerate(keys):
        groups[key].append(number)
    return list(groups.values())


def vote_weight(groups: Iterable[Sequence[int]], count: int) -> Floats:
    """One over the size of a row's group, `[row]`: a group weighs as one row.

    Args:
        groups: numbers of rows; each row is in one group.
        count: of rows.
    """
    weight = np.zeros(count)
    for members in groups:
        weight[members] = 1.0 / len(members)
    return weight


def count_defaults(observations: Sequence[Observation]) -> Floats:
    """How many inputs that decide are defaults, `[row]`."""
    return np.array([float(decisive_defaults(observation.prepared)) for observation in observations])


def part_labels(observations: Sequence[Observation], parameters: Parameters, name: str) -> npt.NDArray[np.str_]:
    """GPU, architecture or model of each observation, as a row of `BY_PART` is drawn apart for it, `[row]`."""
    prepared = [observation.prepared for observation in observations]
    return np.array([part_label(parameters, name, run.cluster, run.recipe) for run in prepared])


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """What the rows of one lineage have in common beyond the shared parameters."""

    design: Floats
    """How what the lineage, its GPUs and its models have of their own moves each row, `[row, latent]`."""
    spreads: tuple[str, ...]
    """Name of the spread of each of these, `[latent]`."""


class Design:
    """Linearised rows, grouped by lineage, and within it by GPU, architecture and model."""

    def __init__(self, observations: Sequence[Observation], linear: Linear, parameters: Parameters) -> None:
        """Put the rows together.

        Args:
            observations: the rows.
            linear: their residuals and slopes by `model_ids`.
            parameters: say which rows of parameters move, and which of them move together within a lineage.
        """
        self.observations, self.residual = observations, linear.residual
        self.all_slopes: Floats = linear.slopes
        self.joint = joint_ids(parameters)
        self.groups = deviation_groups(parameters)
        self.labels = {name: part_labels(observations, parameters, name) for name in BY_PART}
        self.place = {name: number for number, name in enumerate(model_ids(parameters))}
        self._latents: dict[bytes, Latent] = {}

    @property
    def slopes(self) -> Floats:
        """By the parameters with a joint posterior, `[row, parameter]`."""
        return self.all_slopes[:, : len(self.joint)]

    @cached_property
    def moved_together(self) -> Floats:
        """Which joint rows each deviation of a lineage moves: 1 or 0, `[parameter, deviation]`."""
        design = np.zeros((len(self.joint), len(self.groups)))
        for number, members in enumerate(self.groups.values()):
            design[[self.place[name] for name in members], number] = 1.0
        return design

    @cached_property
    def figures(self) -> npt.NDArray[np.str_]:
        """The figure of each row."""
        return np.array([observation.figure for observation in self.observations])

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
        tiers = [TIER_WEIGHT.get(o.run.tier or "A", TIER_WEIGHT["B"]) for o in self.observations]
        weight: Floats = vote_weight(repeats(self.observations), len(self.observations)) * np.array(tiers)
        for rows in self.lineages.values():
            for figure in Figure:
                members = rows[self.figures[rows] == figure]
                if len(members):
                    weight[members] *= weight[members].sum() ** (LINEAGE_POWER - 1.0)
        return weight

    @cached_property
    def defaults(self) -> Floats:
        """How many inputs that decide are defaults, `[row]`."""
        return count_defaults(self.observations)

    def latent(self, rows: Numbers) -> Latent:
        """What rows of one lineage have in common."""
        key = rows.tobytes()
        if key not in self._latents:
            self._latents[key] = self._latent(rows)
        return self._latents[key]

    def _latent(self, rows: Numbers) -> Latent:
        parts, spreads = [self.slopes[rows] @ self.moved_together], [*self.groups]
        for name, labels in self.labels.items():
            slope = self.all_slopes[rows, self.place[name]]
            if slope.any():
                present = np.unique(labels[rows])
                parts.append((labels[rows][:, None] == present) * slope[:, None])
                spreads += [name] * len(present)
        return Latent(design=np.hstack(parts), spreads=tuple(spreads))

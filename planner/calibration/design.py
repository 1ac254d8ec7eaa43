"""Linearised rows with the structure that they share: the parts of the hierarchical model that no spread affects.

Tuning tries hundreds of spreads on the same rows, so these parts are computed once for all of them.
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
"""Row indices."""

LINEAGE_POWER = 0.6
"""A lineage with n series weighs n to this power among the others, so that no grid or table dominates."""
TIER_WEIGHT = {"A": 1.0, "B": 0.7, "C": 0.3}
"""Weight of a row by the confidence in its reading. Rows without a tier are the user's own and count as tier A."""


def model_ids(parameters: Parameters) -> list[str]:
    """Return the id of every parameter row whose slopes the model needs."""
    return [*joint_ids(parameters), *BY_PART, *RESIDUALS]


def repeats(observations: Sequence[Observation]) -> list[list[int]]:
    """Return the indices of the rows of each series and metric, in the order of the first row of each."""
    return _alike((observation.series, observation.run.metric) for observation in observations)


def own_repeats(observations: Sequence[Observation]) -> list[list[int]]:
    """Group the rows of one team that measure the same quantity of one configuration.

    Each group is a list of row indices; the groups are in the order of their first rows. A throughput in tokens per
    second is the same measurement as an MFU. Rows need no series to belong to one configuration.
    """
    return _alike(
        (o.run.series or one_configuration(o.run), o.run.metric if o.run.metric in SEPARATE_METRICS else o.figure)
        for o in observations
    )


ENERGY = "energy"
SEPARATE_METRICS = {"energy_mwh": ENERGY, "avg_node_power_w": "node_power"}
"""Metrics that measure something different from the other metrics of their figure, with what they measure."""


def _alike(keys: Iterable[Hashable]) -> list[list[int]]:
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for number, key in enumerate(keys):
        groups[key].append(number)
    return list(groups.values())


def vote_weight(groups: Iterable[Sequence[int]], count: int) -> Floats:
    """Return 1 over the size of each row's group, `[row]`, so that a group weighs as much as one row.

    Args:
        groups: row indices; each row is in one group.
        count: number of rows.
    """
    weight = np.zeros(count)
    for members in groups:
        weight[members] = 1.0 / len(members)
    return weight


def count_defaults(observations: Sequence[Observation]) -> Floats:
    """Return the number of decisive inputs that are defaults, `[row]`."""
    return np.array([float(decisive_defaults(observation.prepared)) for observation in observations])


def part_labels(observations: Sequence[Observation], parameters: Parameters, name: str) -> npt.NDArray[np.str_]:
    """Return the GPU, architecture or model of each observation that a row of `BY_PART` distinguishes, `[row]`."""
    prepared = [observation.prepared for observation in observations]
    return np.array([part_label(parameters, name, run.cluster, run.recipe) for run in prepared])


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Deviations that the rows of one lineage have in common beyond the shared parameters."""

    design: Floats
    """Effect on each row of the deviations of the lineage, its GPUs and its models, `[row, latent]`."""
    spreads: tuple[str, ...]
    """Name of the spread of each latent deviation, `[latent]`."""


class Design:
    """Linearised rows, grouped by lineage, and within it by GPU, architecture and model."""

    def __init__(self, observations: Sequence[Observation], linear: Linear, parameters: Parameters) -> None:
        """Combine the rows.

        Args:
            observations: the rows.
            linear: their residuals and slopes with respect to `model_ids`.
            parameters: define which parameter rows move, and which of them move together within a lineage.
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
        """Slopes with respect to the parameters that have a joint posterior, `[row, parameter]`."""
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
        """Figure of each row, `[row]`."""
        return np.array([observation.figure for observation in self.observations])

    @cached_property
    def lineages(self) -> dict[str, Numbers]:
        """Row indices by lineage."""
        rows: dict[str, list[int]] = defaultdict(list)
        for number, observation in enumerate(self.observations):
            rows[observation.lineage].append(number)
        return {name: np.array(rows[name]) for name in sorted(rows)}

    @cached_property
    def weight(self) -> Floats:
        """Weight of each row, `[row]`: 1 over the size of its series, times the tier weight, less in large lineages."""
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
        """Number of decisive inputs that are defaults, `[row]`."""
        return count_defaults(self.observations)

    def latent(self, rows: Numbers) -> Latent:
        """Return the deviations that rows of one lineage have in common, cached by the rows."""
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

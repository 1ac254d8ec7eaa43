"""Where a number comes from, and how sure it is: `Evidence`, `Estimate`, `Gap`, `Assumption`."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

from planner.errors import Message, MessageValue
from planner.lazy import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class EvidenceKind(StrEnum):
    """The ladder of evidence, best first; each step down widens the range."""

    MEASURED = "measured"
    """Measured on this GPU by `mpplan probe` or on the user's nodes by nccl-tests, imported from a tool that measured
    there (the source says so), or learned from their own runs by `mpplan calibrate`."""
    SHIPPED = "shipped"
    """Measured elsewhere by this tool and shipped with the package."""
    PUBLISHED = "published"
    """A published measurement or price of the same thing."""
    TRANSFERRED = "transferred"
    """Scaled from a measured GPU by the ratio of their limits."""
    DATASHEET = "datasheet"
    """A vendor's specification."""
    ASSUMED = "assumed"
    """Our assumption, or a rule of the field; stated as such."""
    GIVEN = "given"
    """Stated by the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One source behind one or more numbers of an answer."""

    id: str
    """Stable within one document, for example `gpu:h100-sxm5-80gb` or `price:p087`."""
    kind: EvidenceKind
    """Rung of the ladder."""
    what: str
    """What the source states, with its value and unit."""
    source: str
    """Where it can be looked up."""
    date: str | None = None
    """ISO date or year of the source; None where the source has none."""
    gpu: str | None = None
    """Catalogue id of the GPU that it describes, if it describes one."""
    used_in: tuple[str, ...] = ()
    """Names of the figures that rest on it, for example `cost_usd`, `step_s.matmul`."""
    precisions: tuple[str, ...] = ()
    """Precisions whose plans rest on it; empty where all of an answer's do."""
    terms: tuple[str, ...] = ()
    """Names of the terms (`catalog/parameters.csv`) that it gives; empty where it gives none."""
    public: bool = False
    """Whether its text is the package's own, or a number; else it may hold what the user named (files, vendors,
    providers, models), and a copy without names hides it."""


LOW_PERCENT, HIGH_PERCENT = 5.0, 95.0
"""Percentiles of draws that are the ends of a range."""
Z90 = 1.6448536269514722
"""Standard deviations of a normal distribution from its middle to each of these ends."""


def middle(draws: npt.ArrayLike) -> float:
    """The middle of draws of any shape: their geometric mean; the median where one of them is not above 0.

    A run's figures are products of many uncertain factors, so that the geometric mean is close to the median (at most
    2 % from it), differs a fifth as much from seed to seed, and multiplies: the mid of a product of figures is the
    product of their mids, and that of a reciprocal the reciprocal (`docs/decisions/0015-geometric-means.md`).
    """
    import numpy as np  # commands that draw nothing start without it

    values = np.asarray(draws, dtype=np.float64)
    if not np.all(values > 0):
        return median(values)
    return min(max(float(np.exp(np.mean(np.log(values)))), float(values.min())), float(values.max()))


def median(values: npt.NDArray[np.float64]) -> float:
    """The median of values of any shape, at least one; `numpy.median` imports the masked arrays before its first."""
    import numpy as np  # commands that draw nothing start without it

    half, is_even = divmod(values.size - 1, 2)
    in_order = np.partition(values.ravel(), (half, half + is_even))
    return float(in_order[half] + in_order[half + is_even]) / 2.0


def _percentile(in_order: npt.NDArray[np.float64], percent: float) -> float:
    """A percentile of sorted values, to the last digit that of `numpy.percentile`, which takes ten times as long."""
    place = (len(in_order) - 1) * (percent / 100.0)
    before = math.floor(place)
    low, high = float(in_order[before]), float(in_order[min(before + 1, len(in_order) - 1)])
    share = place - before
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1.0 - share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A quantity with its 5th percentile, its middle and its 95th percentile; `high` is the figure to budget with."""

    low: float
    mid: float
    high: float
    at_least: bool = False
    """True where something is missing, so that the figure is a lower bound, shown with `≥`."""

    def __post_init__(self) -> None:
        if not self.low <= self.mid <= self.high:
            raise ValueError(f"not ordered: {self.low} {self.mid} {self.high}")

    @classmethod
    def exactly(cls, value: float) -> Estimate:
        """A quantity without a range."""
        return cls(low=value, mid=value, high=value)

    @classmethod
    def of_draws(cls, values: npt.ArrayLike, *, mid: float | None = None, at_least: bool = False) -> Estimate:
        """The range of draws of any shape; a single value has a range of width 0.

        Between two draws it is interpolated linearly (Hyndman and Fan 1996, type 7, the default of `numpy`).

        Args:
            values: the draws.
            mid: of a product or a sum, the product or the sum of the mids of its parts, which is what a reader gets who
                multiplies or adds them; the range is widened to it where needed. None: the `middle` of the draws.
            at_least: whether something is missing, so that the figure is a lower bound.
        """
        import numpy as np  # commands that draw nothing start without it

        draws = np.asarray(values, dtype=np.float64)
        in_order = np.sort(draws, axis=None)
        low, high = _percentile(in_order, LOW_PERCENT), _percentile(in_order, HIGH_PERCENT)
        centre = middle(draws) if mid is None else mid
        return cls(low=min(low, centre), mid=centre, high=max(high, centre), at_least=at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Something that is missing and what that does to the answer."""

    key: str
    """For example `power`; `gap.power.what`, `gap.power.why` and `gap.power.effect` are its three sentences."""
    values: tuple[tuple[str, MessageValue], ...] = ()
    """What the three sentences name, by name."""

    @classmethod
    def of(cls, key: str, /, **values: MessageValue) -> Gap:
        """A gap with its values by name."""
        return cls(key=key, values=tuple(values.items()))

    @property
    def what(self) -> Message:
        """What is missing."""
        return Message(f"gap.{self.key}.what", self.values)

    @property
    def why(self) -> Message:
        """Why it is missing."""
        return Message(f"gap.{self.key}.why", self.values)

    @property
    def effect(self) -> Message:
        """What that does to the answer, and what would mend it."""
        return Message(f"gap.{self.key}.effect", self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Something taken for granted that the user could state instead."""

    id: str
    message: Message
    """A plain sentence with the value in it."""
    input: str | None = None
    """Name of the input of the question that replaces it."""

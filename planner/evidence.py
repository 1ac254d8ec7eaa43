"""The source and the uncertainty of numbers: `Evidence`, `Estimate`, `Gap`, `Assumption`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
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
    """Where the source can be found."""
    date: str | None = None
    """ISO date or year of the source; None if it has none."""
    gpu: str | None = None
    """Catalogue id of the GPU that it describes, if any."""
    used_in: tuple[str, ...] = ()
    """Names of the figures that depend on it, for example `cost_usd`, `step_s.matmul`."""
    precisions: tuple[str, ...] = ()
    """Precisions whose plans depend on it; empty if all of an answer's precisions do."""
    terms: tuple[str, ...] = ()
    """Names of the terms (`catalog/parameters.csv`) for which it gives values; empty if none."""
    public: bool = False
    """Whether its text is the package's own, or a number. Otherwise it may contain names from the user (files, vendors,
    providers, models) and is hidden in a copy without names."""


LOW_PERCENT, HIGH_PERCENT = 5.0, 95.0
"""Percentiles of the draws at the ends of a range."""
Z90 = 1.6448536269514722
"""Distance of these percentiles from the mean of a normal distribution, in standard deviations."""


def middle(draws: npt.ArrayLike) -> float:
    """The middle of draws of any shape: their geometric mean, or the median if any draw is not above 0.

    A run's figures are products of many uncertain factors. Their geometric mean is therefore close to the median (at
    most 2 % from it), varies a fifth as much between seeds, and is multiplicative: the mid of a product of figures is
    the product of their mids, and the mid of a reciprocal is the reciprocal of the mid
    (`docs/decisions/0015-geometric-means.md`).
    """
    import numpy as np  # commands that draw nothing start without it

    values = np.asarray(draws, dtype=np.float64)
    return _middle_within(values, float(values.min()), float(values.max()))


def _middle_within(values: npt.NDArray[np.float64], least: float, most: float) -> float:
    """The `middle` of draws whose extremes are known."""
    import numpy as np  # commands that draw nothing start without it

    if not least > 0.0 or math.isnan(most):
        return median(values)
    logs = np.log(values)
    mean_log = np.add.reduce(logs, axis=None) / logs.size  # `numpy.mean` without its checks
    return min(max(float(np.exp(mean_log)), least), most)


def median(values: npt.NDArray[np.float64]) -> float:
    """The median of at least one value, in any shape; unlike `numpy.median`, without importing masked arrays."""
    import numpy as np  # commands that draw nothing start without it

    half, is_even = divmod(values.size - 1, 2)
    in_order = np.partition(values.ravel(), (half, half + is_even))
    return float(in_order[half] + in_order[half + is_even]) / 2.0


def _percentile(in_order: npt.NDArray[np.float64], percent: float) -> float:
    """A percentile of sorted values, identical to the result of `numpy.percentile`, which takes ten times as long."""
    place = (len(in_order) - 1) * (percent / 100.0)
    before = math.floor(place)
    low, high = float(in_order[before]), float(in_order[min(before + 1, len(in_order) - 1)])
    share = place - before
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1.0 - share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A quantity with its 5th percentile, its middle and its 95th percentile; budget with `high`."""

    low: float
    mid: float
    high: float
    at_least: bool = False
    """Whether something is missing, so that the figure is a lower bound, shown with `≥`."""

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

        Percentiles are interpolated linearly between draws (Hyndman and Fan 1996, type 7, the default of `numpy`).

        Args:
            values: the draws.
            mid: for a product or a sum, the product or the sum of the mids of its parts, which a reader gets by
                multiplying or adding them; the range is widened to include it. None for the `middle` of the draws.
            at_least: whether something is missing, so that the figure is a lower bound.
        """
        import numpy as np  # commands that draw nothing start without it

        draws = np.asarray(values, dtype=np.float64)
        in_order = np.sort(draws, axis=None)
        low, high = _percentile(in_order, LOW_PERCENT), _percentile(in_order, HIGH_PERCENT)
        centre = _middle_within(draws, float(in_order[0]), float(in_order[-1])) if mid is None else mid
        return cls(low=min(low, centre), mid=centre, high=max(high, centre), at_least=at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Missing information and its effect on the answer."""

    key: str
    """For example `power`, with the three sentences `gap.power.what`, `gap.power.why` and `gap.power.effect`."""
    values: tuple[tuple[str, MessageValue], ...] = ()
    """Values in the three sentences, by name."""

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
        """The effect on the answer, and the remedy."""
        return Message(f"gap.{self.key}.effect", self.values)


ROWS = "rows"
"""Name of the value of a message that lists what it is about."""


def distinct_gaps(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return each gap once, in order; those of several GPUs that differ only in their `rows` become one."""
    groups: dict[Gap, dict[Gap, None]] = {}
    for gap in gaps:
        alike = Gap(key=gap.key, values=tuple((name, "" if name == ROWS else value) for name, value in gap.values))
        groups.setdefault(alike, {})[gap] = None
    return tuple(_united(list(group)) for group in groups.values())


def _united(group: list[Gap]) -> Gap:
    """Return one gap with the rows of all gaps of a group, each row once."""
    if len(group) == 1:
        return group[0]
    rows = tuple(dict.fromkeys(row for gap in group for row in _single(dict(gap.values)[ROWS])))
    return Gap(
        key=group[0].key, values=tuple((name, rows if name == ROWS else value) for name, value in group[0].values)
    )


def _single(rows: MessageValue) -> Iterator[str | int | float | Message]:
    """Yield the single rows of a list, whose items may be messages that only hold a list."""
    if isinstance(rows, tuple):
        for row in rows:
            yield from _single(row)
    elif isinstance(rows, Message) and [name for name, _ in rows.values] == [ROWS]:
        yield from _single(rows.values[0][1])
    else:
        yield rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """An assumption that the user could replace by stating the value."""

    id: str
    message: Message
    """A plain sentence that contains the assumed value."""
    input: str | None = None
    """Name of the input of the question that replaces it."""

"""The uncertain inputs of the equations: `Rates` as numbers or draws, `RateSet` as terms with range and evidence.

`ladder.resolve_rates` makes a `RateSet`; `RateSet.sample` turns it into mid values (`draws=None`) or draws `[draw]`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from planner.evidence import Evidence
from planner.rates.parameters import Family

Value = float | npt.NDArray[np.float64]
"""One value, or draws of it `[draw]`; the arithmetic is the same."""


class Rates:
    """Every uncertain input of the equations by name, each a scalar or draws `[draw]`.

    The names are those of the terms that `catalog/parameters.csv` declares: a new row there is an attribute here
    (`rates.fusion_ratio`). A contract test holds what the equations read to what the file declares.
    """

    def __init__(self, **values: Value) -> None:
        self.__dict__.update(values)

    def replaced(self, **values: Value) -> Rates:
        """The same with some values replaced."""
        return Rates(**(vars(self) | values))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Value:
            """The value of a term.

            Raises:
                AttributeError: no such term (a mistake of ours).
            """


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One uncertain input: mid, spread, and where it comes from."""

    name: str
    value: float
    """At mid, in the unit that the name ends in."""
    log_sd: float
    """Standard deviation of its logarithm."""
    ceiling: float
    """Largest value that makes sense (1 for a share)."""
    family: Family
    """What its rows declare: label, figures that rest on it, what would narrow it, when it has an effect."""
    evidence: Evidence
    own_draws: str = ""
    """Set where the term is drawn independently of the same term in other precisions."""

    @property
    def drawn_as(self) -> str:
        """Name of its draws: a term has the same draws in every precision, GPU and layout."""
        return self.name + self.own_draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Common random numbers: the same input gets the same draws in every precision, GPU and layout."""

    count: int
    seed: int

    def normal(self, name: str) -> npt.NDArray[np.float64]:
        """Standard normal draws of one input, `[draw]`."""
        return _normal(self.count, self.seed, name)


@cache
def _normal(count: int, seed: int, name: str) -> npt.NDArray[np.float64]:
    drawn = np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(count)
    drawn.flags.writeable = False
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSet:
    """The terms of one GPU, stack and policy."""

    terms: Mapping[str, Term]

    def sample(self, draws: Draws | None = None, only: str | None = None) -> Rates:
        """Mid values (`draws=None`) or draws `[draw]`; with `only`, just that term varies."""
        values: dict[str, Value] = {}
        for name, term in self.terms.items():
            vary = draws is not None and term.log_sd > 0 and (only is None or only == name)
            values[name] = self._draw(term, draws) if vary and draws is not None else term.value
        return Rates(**values)

    @staticmethod
    def _draw(term: Term, draws: Draws) -> Value:
        # Compute types share their silicon: one GPU's FP8 and BF16 rates err together, so they share draws by name.
        return np.minimum(term.value * np.exp(term.log_sd * draws.normal(term.drawn_as)), term.ceiling)

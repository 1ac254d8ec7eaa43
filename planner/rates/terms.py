"""The uncertain inputs of the equations: `Rates` as numbers or draws, `RateSet` as terms with range and evidence.

`ladder.resolve_rates` makes a `RateSet`; `RateSet.sample` turns it into mid values (`draws=None`) or draws `[draw]`.
A term depends on rows of `catalog/parameters.csv`. The rows are drawn, jointly from the posterior of the fit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from planner.evidence import Evidence
from planner.kernels.power import ProductPower
from planner.kernels.surface import Surface
from planner.lazy import dataclass
from planner.rates.parameters import Family, Parameter, Parameters, evidence_of, moved

Floats = npt.NDArray[np.float64]
Value = float | Floats
"""One value or its draws, `[draw]`; the arithmetic is the same."""

Shifts = Mapping[str, Floats]
"""Shifts of rows of `catalog/parameters.csv` in their logarithms, by id; `[draw]` each."""


class Rates:
    """Every uncertain input of the equations by name, each a scalar or draws `[draw]`.

    The names are those of the terms that `catalog/parameters.csv` declares: a new row there becomes an attribute here
    (`rates.fusion_ratio`). A contract test checks that the equations read exactly the terms that the file declares.
    """

    __slots__ = ("__dict__", "_centre", "_powers", "_surfaces")

    def __init__(
        self,
        surfaces: Mapping[str, Surface] | None = None,
        powers: Mapping[str, ProductPower] | None = None,
        centre: int | None = None,
        **values: Value,
    ) -> None:
        self._surfaces = surfaces or {}
        self._powers = powers or {}
        self._centre = centre
        self.__dict__.update(values)

    def replaced(self, **values: Value) -> Rates:
        """A copy with some values replaced."""
        return Rates(self._surfaces, self._powers, self._centre, **(vars(self) | values))

    def without_surfaces(self) -> Rates:
        """A copy without surfaces: one rate for all shapes."""
        return Rates(None, self._powers, self._centre, **vars(self))

    @property
    def centre(self) -> int | None:
        """Index of the draw with every input at its mid value; None if no such draw is known."""
        return self._centre

    def surface(self, name: str) -> Surface | None:
        """Surface of a rate by shape, by the name of the rate or of a collective operation; None if not measured."""
        return self._surfaces.get(name)

    def power(self, name: str) -> ProductPower | None:
        """Power draw by shape of products at the rate of that name; None if unknown."""
        return self._powers.get(name)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Value:
            """The value of a term.

            Raises:
                AttributeError: no such term (a programming error).
            """


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """How a term depends on a row of `catalog/parameters.csv`."""

    row: Parameter
    share: bool = False
    """Whether the row is a share, whose shifts are bent to keep it below 1 (`parameters.moved`)."""
    power: float = 1.0
    """The term is proportional to this power of the row's value."""
    apart: str = ""
    """The GPU, architecture or model for which a row shared by many is drawn separately; empty if it is not."""

    def log_change(self, shift: Value) -> Value:
        """Change of the term's logarithm when the row is shifted by `shift` in its logarithm."""
        if not self.share:
            return self.power * shift
        bent: Value = self.power * np.log(moved(self.row.value, shift, share=True) / self.row.value)
        return bent


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One uncertain input: mid value, spread and source."""

    name: str
    value: float
    """Mid value, in the unit with which the name ends."""
    own_sd: float = 0.0
    """Standard deviation of the term's logarithm in addition to that of its rows."""
    rests_on: tuple[Dependence, ...] = ()
    """Rows on which the term depends; none if it was measured."""
    ceiling: float
    """Largest value that makes sense (1 for a share)."""
    family: Family
    """Declarations of its rows: label, dependent figures, measures that narrow it, and when it has an effect."""
    evidence: Evidence
    surface: Surface | None = None
    """Surface of the rate by shape; `value` is then the rate of a large kernel. None if all shapes have one rate."""
    power: ProductPower | None = None
    """Power draw by shape of products at this rate; None if unknown or if the term is not a rate of products."""
    measured_limit_w: float | None = None
    """Power limit under which a record measured it; None for the limit as sold, or without a record."""
    by_operation: Mapping[str, Surface] = field(default_factory=dict)
    """A surface for each operation that uses the rate (collectives of a link)."""

    @property
    def log_sd(self) -> float:
        """Standard deviation of the term's logarithm, treating its rows as independent."""
        return float(np.hypot(self.own_sd, np.linalg.norm([on.power * on.row.log_sd for on in self.rests_on])))

    @property
    def learned_evidence(self) -> tuple[Evidence, ...]:
        """Evidence of the user's own runs that moved rows of this term."""
        return tuple(evidence_of(on.row, self.name) for on in self.rests_on if on.row.learned)

    def log_change(self, shifts: Shifts, draws: Draws | None = None) -> Value:
        """Change of the term's logarithm, `[draw]`: from shifts of its rows and, with `draws`, from its own spread."""
        change: Value = 0.0
        if draws is not None and self.own_sd > 0:
            change = self.own_sd * draws.normal(self.name)
        for on in self.rests_on:
            if on.apart and draws is not None:
                change = change + on.log_change(on.row.log_sd * draws.normal(f"{on.row.id}.{on.apart}"))
            elif on.row.id in shifts:
                change = change + on.log_change(shifts[on.row.id])
        return change


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Common random numbers: the same input gets the same draws in every precision, GPU and layout.

    Raises:
        ValueError: the number of draws is even.
    """

    count: int
    """Odd, since draws come in mirrored pairs and the last draw has every input at its mid value."""
    seed: int

    def __post_init__(self) -> None:
        if self.count % 2 == 0:
            raise ValueError(f"draws: expected an odd number, found {self.count}")

    def normal(self, name: str) -> Floats:
        """Standard normal draws of one input, `[draw]`."""
        drawn = _normals(self)
        if name not in drawn:
            self.draw((name,))
        return drawn[name]

    def draw(self, names: Iterable[str]) -> None:
        """Draw several inputs in one pass and cache them for `normal`."""
        drawn = _normals(self)
        new = [name for name in names if name not in drawn]
        if new:
            drawn.update(zip(new, _normal(self.count, self.seed, new), strict=True))

    @property
    def centre(self) -> int:
        """Index of the draw with every input at its mid value."""
        return self.count - 1

    def shifts(self, parameters: Parameters) -> Shifts:
        """Draws of the shift of each row: jointly for rows with a joint posterior, else from the row's own range."""
        return _shifts(self, parameters)


@lru_cache(maxsize=8)
def _normals(draws: Draws) -> dict[str, Floats]:
    """Cache of draws by input name; a question needs all of its draws again, but those of old seeds may be evicted."""
    return {}


def _normal(count: int, seed: int, names: Sequence[str]) -> Floats:
    """Quantiles of the normal distribution in random order, `[name, draw]`; the second half mirrors the first.

    Each draw is mirrored for all inputs at once, and the last has all of them at their mid values. For any seed, the
    median of anything close to a product of powers of the inputs is therefore its value at mid values. The order comes
    from hashes of seed, name and index (`mixed`), whose last bit is the sign, so an input's draws depend on no other
    input.
    """
    drawn = _mirrored(_half_of_normal(count, seed, names))
    drawn.flags.writeable = False
    return drawn


def _half_of_normal(count: int, seed: int, names: Sequence[str]) -> Floats:
    """The half of `_normal` that is mirrored, `[name, draw]`."""
    keys = np.array([zlib.crc32(name.encode()) for name in names], dtype=np.uint64) << np.uint64(32)
    places = np.arange(1, count // 2 + 1, dtype=np.uint64) * GOLDEN_GAMMA
    random = mixed(mixed(keys ^ np.uint64(seed % 2**64))[:, np.newaxis] + places)
    half = _sizes(count // 2)[random.argsort(axis=1)]
    half *= 2.0 * (random & np.uint64(1)) - 1.0
    return np.asarray(half)


GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
"""Step between the states of SplitMix64: the odd number nearest to 2 ** 64 over the golden ratio."""


def mixed(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Outputs of SplitMix64 for given states: random numbers at any index without computing the preceding ones.

    Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators" (doi 10.1145/2660193.2660195), with the
    constants of the reference implementation (https://prng.di.unimi.it/splitmix64.c). The generators of numpy are just
    as good, but each takes 0.04 ms to set up, and one would be needed for each of hundreds of inputs.
    """
    states = states ^ (states >> np.uint64(30))
    states *= np.uint64(0xBF58476D1CE4E5B9)
    states ^= states >> np.uint64(27)
    states *= np.uint64(0x94D049BB133111EB)
    states ^= states >> np.uint64(31)
    return states


def _mirrored(half: Floats) -> Floats:
    """The given half of the draws, `[..., draw]`, followed by its mirror image and the mid value."""
    count = half.shape[-1]
    drawn = np.zeros((*half.shape[:-1], 2 * count + 1))
    drawn[..., :count] = half
    np.negative(half, out=drawn[..., count:-1])
    return drawn


@cache
def _sizes(count: int) -> Floats:
    """Magnitudes of standard normal draws: central quantiles of equally likely intervals, scaled to a variance of 1."""
    inverse = NormalDist().inv_cdf
    sizes = np.array([inverse(0.5 + (part + 0.5) / (2 * count)) for part in range(count)])
    return np.asarray(sizes / np.sqrt(np.mean(sizes**2))) if count else sizes


MOST_ROWS_RATIO = 0.25
"""Ratio of rows to draws up to which rows are decorrelated; above it, little randomness would be left."""


@lru_cache(maxsize=8)
def _standard(draws: Draws, names: tuple[str, ...]) -> Floats:
    """Standard normal draws of rows, `[row, draw]`; exactly uncorrelated if there are enough draws."""
    half = _half_of_normal(draws.count, draws.seed, names)
    if len(names) <= MOST_ROWS_RATIO * draws.count:
        factor = np.linalg.cholesky(2.0 * half @ half.T / draws.count)
        half = np.linalg.solve(factor, half)
    return _mirrored(half)


@lru_cache(maxsize=8)
def _shifts(draws: Draws, parameters: Parameters) -> Shifts:
    moving = {row.id: row.log_sd for row in parameters.rows.values() if row.log_sd > 0}
    joint = parameters.joint
    names = tuple(dict.fromkeys([*moving, *(joint.ids if joint is not None else ())]))
    standard = dict(zip(names, _standard(draws, names), strict=True))
    alone = moving.keys() - (joint.ids if joint is not None else ())
    shifts = {name: moving[name] * standard[name] for name in alone}
    if joint is not None:
        together = joint.factor @ np.stack([standard[name] for name in joint.ids])
        shifts |= dict(zip(joint.ids, together, strict=True))
    return shifts


def _factor(draws: Draws, parameters: Parameters, name: str) -> Floats | None:
    """Draws of a row as factors of its value; None for a row that does not move or is 0.

    They are the same for every run and computed once.
    """
    known = _factors(draws, parameters)
    if name not in known:
        factor, shift = None, _shifts(draws, parameters).get(name)
        if shift is not None and (row := parameters.rows[name]).value > 0:
            share = parameters.families[row.family].bound == "share"
            factor = np.asarray(moved(row.value, shift, share=share) / row.value)
        known[name] = factor  # only once it is computed: another thread may look
    return known[name]


@lru_cache(maxsize=8)
def _factors(draws: Draws, parameters: Parameters) -> dict[str, Floats | None]:
    """Cache of `_factor`."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSet:
    """The terms of one GPU, stack and policy."""

    terms: Mapping[str, Term]
    parameters: Parameters
    """The rows on which the terms depend."""
    drawn: dict[Draws, Rates] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Cache of drawn rates, since a search needs the same ones repeatedly."""
    spreads: dict[Draws, Mapping[str, tuple[Floats, float]]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """Cache of `log_changes`, since plans of one precision share the same draws."""

    def log_changes(self, draws: Draws) -> Mapping[str, tuple[Floats, float]]:
        """Deviation of each uncertain term's logarithm from its mean, `[draw]`, and its standard deviation."""
        if draws not in self.spreads:
            shifts = draws.shifts(self.parameters)
            terms = {name: term for name, term in self.terms.items() if term.log_sd > 0}
            self.spreads[draws] = {name: _about_mean(term.log_change(shifts, draws)) for name, term in terms.items()}
        return self.spreads[draws]

    def sample(self, draws: Draws | None = None) -> Rates:
        """Mid values (`draws=None`) or draws `[draw]`."""
        if draws is None:
            return self._rates({name: term.value for name, term in self.terms.items()})
        if draws not in self.drawn:
            factors = _factors(draws, self.parameters)
            values = {name: self._drawn(term, draws, factors) for name, term in self.terms.items()}
            self.drawn[draws] = self._rates(values, draws.centre)
        return self.drawn[draws]

    def _rates(self, values: Mapping[str, Value], centre: int | None = None) -> Rates:
        surfaces = {name: term.surface for name, term in self.terms.items() if term.surface is not None}
        for term in self.terms.values():
            surfaces |= term.by_operation
        powers = {name: term.power for name, term in self.terms.items() if term.power is not None}
        return Rates(surfaces, powers, centre, **values)

    def _drawn(self, term: Term, draws: Draws, factors: Mapping[str, Floats | None]) -> Value:
        only_row = term.rests_on[0] if len(term.rests_on) == 1 and not term.own_sd else None
        if only_row is not None and only_row.power == 1.0 and not only_row.apart:
            id_ = only_row.row.id
            factor = factors[id_] if id_ in factors else _factor(draws, self.parameters, id_)
            return term.value if factor is None else np.minimum(term.value * factor, term.ceiling)
        return _changed(term, term.log_change(draws.shifts(self.parameters), draws))

    def moved(self, shifts: Shifts) -> Rates:
        """Rates with rows shifted from their mid values, without any draws."""
        changed = {name: _changed(term, term.log_change(shifts)) for name, term in self.terms.items()}
        return self._rates(changed)


def _about_mean(log_change: Value) -> tuple[Floats, float]:
    drawn = np.asarray(log_change)
    return drawn - drawn.mean(), float(drawn.std())


def _changed(term: Term, log_change: Value) -> Value:
    if isinstance(log_change, float):
        return term.value if log_change == 0.0 else min(term.value * float(np.exp(log_change)), term.ceiling)
    return np.minimum(term.value * np.exp(log_change), term.ceiling)

"""The physical parameters of the model in `catalog/parameters.csv`: value, 90 % range, meaning and source of each.

Rows whose ids share the part before the first point form a *family* (`fusion_ratio.eager`, `fusion_ratio.tuned`): one
quantity that differs by stack, architecture or the like. The first row of a family also gives the name of its terms,
how they are looked up and scaled, which figures depend on them and what would narrow their range (`Family`). Parameters
are shared by all runs: none is keyed on a model, a source or a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.evidence import Z90, Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.rows import CATALOG, Row, read_rows

PARAMETERS = CATALOG / "parameters.csv"
POSTERIOR = CATALOG / "posterior.csv"


class Figure(StrEnum):
    """The kind of figure that a parameter or a metric concerns: words of the columns `used_in` and `fitted_to`."""

    TIME = "time"
    MEMORY = "memory"
    POWER = "power"
    RUN = "run"


FIGURES: Mapping[str, tuple[str, ...]] = {
    Figure.TIME: ("step_s", "duration_days", "gpu_hours", "cost_usd", "energy_mwh", "carbon_tco2e"),
    Figure.POWER: ("energy_mwh", "carbon_tco2e"),
    Figure.MEMORY: ("memory_gib",),
    Figure.RUN: ("goodput_ratio", "duration_days", "gpu_hours", "cost_usd", "energy_mwh", "carbon_tco2e"),
}
"""Figures of a plan that depend on a term, by the word in the column `used_in`."""

ITEMISED = {
    Figure.TIME: "step_s", Figure.POWER: "energy_items_mwh", Figure.MEMORY: "memory_gib", Figure.RUN: "goodput_ratio",
}  # fmt: skip
"""The itemised figure whose items the column `moves` names."""


EVIDENCE_GROUPS = {
    "": "",
    "between_nodes": "a collective over more nodes",
    "left_out": "what the equations leave out, as a factor",
}
"""Description shared by all rows of a group, by the word in the column `evidence_group`."""

NEARLY_ALL = 0.99
"""Share from which there is no room to bend; such a share is shifted like any other value."""

Moved = float | npt.NDArray[np.float64]


def moved(value: float, shift: Moved, *, share: bool) -> Moved:
    """Shift a value by `shift` in its logarithm; a share stays below 1.

    A share is shifted in its log-odds, scaled so that small shifts have the same effect as for any other value.
    """
    if not share or value >= NEARLY_ALL:
        grown: Moved = value * np.exp(shift)
        return grown
    odds = math.log(value / (1.0 - value)) + shift / (1.0 - value)
    bent: Moved = 1.0 / (1.0 + np.exp(-odds))
    return bent


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Properties shared by the rows of one parameter, as declared in the first of them."""

    name: str
    label: str
    """Name of its terms for readers."""
    terms: tuple[str, ...]
    """Names that the equations read (`Rates`); empty for a constant that only enters other terms."""
    by: tuple[str, ...]
    """Qualifiers that select a row (`ladder.QUALIFIERS`), in the order of the parts of an id."""
    limit: str
    """How a row's value becomes a term (`ladder.TERM_BUILDERS`), such as times `memory_bandwidth`; empty: unchanged."""
    bound: str
    """`share`: a share, drawn and fitted below 1; `ceiling`: drawn up to 1 times the limit; empty: unbounded."""
    figure: Figure | None
    """Kind of figure that it concerns, which determines `used_in`; None: a constant that only enters other terms."""
    used_in: tuple[str, ...]
    """Figures of a plan that depend on it, including items: `step_s`, `step_s.matmul`."""
    narrowed_by: str | None
    """Key of the message that says what would narrow it; None if the user can do nothing about it."""
    when: str
    """Condition under which it has any effect (`conditions.CONDITIONS`); empty: always."""
    models: str
    """The only models whose equations read it: `transformers`, or `images` (vision models); empty: all."""
    fitted_to: Figure | None
    """Kind of figure of the published runs to which it is fitted; None if it is not fitted."""
    evidence_group: str
    """Group (`EVIDENCE_GROUPS`) whose rows share one row of an answer's evidence; empty: each row has its own."""
    told_as: str
    """How a calibration describes a change of it: `hidden`: more or less communication is hidden; empty: the value is
    more or less."""
    deviates: str
    """How a lineage (a team and its software) deviates from the others: `together` in all rows, `apart` in each row;
    empty: not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One number on which the equations depend, with its 90 % range."""

    id: str
    value: float
    low: float
    """5th percentile."""
    high: float
    """95th percentile."""
    unit: str
    meaning: str
    kind: EvidenceKind
    source: str
    """Source of the value or, for a fitted row, of its prior."""
    date: str
    prior: tuple[float, float, float] | None = None
    """Value, low and high of the prior; None if they are the current ones."""
    fitted_rows: int | None = None
    """Number of published runs to which it was fitted; None if not fitted."""
    lineage_sd: float | None = None
    """Standard deviation, in the logarithm, between lineages; None if lineages do not differ."""

    @property
    def family(self) -> str:
        """The part of the id before the first point."""
        return self.id.partition(".")[0]

    @property
    def log_sd(self) -> float:
        """Standard deviation of the logarithm, from the ratio of the ends of the range; 0 if the value is 0.

        If the low end is 0, only the upper half of the range determines it.
        """
        if self.value <= 0 or self.high <= self.low:
            return 0.0
        if self.low <= 0:
            return math.log(self.high / self.value) / Z90
        return math.log(self.high / self.low) / (2 * Z90)

    @property
    def learned(self) -> bool:
        """Whether the user's own runs moved it or narrowed its range, so that they are its evidence."""
        return self.kind is EvidenceKind.MEASURED

    @property
    def origin(self) -> str:
        """The source, with the number of runs if the row was fitted."""
        if self.fitted_rows is None:
            return self.source
        return f"fitted to {self.fitted_rows:,} runs; prior: {self.source}"

    @property
    def before_fit(self) -> Parameter:
        """The row as it was before any fit."""
        if self.prior is None:
            return replace(self, fitted_rows=None)
        value, low, high = self.prior
        return replace(self, value=value, low=low, high=high, prior=None, fitted_rows=None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joint:
    """Joint posterior of rows after a fit: a normal distribution of their shifts in the logarithm."""

    ids: tuple[str, ...]
    factor: npt.NDArray[np.float64]
    """Lower triangular factor `[row, row]`; its product with its transpose is the covariance."""

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """Covariance of the shifts, `[row, row]`, in the order of `ids`."""
        return np.asarray(self.factor @ self.factor.T, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """A set of rows: the shipped ones, or those of a fit or calibration."""

    rows: Mapping[str, Parameter]
    """By id, in the order of the file."""
    families: Mapping[str, Family]
    """By name, in the order of the file."""
    joint: Joint | None = None
    """Joint posterior of the rows; None if each row varies independently within its own range."""

    def find(self, name: str, *qualifiers: str) -> Parameter:
        """The most specific row: `name.q1.q2`, then `name.q1`, `name.q2`, then `name`; empty qualifiers are ignored.

        Raises:
            KeyError: no such row (a programming error).
        """
        given = [qualifier for qualifier in qualifiers if qualifier]
        for candidate in (".".join((name, *given)), *(f"{name}.{qualifier}" for qualifier in given), name):
            if candidate in self.rows:
                return self.rows[candidate]
        raise KeyError(f"no parameter {name} for {given}")

    def replaced(self, rows: Iterable[Parameter]) -> Parameters:
        """A copy with rows replaced, or added to their families."""
        return replace(self, rows={**self.rows, **{row.id: row for row in rows}})

    def without(self, ids: Iterable[str]) -> Parameters:
        """A copy without some rows."""
        dropped = set(ids)
        return replace(self, rows={name: row for name, row in self.rows.items() if name not in dropped})


@cache
def shipped_parameters() -> Parameters:
    """The rows of `catalog/parameters.csv`.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return replace(read_parameters(PARAMETERS), joint=read_joint(POSTERIOR) if POSTERIOR.exists() else None)


@lru_cache(maxsize=1024)
def evidence_of(row: Parameter, term: str) -> Evidence:
    """Evidence of the row of a term: its source and range."""
    unit = "" if row.unit == "ratio" else f" {row.unit}"
    spread = f" ({_digits(row.low)} to {_digits(row.high)})" if row.low < row.high else ""
    return Evidence(
        id=f"parameter:{row.id}",
        kind=row.kind,
        what=f"{row.meaning}: {_digits(row.value)}{spread}{unit}",
        source=row.origin,
        date=row.date,
        terms=(term,),
        public=not row.learned,  # a calibration names the user's file
    )


def _digits(value: float) -> str:
    """Format a number with three significant digits; from 1000 on, all digits with thousands separators."""
    digits = f"{value:.3g}"
    return digits if abs(value) < 1000 else f"{float(digits):,.0f}"


def read_joint(path: Path) -> Joint:
    """Read the joint posterior of a calibration: one row of the lower triangular factor per parameter.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: a row is wrong.
    """
    rows = read_rows(path)
    factor = np.zeros((len(rows), len(rows)))
    for number, row in enumerate(rows):
        try:
            entries = [float(entry) for entry in row.text("factor").split()]
        except ValueError:
            entries = []
        if len(entries) != number + 1:
            raise row.fail("factor", f"{number + 1} numbers")
        factor[number, : number + 1] = entries
    return Joint(ids=tuple(row.text("id") for row in rows), factor=factor)


def read_parameters(path: Path) -> Parameters:
    """Read all rows of a parameter file.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: a row is wrong.
    """
    rows: dict[str, Parameter] = {}
    families: dict[str, Family] = {}
    for row in read_rows(path):
        parameter = _parameter(row)
        if parameter.id in rows:
            raise row.fail("id", "an id that no other line has")
        rows[parameter.id] = parameter
        if parameter.family not in families:
            families[parameter.family] = _family(row, parameter.family)
    return Parameters(rows=rows, families=families)


def _parameter(row: Row) -> Parameter:
    prior = row.opt_number("prior")
    return Parameter(
        id=row.text("id"),
        value=row.number("value"),
        low=row.number("low"),
        high=row.number("high"),
        unit=row.text("unit"),
        meaning=row.text("meaning"),
        kind=EvidenceKind(row.choice("kind", tuple(EvidenceKind))),
        source=row.text("source"),
        date=row.text("date"),
        prior=None if prior is None else (prior, row.number("prior_low"), row.number("prior_high")),
        fitted_rows=row.opt_integer("fitted_rows", low=1),
        lineage_sd=row.opt_number("lineage_sd"),
    )


def _family(row: Row, name: str) -> Family:
    figure = _figure(row, "used_in")
    items = tuple(f"{ITEMISED[figure]}.{item}" for item in row.words("moves") if item != "total") if figure else ()
    terms = row.words("terms") or (name,)
    return Family(
        name=name,
        label=row.text("label"),
        terms=() if terms == ("-",) else terms,
        by=row.words("by"),
        limit=row.cell("limit"),
        bound=row.choice("bound", ("", "share", "ceiling")),
        figure=figure,
        used_in=(*FIGURES[figure], *items) if figure else (),
        narrowed_by=row.opt_text("narrowed_by"),
        when=row.cell("when"),
        models=row.choice("models", ("", "transformers", "images")),
        fitted_to=_figure(row, "fitted_to"),
        evidence_group=row.choice("evidence_group", tuple(EVIDENCE_GROUPS)),
        told_as=row.choice("told_as", ("", "hidden")),
        deviates=row.choice("deviates", ("", "together", "apart")),
    )


def _figure(row: Row, column: str) -> Figure | None:
    word = row.choice(column, ("", *Figure))
    return Figure(word) if word else None

"""The physical parameters of the model: value, 90 % range, meaning and source of each. Rows: `catalog/parameters.csv`.

Rows whose ids share the part before the first point are one *family* (`fusion_ratio.eager`, `fusion_ratio.tuned`): one
quantity that differs by stack, architecture or the like. The first row of a family also says what a term made from it
is called, how it is looked up and scaled, which figures rest on it and what would narrow it (`Family`). Parameters are
shared by all runs: none is keyed on a model, a source or a run.
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
    """What a parameter or the metric of a run is about: the words of the columns `used_in` and `fitted_to`."""

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
"""Figures of a plan that rest on a term, by the word in the column `used_in`."""

ITEMISED = {
    Figure.TIME: "step_s", Figure.POWER: "energy_items_mwh", Figure.MEMORY: "memory_gib", Figure.RUN: "goodput_ratio",
}  # fmt: skip
"""The itemised figure that the column `moves` names items of."""


EVIDENCE_GROUPS = {
    "": "",
    "between_nodes": "a collective over more nodes",
    "left_out": "what the equations leave out, as a factor",
}
"""Words of the column `evidence_group`: what the rows of a group have in common, told once for all of them."""

NEARLY_ALL = 0.99
"""A share from here on has no room to bend: it is moved as any other value."""

Moved = float | npt.NDArray[np.float64]


def moved(value: float, shift: Moved, *, share: bool) -> Moved:
    """A value moved by `shift` in its logarithm; a share bends so that it stays below 1 and keeps a slope."""
    if not share or value >= NEARLY_ALL:
        grown: Moved = value * np.exp(shift)
        return grown
    odds = math.log(value / (1.0 - value)) + shift / (1.0 - value)
    bent: Moved = 1.0 / (1.0 + np.exp(-odds))
    return bent


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What the rows of one parameter share, as the first of them says."""

    name: str
    label: str
    """Name of its terms for readers."""
    terms: tuple[str, ...]
    """Names that the equations read (`Rates`); empty for a constant that only enters other terms."""
    by: tuple[str, ...]
    """What chooses among its rows (`ladder.QUALIFIERS`), in the order of the id's parts."""
    limit: str
    """What a row's value is multiplied by (`ladder.LIMITS`), for example `memory_bandwidth`; empty: nothing."""
    bound: str
    """`share`: a share of something, drawn and fitted below 1; `ceiling`: drawn up to 1 times the limit; empty."""
    figure: Figure | None
    """What it is about, of which `used_in` are the figures of a plan; None: a constant that enters others."""
    used_in: tuple[str, ...]
    """Figures of a plan that rest on it, items included: `step_s`, `step_s.matmul`."""
    narrowed_by: str | None
    """What would narrow it: the key of a message; None where nothing that a user can do would."""
    when: str
    """Condition under which it has any effect (`conditions.CONDITIONS`); empty: always."""
    models: str
    """The only models whose equations read it: `transformers`, or `images` (those that see images); empty: all."""
    fitted_to: Figure | None
    """The figure whose published runs move it; None: none says anything about it."""
    evidence_group: str
    """Group (`EVIDENCE_GROUPS`) whose rows stand in one row of an answer's evidence; empty: each has its own."""
    told_as: str
    """How a calibration words that it moved: `hidden`: of communication, more or less is hidden; empty: it is more or
    less."""
    deviates: str
    """How one lineage (a team and its software) differs from the others: all its rows `together`, each row `apart`;
    empty: it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One number that the equations rest on, with its 90 % range."""

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
    """Of the prior, where the row is fitted."""
    date: str
    prior: tuple[float, float, float] | None = None
    """Value, low and high before the fit; None: as they stand."""
    fitted_rows: int | None = None
    """Published runs that it was fitted to; None: not fitted."""
    lineage_sd: float | None = None
    """Standard deviation, in its logarithm, of what one lineage has against the others; None: no lineage differs."""

    @property
    def family(self) -> str:
        """The part of the id before the first point."""
        return self.id.partition(".")[0]

    @property
    def log_sd(self) -> float:
        """Standard deviation of the logarithm, from the ratio of the ends of the range; 0 where the value is 0.

        Where the low end is 0 the upper half alone sets it.
        """
        if self.value <= 0 or self.high <= self.low:
            return 0.0
        if self.low <= 0:
            return math.log(self.high / self.value) / Z90
        return math.log(self.high / self.low) / (2 * Z90)

    @property
    def learned(self) -> bool:
        """Whether runs of the user moved it, or left its range narrower: its evidence is then theirs."""
        return self.kind is EvidenceKind.MEASURED

    @property
    def origin(self) -> str:
        """The source, and that the row was fitted where it was."""
        if self.fitted_rows is None:
            return self.source
        return f"{self.fitted_rows:,} runs; prior: {self.source}"

    @property
    def before_fit(self) -> Parameter:
        """The row as it was before any fit."""
        if self.prior is None:
            return replace(self, fitted_rows=None)
        value, low, high = self.prior
        return replace(self, value=value, low=low, high=high, prior=None, fitted_rows=None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joint:
    """How rows err together, as a fit left them: a normal distribution of their shifts, in their logarithms."""

    ids: tuple[str, ...]
    factor: npt.NDArray[np.float64]
    """Lower triangular `[row, row]`; its product with its transpose is the covariance."""

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """`[row, row]`, in the order of `ids`."""
        return np.asarray(self.factor @ self.factor.T, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """A set of rows: the shipped ones, or those of a fit or calibration."""

    rows: Mapping[str, Parameter]
    """By id, in the order of the file."""
    families: Mapping[str, Family]
    """By name, in the order of the file."""
    joint: Joint | None = None
    """How rows err together; None: each on its own, by its own range."""

    def find(self, name: str, *qualifiers: str) -> Parameter:
        """The most specific row: `name.q1.q2`, then `name.q1`, `name.q2`, then `name`; empty qualifiers are ignored.

        Raises:
            KeyError: no such row (a mistake of ours).
        """
        given = [qualifier for qualifier in qualifiers if qualifier]
        for candidate in (".".join((name, *given)), *(f"{name}.{qualifier}" for qualifier in given), name):
            if candidate in self.rows:
                return self.rows[candidate]
        raise KeyError(f"no parameter {name} for {given}")

    def replaced(self, rows: Iterable[Parameter]) -> Parameters:
        """The same with rows replaced, or added to their families."""
        return replace(self, rows={**self.rows, **{row.id: row for row in rows}})

    def without(self, ids: Iterable[str]) -> Parameters:
        """The same without some rows."""
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
    """Where the row of a term is from, and its range."""
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
    """Three digits; a number of four digits and more is written out, with commas."""
    digits = f"{value:.3g}"
    return digits if abs(value) < 1000 else f"{float(digits):,.0f}"


def read_joint(path: Path) -> Joint:
    """The joint posterior of a calibration: a row of the lower triangular factor for each parameter.

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
    """All rows of a file.

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

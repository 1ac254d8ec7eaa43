"""Where a number comes from, and how sure it is: `Evidence`, `Estimate`, `Gap`, `Assumption`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EvidenceKind(StrEnum):
    """The ladder of evidence, best first; each step down widens the range (design, section 2)."""

    MEASURED = "measured"
    """Measured on this GPU by `mpplan probe`."""
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
    """Said by the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One source behind one or more numbers of an answer."""

    id: str
    """Stable within one document, for example `gpu:h100-sxm5-80gb` or `price:p087`."""
    kind: EvidenceKind
    """Rung of the ladder."""
    what: str
    """What the source says, with its value and unit."""
    source: str
    """Where it can be looked up."""
    date: str | None = None
    """ISO date or year of the source; None where the source has none."""
    gpu: str | None = None
    """Catalogue id of the GPU it speaks of, if it speaks of one."""
    used_in: tuple[str, ...] = ()
    """Names of the figures that rest on it, for example `cost_usd`, `step_s.matmul`."""
    terms: tuple[str, ...] = ()
    """Names of the terms (`catalog/parameters.csv`) that it gives; empty where it gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A quantity with its 5th, 50th and 95th percentile; `high` is the figure to budget with."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Something that is missing and what that does to the answer."""

    what: str
    why: str
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Something taken for granted that the user could say better."""

    id: str
    text: str
    """A plain sentence with the value in it."""
    change_with: str | None = None
    """The flag that replaces it."""

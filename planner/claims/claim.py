"""One claim as a row of `catalog/claims.csv`: its statement, its unit, and how its figures are to be read."""

from __future__ import annotations

from collections.abc import Mapping

from planner.lazy import dataclass
from planner.rows import CATALOG, Catalogue, Row

READINGS = ("span", "at_least", "up_to")
"""`span`: a usual value is between the claim's figures; `at_least` and `up_to`: its single figure is a bound."""

UNITS = {
    "fraction_saved": "claim.unit.fraction_saved",
    "fraction_added": "claim.unit.fraction_added",
    "ratio": "claim.unit.ratio",
    "params": "claim.unit.params",
    "usd": "claim.unit.usd",
    "flop": "claim.unit.flop",
    "value": "claim.unit.value",
    "scale": "claim.unit.scale",
    "recovered": "claim.unit.recovered",
    "points": "claim.unit.points",
    "memory_share": "claim.unit.memory_share",
    "bytes_per_param": "claim.unit.bytes_per_param",
    "steps": "claim.unit.steps",
    "share_lost": "claim.unit.share_lost",
    "w": "claim.unit.w",
    "gb": "claim.unit.gb",
    "mwh": "claim.unit.mwh",
    "days": "claim.unit.days",
    "nats": "claim.unit.nats",
}
"""Units of claims and cases, each with the message for a quantity in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement of the literature, before it is judged."""

    id: str
    """For example `c14`."""
    topic: str
    """For example `memory`, `speed`, `sharding`."""
    text: Mapping[str, str]
    """The claim in the field's terms, by language."""
    low: float | None
    """The lower figure; None where the claim names none."""
    high: float | None
    """The higher figure; equal to `low` where the claim names only one."""
    unit: str
    """One of `UNITS`."""
    reading: str
    """One of `READINGS`."""
    tolerance_ratio: float
    """Tolerance around a figure, as a share of it, 0..1: a rounded figure is not exact."""
    figures: Mapping[str, tuple[float, ...]]
    """Other figures that it states, by name: one value, or the values before and after."""
    decides: str
    """The evidence that would decide it."""
    shown_with: tuple[str, ...]
    """Plans beside which a report shows it, as `precision:fp8` or `model:gpt-3-175b`."""
    source: str
    date: str


def _figures(row: Row) -> dict[str, tuple[float, ...]]:
    """Parse `gpus 4096 2048; days 45 18` into numbers by name."""
    figures = {}
    for words in row.words("figures"):
        name, *values = words.split()
        try:
            figures[name] = tuple(float(value) for value in values)
        except ValueError:
            raise row.fail("figures", "names with numbers, such as `gpus 4096 2048; days 45 18`") from None
    return figures


def _claim(row: Row) -> Claim:
    return Claim(
        id=row.text("id"),
        topic=row.text("topic"),
        text={"en": row.text("claim"), "zh": row.text("claim_zh")},
        low=row.opt_number("low"),
        high=row.opt_number("high"),
        unit=row.choice("unit", UNITS),
        reading=row.choice("reading", READINGS),
        tolerance_ratio=row.number("tolerance_ratio", high=1.0),
        figures=_figures(row),
        decides=row.text("decides"),
        shown_with=row.words("shown_with"),
        source=f"{row.text('source')} ({row.text('source_kind')})",
        date=row.text("date"),
    )


CLAIMS = Catalogue(CATALOG / "claims.csv", _claim, what="claim", listing="mpplan claims")


def load_claims() -> dict[str, Claim]:
    """Return all claims by id, in the order of the file.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return CLAIMS.by_id


def find_claim(name: str) -> Claim:
    """Return the claim of an id, regardless of case.

    Raises:
        UsageError: there is no such claim; similar ids are suggested.
    """
    return CLAIMS.find(name)

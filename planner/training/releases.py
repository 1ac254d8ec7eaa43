"""Release dates of software versions: rows of `catalog/software_releases.csv`."""

from __future__ import annotations

import re
from functools import cache

from planner.lazy import dataclass
from planner.rows import CATALOG, Row, read_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One version of a framework, or one round of a benchmark, whose submissions use software of that time."""

    id: str
    pattern: str
    """Lower-case regular expression of the name, which is followed by the version."""
    version: str
    """Version including all of its patch releases, for example `0.8`."""
    year: float
    """Release date: decimal year of the middle of its month."""
    source: str

    def is_named_in(self, text: str) -> bool:
        """Whether a text names this release, as in `Megatron-Core r0.8.0` or `MLPerf Training v4.1`."""
        named = rf"(?:{self.pattern})\s+(?:core_)?[rv]*{re.escape(self.version)}(?!\d)"
        return re.search(named, text.lower()) is not None


def mid_month(year: int, month: int) -> float:
    """Decimal year of the middle of a month."""
    return year + (month - 0.5) / 12.0


def _release(row: Row) -> Release:
    year, month = row.text("released").split("-")
    return Release(
        id=row.text("id"), pattern=row.text("pattern"), version=row.text("version"),
        year=mid_month(int(year), int(month)), source=f"{row.text('source')} ({row.text('date')})",
    )  # fmt: skip


@cache
def load_releases() -> tuple[Release, ...]:
    """All rows.

    Raises:
        InputFileError: a row of the catalogue is wrong.
    """
    return tuple(_release(row) for row in read_rows(CATALOG / "software_releases.csv"))


def year_of_release(text: str) -> float | None:
    """Decimal year of the release that a text names; None if it names no release in the catalogue."""
    return next((release.year for release in load_releases() if release.is_named_in(text)), None)

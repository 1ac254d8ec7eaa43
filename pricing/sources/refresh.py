"""Add current prices from live sources to the user's book and store the sources' answers (`mpplan prices refresh`)."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from planner.errors import UsageError
from planner.files import read_text
from planner.lazy import dataclass
from planner.records.home import data_dir
from pricing.base.listing import listed
from pricing.book.user_book import Added, add_rows, write_whole
from pricing.sources import Fetched, Source
from pricing.sources.web import FetchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The outcome of one source."""

    source: str
    """Name of the source."""
    added: Added | None
    """Result of adding the rows; None where the source failed."""
    skipped: dict[str, int]
    """Number of entries left out, by reason."""
    failure: str | None
    """Reason for a failure, after which the book is unchanged; None where it succeeded."""
    day: date
    """Day of the prices: today, or the day of the stored answer."""


def stored_dir() -> Path:
    """Return the folder of the stored answers of live sources, one file per source and day."""
    return data_dir() / "fetched"


def refresh(source: Source, day: date, *, address: str | None = None, offline: bool = False) -> Refreshed:
    """Add the prices of one source to the user's book.

    Args:
        source: one of `SOURCES`.
        day: today.
        address: URL of a mirror, to be used instead of the source's own.
        offline: read the newest stored answer again, without a request.

    Raises:
        InputFileError: the user's book is damaged.
        UsageError: it cannot be written, or nothing is stored to read offline.
    """
    if offline:
        fetched, day = newest_stored(source, day)
    else:
        try:
            fetched = source.fetch(source.address if address is None else address)
        except FetchError as error:
            return Refreshed(source=source.name, added=None, skipped={}, failure=str(error), day=day)
    try:
        read = source.read(fetched, day)
        if not read.rows:
            raise FetchError(f"{source.name}: an answer without a single price")
    except FetchError as error:
        return Refreshed(source=source.name, added=None, skipped={}, failure=str(error), day=day)
    added = add_rows(read.rows)
    skipped = {**read.skipped, **added.refused}
    if sum(added.refused.values()) == len(read.rows):
        failure = f"{source.name}: not one price that can be kept ({listed(added.refused)})"
        return Refreshed(source=source.name, added=None, skipped=skipped, failure=failure, day=day)
    if not offline:
        write_whole(stored_dir() / f"{source.name}-{day.isoformat()}.json", fetched.text)
    return Refreshed(source=source.name, added=added, skipped=skipped, failure=None, day=day)


def newest_stored(source: Source, day: date) -> tuple[Fetched, date]:
    """Return the newest stored answer of a source on or before a day, and its day.

    Raises:
        UsageError: there is none, or it cannot be read.
    """
    answers = []
    for path in stored_dir().glob(f"{source.name}-*.json") if stored_dir().is_dir() else ():
        stored = _day_in(path.stem.removeprefix(f"{source.name}-"))
        if stored is not None and stored <= day:
            answers.append((stored, path))
    if not answers:
        raise UsageError(
            f"no answer from {source.name} is stored",
            hint="run `mpplan prices refresh` with network access to store one",
        )
    stored_day, path = max(answers)
    return Fetched(source=source.name, text=read_text(path, str(path))), stored_day


def _day_in(name: str) -> date | None:
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None

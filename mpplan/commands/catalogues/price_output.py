"""What the price commands share: the day, the JSON document, and what is said of rows that were left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from json import dumps
from typing import Any

import typer

from mpplan.ui.console import note, warn
from mpplan.ui.listing import counted
from planner.errors import UsageError
from planner.text import shortened
from planner.units import today
from pricing.book.rows import PriceBook, PriceRow

MOST_LINES = 20
"""Lines that a command prints of one kind; the others are counted."""


def read_day(text: str | None, flag: str = "--as-of") -> date:
    """The day that a flag names; today, in UTC, where it is not given.

    Raises:
        UsageError: it is no date.
    """
    if text is None:
        return today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{flag}: `{shortened(text)}` is not a date", hint="write it like 2026-08-28") from None


def read_price_day(text: str | None) -> date:
    """The day that `--date` gives to prices; today, in UTC, where it is not given.

    Raises:
        UsageError: it is no date, or after today.
    """
    day = read_day(text, "--date")
    if day > today():
        raise UsageError(f"--date: {day} is after today, {today()} in UTC", hint=NOT_LATER)
    return day


NOT_LATER = "date a price by the day on which it was seen, in UTC; check the year, and the clock"
"""The hint for a price of a day that has not come."""


def entry(row: PriceRow) -> dict[str, Any]:
    """A row as JSON."""
    return {key: str(value) if isinstance(value, date | Decimal) else value for key, value in asdict(row).items()}


def print_document(kind: str, document: dict[str, Any]) -> None:
    """Print a JSON document of the prices commands.

    Args:
        kind: what its schema is called: each shape has an id of its own.
        document: the rest of it.
    """
    typer.echo(dumps({"schema": f"mpplan.{kind}/1", **document}, indent=2, ensure_ascii=False))


def warn_of_bad_rows(book: PriceBook) -> None:
    """Warn once of the bad rows of the user's book, by file and line."""
    from reports.text.messages import word

    for message in book.set_aside.warnings():
        warn(word(message))


def note_counts(skipped: dict[str, int], counts: dict[str, int], what: str) -> None:
    """Say what was added, and what was left out and why."""
    for text in first_of([f"left out {number}: {shortened(reason, 200)}" for reason, number in skipped.items()]):
        note(text)
    if counts["conflicts"]:
        have = f"{counted(counts['conflicts'], 'row')} {'has' if counts['conflicts'] == 1 else 'have'}"
        warn(f"{have} another price in the book for the same days; what the book has is kept")
    note(f"{what}: {counted(counts['added'], 'row')} added, {counts['known']} there already")


def first_of(lines: Iterable[str], count: int | None = None, most: int = MOST_LINES) -> list[str]:
    """The first lines, and how many more there are.

    Args:
        lines: all of them, or the first ones.
        count: how many there are in all; None: as many as `lines`.
        most: how many are kept.
    """
    every = list(lines)
    more = (len(every) if count is None else count) - most
    return [*every[:most], f"and {more} more"] if more > 0 else every

"""Shared parts of the price commands: the day, the JSON document, and messages about rows that were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from json import dumps
from typing import TYPE_CHECKING, Any

import typer

from mpplan.ui.console import note, warn
from mpplan.ui.listing import counted
from planner.errors import UsageError
from planner.text import shortened
from planner.units import today
from pricing.book.current import is_historic
from pricing.book.reading import shipped_by_id
from pricing.book.rows import PriceBook, PriceRow

if TYPE_CHECKING:
    from pricing.book.check import PriceFinding

MOST_LINES = 20
"""Maximum number of lines of one kind that a command prints; the rest are counted."""


def read_day(text: str | None, flag: str = "--as-of") -> date:
    """Parse the day that a flag names; without a value, return today in UTC.

    Raises:
        UsageError: the text is not a date.
    """
    if text is None:
        return today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{flag}: `{shortened(text)}` is not a date", hint="write it like 2026-08-28") from None


def read_price_day(text: str | None) -> date:
    """Parse the day that `--date` gives to prices; without a value, return today in UTC.

    Raises:
        UsageError: the text is not a date, or the date is after today.
    """
    day = read_day(text, "--date")
    if day > today():
        raise UsageError(f"--date: {day} is after today, {today()} in UTC", hint=NOT_LATER)
    return day


NOT_LATER = "date a price by the day on which it was seen, in UTC; check the year, and the clock"
"""The hint for a price dated in the future."""


def entry(row: PriceRow) -> dict[str, Any]:
    """Return a row as JSON values."""
    return {key: str(value) if isinstance(value, date | Decimal) else value for key, value in asdict(row).items()}


def print_document(kind: str, document: dict[str, Any]) -> None:
    """Print a JSON document of the prices commands.

    Args:
        kind: name of the schema; each document shape has its own id.
        document: the other keys of the document.
    """
    typer.echo(dumps({"schema": f"mpplan.{kind}/1", **document}, indent=2, ensure_ascii=False))


def warn_of_bad_rows(book: PriceBook) -> None:
    """Warn once about the bad rows of the user's book, by file and line."""
    from reports.text.messages import word

    for message in book.set_aside.warnings():
        warn(word(message))


def note_counts(skipped: dict[str, int], counts: dict[str, int], what: str) -> None:
    """Report how many rows were added, and how many were left out and why."""
    for text in first_of([f"left out {number}: {shortened(reason, 200)}" for reason, number in skipped.items()]):
        note(text)
    if counts["conflicts"]:
        have = f"{counted(counts['conflicts'], 'row')} {'has' if counts['conflicts'] == 1 else 'have'}"
        warn(f"{have} another price in the book for the same days; what the book has is kept")
    note(f"{what}: {counted(counts['added'], 'row')} added, {counts['known']} already there")


def first_of(lines: Iterable[str], count: int | None = None, most: int = MOST_LINES) -> list[str]:
    """Return the first lines, and a line that counts the rest.

    Args:
        lines: all lines, or only the first ones.
        count: total number of lines; None: the length of `lines`.
        most: maximum number of lines to keep.
    """
    all_lines = list(lines)
    more = (len(all_lines) if count is None else count) - most
    return [*all_lines[:most], f"and {more} more"] if more > 0 else all_lines


def finding_lines(findings: Sequence[PriceFinding], book: PriceBook, day: date) -> tuple[list[str], list[str]]:
    """Word the findings in a book: first the actionable rows, one per line, then old shipped rows by provider.

    Actionable rows are wrong or unusual ones, the user's own before shipped ones, followed by the user's own old rows.
    Old shipped rows get one line per provider, because a release or a refresh replaces all of them.
    """
    shipped = shipped_by_id()
    mine = {finding.row_id for finding in findings if finding.row_id not in shipped}
    apart = [finding for finding in findings if finding.row_id in mine or not finding.is_stale]
    apart.sort(key=lambda finding: (finding.is_stale, finding.row_id not in mine))
    aged = {finding.row_id for finding in findings if finding.is_stale} - mine
    newest: dict[str, PriceRow] = {}
    count: Counter[str] = Counter()
    for row in book.rows:
        if row.id in aged:
            count[row.provider] += 1
            newest[row.provider] = max(newest.get(row.provider, row), row, key=lambda candidate: candidate.date_latest)
    grouped = []
    for provider, row in sorted(newest.items()):
        rows = counted(count[provider], "shipped row")
        age = "18 months" if is_historic(row, day) else "90 days"
        grouped.append(f"{provider}  stale: {rows}, the newest of {row.date_latest} (> {age})")
    return [f"{finding.row_id}  {finding.what}" for finding in apart], grouped

"""The commands on whole price books: `mpplan prices check`, `import`, `refresh` and `repair`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpplan.commands.catalogues.price_output import (
    NOT_LATER,
    finding_lines,
    first_of,
    note_counts,
    print_document,
    read_day,
    read_price_day,
)
from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.listing import counted, wrapped
from planner.errors import InputFileError, UsageError
from planner.files import read_bytes
from planner.units import today
from pricing.base.listing import listed
from pricing.book.reading import load_book, read_book, refuse_bad_rows, user_book_path
from pricing.book.rows import COLUMNS, MEND, PriceBook, PriceRow

if TYPE_CHECKING:
    from pricing.book.check import PriceFinding
    from pricing.sources.skypilot import Imported

MOST_FINDINGS = 100
"""Maximum number of bad or old rows that are printed; the rest are counted."""
MOST_IN_JSON = 1000
"""Maximum number of bad or old rows in the JSON document."""

Dated = Annotated[str | None, typer.Option("--date", metavar="DATE", help="Date of the prices. Default: today.")]
FileCurrency = Annotated[
    str, typer.Option("--currency", metavar="CODE", help="ISO 4217 currency code, for a file that states none.")
]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", metavar="DATE", help="Prices as of this day, YYYY-MM-DD. Default: today.")
]
Book = Annotated[Path | None, typer.Argument(metavar="FILE", help="Another price book. Default: the one in use.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A SkyPilot vms.csv, a price book, or your own CSV.")]
Whose = Annotated[str | None, typer.Option("--provider", metavar="NAME", help="Provider, if the file names none.")]
Source = Annotated[
    str | None, typer.Option("--source", metavar="TEXT", help="Source of the rows. Default: the file's name and hash.")
]
Skip = Annotated[bool, typer.Option("--skip-invalid", help="Leave out invalid rows and count them.")]
StrictCheck = Annotated[bool, options.strict_flag("Exit 5 if a row is old or unusual.")]
StrictRefresh = Annotated[bool, options.strict_flag("Exit 5 if a source does not answer.")]
Live = Annotated[list[str] | None, typer.Option("--source", metavar="NAME", help="azure or gpuhunt. Default: both.")]
Mirror = Annotated[str | None, typer.Option("--address", metavar="URL", help="Use this mirror of the --source.")]
Stored = Annotated[bool, typer.Option("--offline", help="Use the newest stored replies instead of the network.")]


def check(
    file: Book = None,
    as_of: AsOfOption = None,
    strict: StrictCheck = False,
    json: options.JsonFlag = False,
) -> None:
    """Report rows that are old, unusual or wrong."""
    from planner.errors import IncompleteError
    from pricing.book.check import check_book
    from pricing.files.exchange_rates import load_rates

    day = read_day(as_of)
    book = load_book() if file is None else read_book(file)
    findings = check_book(book, load_rates(), day)
    wrong = [finding for finding in findings if finding.is_error]
    bad = book.set_aside
    if json:
        print_document("prices-check", _checked(book, findings, day))
    else:
        for line in first_of((f"error  {row.error.message}" for row in bad.rows), bad.count):
            typer.echo(wrapped(line, 7))
        for kind, of_kind in (("error", wrong), ("warning", findings[len(wrong) :])):
            single, grouped = finding_lines(of_kind, book, day)
            lines = (f"{kind}  {line}" for line in single)
            for line in [*first_of(lines, most=MOST_FINDINGS), *(f"{kind}  {line}" for line in grouped)]:
                typer.echo(wrapped(line, len(kind) + 2))
        errors = len(wrong) + bad.count
        counts = ((len(book.rows), "row"), (errors, "error"), (len(findings) + bad.count, "finding"))
        note(", ".join(counted(count, what) for count, what in counts))
    refuse_bad_rows(book, MEND if file is None else None)
    if wrong:
        raise InputFileError(f"{file or user_book_path()}: {wrong[0].row_id}: {wrong[0].what}", hint="correct the row")
    if strict and findings:
        raise IncompleteError(
            f"{counted(len(findings), 'finding')}: rows that are old or unusual",
            hint="`mpplan prices refresh` gets newer ones",
        )


def _checked(book: PriceBook, findings: Sequence[PriceFinding], day: date) -> dict[str, Any]:
    bad = [{"line": row.line, "what": row.error.message} for row in book.set_aside.rows]
    return {
        "as_of": str(day),
        "rows": len(book.rows),
        "findings": [
            {"row_id": finding.row_id, "is_error": finding.is_error, "what": finding.what}
            for finding in findings[:MOST_IN_JSON]
        ],
        "findings_total": len(findings),
        "bad_lines": bad,
        "bad_lines_total": book.set_aside.count,
    }


def import_file(
    file: File,
    provider: Whose = None,
    currency: FileCurrency = "USD",
    day: Dated = None,
    source: Source = None,
    skip_invalid: Skip = False,
    json: options.JsonFlag = False,
) -> None:
    """Add the rows of a CSV file to your own book; existing rows are never replaced."""
    from pricing.book.user_book import add_rows
    from pricing.sources.own_csv import Fallbacks, file_source, read_frame, read_own_csv
    from pricing.sources.skypilot import HEADER, provider_in_path, read_skypilot

    content = read_bytes(file)
    frame = read_frame(content, str(file))
    described = source or file_source(content, file.name)
    if set(COLUMNS) <= set(frame.columns):
        imported = _rows_of_book(file, skip_invalid=skip_invalid)
    elif set(HEADER) <= set(frame.columns):
        owner = provider or provider_in_path(file)
        if not owner:
            raise UsageError("a SkyPilot catalogue does not name its provider", hint="give --provider")
        imported = read_skypilot(frame, str(file), owner.lower(), read_price_day(day), described)
    else:
        fallbacks = Fallbacks(provider=provider, currency=currency, day=read_price_day(day), source=described)
        imported = read_own_csv(frame, str(file), fallbacks, skip_invalid=skip_invalid)
    done = add_rows(imported.rows, skip_invalid=skip_invalid)
    skipped = {**imported.skipped, **done.refused}
    counts = {"added": len(done.added), "known": done.known, "conflicts": len(done.conflicts)}
    if json:
        print_document("prices-import", {"book": str(user_book_path()), **counts, "skipped": skipped})
        return
    note_counts(skipped, counts, str(file))
    _warn_of_missing_rates(done.added)


def _warn_of_missing_rates(rows: Sequence[PriceRow]) -> None:
    """Warn of new rows in a currency without an exchange rate, which no plan uses."""
    from pricing.files.exchange_rates import load_rates, usd_rate

    rates = load_rates()
    without = sorted({row.currency for row in rows if usd_rate(row.currency, today(), rates) is None})
    if without:
        file = "`exchange_rates.csv` of your data folder"
        warn(f"prices in {listed(without)} are not used: {file} has no rate on or before {today()}")


def _rows_of_book(file: Path, *, skip_invalid: bool) -> Imported:
    from pricing.sources.skypilot import Imported

    book = read_book(file)
    if not skip_invalid:
        refuse_bad_rows(book)
    later = [row for row in book.rows if row.date_earliest > today()]
    if later and not skip_invalid:
        first = later[0]
        what = f"date_earliest: {first.date_earliest} is after today, {today()} in UTC"
        raise InputFileError(f"{file}: {first.id}: {what}", hint=f"{NOT_LATER}; --skip-invalid leaves such rows out")
    counts = {"lines that hold no price": book.set_aside.count, "rows dated after today": len(later)}
    rows = tuple(row for row in book.rows if row.date_earliest <= today())
    return Imported(rows=rows, skipped={reason: count for reason, count in counts.items() if count})


def refresh_sources(
    source: Live = None,
    address: Mirror = None,
    offline: Stored = False,
    strict: StrictRefresh = False,
    json: options.JsonFlag = False,
) -> None:
    """Fetch today's prices from live sources and add them; if a source fails, the book keeps its rows."""
    from planner.errors import IncompleteError
    from pricing.sources import SOURCES
    from pricing.sources.refresh import refresh

    known = {row.name: row for row in SOURCES}
    names = source or list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown source `{name}`", hint=f"use one of {listed(known)}")
    if address is not None and len(names) != 1:
        raise UsageError("--address needs exactly one --source", hint="name the source with --source")
    outcomes = [refresh(known[name], today(), address=address, offline=offline) for name in names]
    for outcome in outcomes:
        if outcome.failure is not None and len(outcomes) > 1:
            warn(f"{outcome.source}: {outcome.failure}; the book is unchanged")
        elif outcome.added is not None and not json:
            counts = {
                "added": len(outcome.added.added),
                "known": outcome.added.known,
                "conflicts": len(outcome.added.conflicts),
            }
            note_counts(outcome.skipped, counts, f"{outcome.source}, {outcome.day}")
    if json:
        answers = [_outcome(outcome) for outcome in outcomes]
        print_document("prices-refresh", {"book": str(user_book_path()), "sources": answers})
    failed = [f"{outcome.source} ({outcome.failure})" for outcome in outcomes if outcome.failure is not None]
    if len(failed) == len(outcomes):
        hint = "the prices stored so far are used; try again later, or `mpplan prices import`"
        raise UsageError(f"no source answered: {listed(failed)}", hint=hint)
    if failed and strict:
        raise IncompleteError(f"no answer from {listed(failed)}", hint="the prices stored so far are used")


def _outcome(outcome: Any) -> dict[str, Any]:
    added = outcome.added
    return {
        "source": outcome.source,
        "day": str(outcome.day),
        "failure": outcome.failure,
        "added": len(added.added) if added else 0,
        "known": added.known if added else 0,
        "conflicts": len(added.conflicts) if added else 0,
        "skipped": outcome.skipped,
    }


def repair(
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Write the repaired book; without this flag, nothing is written.")
    ] = False,
    json: options.JsonFlag = False,
) -> None:
    """Repair your own book: keep its valid rows, and move lines without a valid price to a file beside it."""
    from pricing.book.repair import repair_book

    done = repair_book(write=yes)
    bad = done.bad
    if json:
        lines = [{"line": row.line, "what": row.error.message} for row in bad.rows]
        counts = {"kept": done.kept, "bad_lines": lines, "bad_lines_total": bad.count}
        places = {"book": str(done.book), "aside": str(done.aside), "written": yes and bad.count > 0}
        print_document("prices-repair", places | counts)
        return
    for line in first_of((str(row.error.message) for row in bad.rows), bad.count):
        typer.echo(wrapped(line, 2))
    if not bad.count:
        note(f"{done.book}: rows: {done.kept}, nothing to repair")
    elif yes:
        note(f"{done.book}: rows kept: {done.kept}; lines moved to {done.aside}: {bad.count}")
    else:
        note(
            f"{done.book}: rows that would be kept: {done.kept}; "
            f"lines that would be moved to {done.aside}: {bad.count}; --yes does it"
        )

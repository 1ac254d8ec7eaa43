"""`mpplan prices`: the price book, shipped rows and the user's: list, show, add, check, import, refresh."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from decimal import Decimal
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.listing import details, table, wrapped
from planner.costs.prices import GpuPrice
from planner.errors import InputFileError, UsageError
from planner.hardware.catalogue import find_gpu
from planner.rows import Row, near_names
from pricing.base.listing import listed
from pricing.book.current import counting_rows
from pricing.book.rows import COLUMNS, PriceRow, load_book, price_row, read_book, user_book_path
from pricing.gpu_price.ask import parse_commitment

prices_app = typer.Typer(help="List the prices of the book with their dates and sources.")

SCHEMA = "mpplan.prices/1"

GpuOption = Annotated[str | None, typer.Option("--gpu", metavar="ID", help="Only this GPU.")]
ProviderOption = Annotated[str | None, typer.Option("--provider", metavar="NAME", help="Only this provider.")]
RegionOption = Annotated[str | None, typer.Option("--region", metavar="NAME", help="Only this region.")]
CommitmentOption = Annotated[
    str | None, typer.Option("--commitment", metavar="NAME", help="Only on-demand, spot, 1y or 3y.")
]
AsOfOption = Annotated[str | None, typer.Option("--as-of", metavar="DATE", help="The day, YYYY-MM-DD. Default today.")]
Kind = Annotated[str, typer.Option("--commitment", metavar="NAME", help="on-demand, spot, 1y or 3y.")]
Price = Annotated[str, typer.Option("--price", metavar="AMOUNT", help="Price of one GPU for one hour.")]
Currency = Annotated[str, typer.Option("--currency", metavar="CODE", help="ISO 4217 code, where a file has none.")]
Seller = Annotated[str, typer.Option("--seller", metavar="KIND", help="provider, broker or marketplace.")]
Dated = Annotated[str | None, typer.Option("--date", metavar="DATE", help="Day of the prices. Default today.")]
Book = Annotated[Path | None, typer.Argument(metavar="FILE", help="Another price book. Default the one in use.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A SkyPilot vms.csv, a price book, or your own CSV.")]
Whose = Annotated[str | None, typer.Option("--provider", metavar="NAME", help="Provider, where a file names none.")]
Source = Annotated[
    str | None, typer.Option("--source", metavar="TEXT", help="Source of the rows. Default the file's name and hash.")
]
Skip = Annotated[bool, typer.Option("--skip-invalid", help="Leave out invalid rows and count them.")]
Live = Annotated[list[str] | None, typer.Option("--source", metavar="NAME", help="azure or gpuhunt. Default all.")]
Mirror = Annotated[str | None, typer.Option("--address", metavar="URL", help="A mirror of the --source.")]
Stored = Annotated[bool, typer.Option("--offline", help="Use the newest stored answers.")]
AllOption = Annotated[bool, typer.Option("--all", help="Also rows that a newer one replaced.")]


def _day(text: str | None, flag: str = "--as-of") -> date:
    if text is None:
        return date.today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{flag}: `{text}` is not a date", hint="write it like 2026-08-28") from None


def _entry(row: PriceRow) -> dict[str, Any]:
    return {key: str(value) if isinstance(value, date | Decimal) else value for key, value in asdict(row).items()}


def _print(document: dict[str, Any]) -> None:
    typer.echo(dumps({"schema": SCHEMA, **document}, indent=2, ensure_ascii=False))


@prices_app.callback(invoke_without_command=True)
def prices(context: typer.Context) -> None:
    """List the prices of the book with their dates and sources."""
    if context.invoked_subcommand is None:
        list_rows()


@prices_app.command("list")
def list_rows(
    gpu: GpuOption = None,
    provider: ProviderOption = None,
    region: RegionOption = None,
    commitment: CommitmentOption = None,
    as_of: AsOfOption = None,
    everything: AllOption = False,
    json: options.JsonFlag = False,
) -> None:
    """List rows: provider, region, commitment, price, date and source."""
    day = _day(as_of)
    book = load_book(find_gpu(gpu).id if gpu else None)
    rows = book.rows if everything else counting_rows(book.rows, day)
    kind = parse_commitment(commitment) if commitment else None
    filters = {"provider": provider, "region": region, "commitment": kind}
    for field, value in filters.items():
        if value:
            rows = _only(rows, field, value)
    rows = tuple(sorted(rows, key=lambda row: (row.gpu, row.commitment, row.price_per_gpu_h)))
    if json:
        _print({"as_of": str(day), "rows": [_entry(row) | {"stale": row.is_stale(day)} for row in rows]})
        return
    headers = ("id", "gpu", "provider", "region", "commitment", "per GPU-h", "", "dated", "", "source")
    lines = [
        (
            row.id,
            row.gpu,
            row.provider,
            row.region or "-",
            row.commitment,
            f"{row.price_per_gpu_h:f}",
            row.currency,
            row.date_text,
            "stale" if row.is_stale(day) else "",
            row.source,
        )
        for row in rows
    ]
    typer.echo(table(headers, lines) if lines else "no rows\n", nl=False)


def _only(rows: tuple[PriceRow, ...], field: str, value: str) -> tuple[PriceRow, ...]:
    matching = tuple(row for row in rows if getattr(row, field).lower() == value.lower())
    if not matching:
        known = sorted({getattr(row, field) for row in rows} - {""})
        near = near_names(value, known)
        raise UsageError(
            f"no rows with {field} `{value}`", hint=f"choose one of {listed(near or known)}" if known else None
        )
    return matching


@prices_app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="GPU|ROW", help="A GPU, or the id of a row.")],
    provider: ProviderOption = None,
    region: RegionOption = None,
    commitment: Kind = "on-demand",
    as_of: AsOfOption = None,
    json: options.JsonFlag = False,
) -> None:
    """Show the price that a plan would use for a GPU, with the rows behind it; or one row in full."""
    from pricing import quote_gpu

    row = next((row for row in load_book().rows if row.id == name), None)
    if row is not None:
        entry = _entry(row)
        _print({"row": entry}) if json else typer.echo(details([(key, str(entry[key])) for key in COLUMNS]), nl=False)
        return
    gpu = find_gpu(name).id
    price = quote_gpu(gpu, provider=provider, region=region, commitment=commitment, as_of=_day(as_of))
    if json:
        from mpplan.api.document import worded
        from planner.answer.document import plain

        _print({"price": worded(plain(price))})
    else:
        _show_price(price)


def _show_price(price: GpuPrice) -> None:
    from reports.text.messages import word

    usd = price.usd_per_gpu_h
    shown = "unknown" if usd is None else f"{usd.low:.2f} - {usd.mid:.2f} - {usd.high:.2f} USD per GPU-hour"
    typer.echo(details([("gpu", price.gpu), ("low - mid - high", shown), ("basis", word(price.basis))]), nl=False)
    for evidence in price.evidence:
        typer.echo(wrapped(f"{evidence.id}  {evidence.date or '-'}", 2))
        for line in (evidence.what, evidence.source):
            typer.echo(wrapped(f"  {line}", 2))
    if price.gap is not None:
        warn("{}: {}; {}".format(*(word(text) for text in (price.gap.what, price.gap.why, price.gap.effect))))
    for warning in price.warnings:
        warn(word(warning))


@prices_app.command("add")
def add(
    gpu: Annotated[str, typer.Option("--gpu", metavar="ID", help="A GPU of the catalogue.")],
    provider: Annotated[str, typer.Option("--provider", metavar="NAME", help="Provider of the price.")],
    price: Price,
    source: Annotated[str, typer.Option("--source", metavar="TEXT", help="Where the price can be looked up.")],
    currency: Currency = "USD",
    commitment: Kind = "on-demand",
    region: Annotated[str, typer.Option("--region", metavar="NAME", help="The provider's region.")] = "",
    instance: Annotated[str, typer.Option("--instance", metavar="NAME", help="The provider's instance type.")] = "",
    gpus: Annotated[int, typer.Option("--gpus", metavar="N", help="GPUs of that instance.")] = 1,
    seller: Seller = "provider",
    day: Dated = None,
    notes: Annotated[str, typer.Option("--notes", metavar="TEXT", help="Notes.")] = "",
    json: options.JsonFlag = False,
) -> None:
    """Add one row to your own book; rows of the same provider and GPU stay as its history."""
    from pricing.book.check import check_book
    from pricing.book.user_book import add_rows, row_id
    from pricing.files.exchange_rates import load_rates

    on = _day(day, "--date")
    cells = {
        "id": "new",
        "gpu": find_gpu(gpu).id,
        "provider": provider.strip(),
        "region": region,
        "instance": instance,
        "gpus_per_instance": str(gpus),
        "commitment": commitment,
        "price_per_gpu_h": price,
        "currency": currency,
        "seller": seller,
        "date_earliest": str(on),
        "date_latest": str(on),
        "date_basis": "stated by the user",
        "source": source.strip(),
        "notes": notes,
    }
    try:
        row = price_row(Row(file="prices add", line=None, cells=cells))
    except InputFileError as error:
        raise UsageError(error.message, hint="see `mpplan prices add --help`") from error
    book = load_book(row.gpu).plus([row])
    findings = [finding for finding in check_book(book, load_rates(), max(on, date.today())) if finding.row_id == "new"]
    for finding in findings:
        if finding.is_error:
            raise UsageError(finding.what, hint="check the price and its commitment")
        warn(finding.what)
    done = add_rows([row])
    _refuse_conflicts(done.conflicts)
    if json:
        _print({"book": str(user_book_path()), "added": [_entry(row) for row in done.added], "known": done.known})
        return
    note(f"added {row_id(row)} to {user_book_path()}" if done.added else "the book has this row already")


def _refuse_conflicts(conflicts: tuple[PriceRow, ...]) -> None:
    if conflicts:
        row = conflicts[0]
        what = " ".join(part for part in (row.provider, row.region, row.gpu, row.commitment) if part)
        raise UsageError(
            f"the book has another price for {what} on {row.date_text}; it is kept",
            hint="rows are never replaced: give another --date, or edit the book by hand",
        )


@prices_app.command("check")
def check(
    file: Book = None,
    as_of: AsOfOption = None,
    strict: options.StrictFlag = False,
    json: options.JsonFlag = False,
) -> None:
    """Report rows that are old, unusual or wrong."""
    from planner.errors import IncompleteError
    from pricing.book.check import check_book
    from pricing.files.exchange_rates import load_rates

    day = _day(as_of)
    book = load_book() if file is None else read_book(file)
    findings = check_book(book, load_rates(), day)
    if json:
        _print({"as_of": str(day), "rows": len(book.rows), "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            kind = "error" if finding.is_error else "warning"
            typer.echo(wrapped(f"{kind}  {finding.row_id}  {finding.what}", len(kind) + 2))
        note(f"{len(book.rows)} rows, {sum(finding.is_error for finding in findings)} errors, {len(findings)} findings")
    wrong = [finding for finding in findings if finding.is_error]
    if wrong:
        raise InputFileError(f"{file or user_book_path()}: {wrong[0].row_id}: {wrong[0].what}", hint="correct the row")
    if strict and findings:
        raise IncompleteError(
            f"{len(findings)} rows are old or unusual", hint="`mpplan prices refresh` brings newer ones"
        )


@prices_app.command("import")
def import_file(
    file: File,
    provider: Whose = None,
    currency: Currency = "USD",
    day: Dated = None,
    source: Source = None,
    skip_invalid: Skip = False,
    json: options.JsonFlag = False,
) -> None:
    """Add the rows of a CSV to your own book; existing rows are never replaced."""
    from pricing.book.user_book import add_rows
    from pricing.sources.own_csv import Fallbacks, file_source, read_frame, read_own_csv
    from pricing.sources.skypilot import HEADER, Imported, provider_in_path, read_skypilot

    frame = read_frame(file)
    described = source or file_source(file)
    if set(COLUMNS) <= set(frame.columns):
        imported = Imported(rows=read_book(file).rows, skipped={})
    elif set(HEADER) <= set(frame.columns):
        owner = provider or provider_in_path(file)
        if not owner:
            raise UsageError("a SkyPilot catalogue does not name its provider", hint="give --provider")
        imported = read_skypilot(frame, str(file), owner.lower(), _day(day, "--date"), described)
    else:
        fallbacks = Fallbacks(provider=provider, currency=currency, day=_day(day, "--date"), source=described)
        imported = read_own_csv(frame, str(file), fallbacks, skip_invalid=skip_invalid)
    done = add_rows(imported.rows)
    counts = {"added": len(done.added), "known": done.known, "conflicts": len(done.conflicts)}
    if json:
        _print({"book": str(user_book_path()), **counts, "skipped": imported.skipped})
        return
    _note_counts(imported.skipped, counts, str(file))


def _note_counts(skipped: dict[str, int], counts: dict[str, int], what: str) -> None:
    for reason, number in skipped.items():
        note(f"left out {number}: {reason}")
    if counts["conflicts"]:
        warn(f"{counts['conflicts']} rows have another price in the book for the same days; the book's are kept")
    note(f"{what}: {counts['added']} rows added, {counts['known']} were there already")


@prices_app.command("refresh")
def refresh_sources(
    source: Live = None,
    address: Mirror = None,
    offline: Stored = False,
    strict: options.StrictFlag = False,
    json: options.JsonFlag = False,
) -> None:
    """Ask live sources for today's prices and add them; if a source fails, the book keeps its rows."""
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
    outcomes = [refresh(known[name], date.today(), address=address, offline=offline) for name in names]
    for outcome in outcomes:
        if outcome.failure is not None and len(outcomes) > 1:
            warn(f"{outcome.source}: {outcome.failure}; the book is unchanged")
        elif outcome.added is not None and not json:
            counts = {
                "added": len(outcome.added.added),
                "known": outcome.added.known,
                "conflicts": len(outcome.added.conflicts),
            }
            _note_counts(outcome.skipped, counts, f"{outcome.source}, {outcome.day}")
    if json:
        _print({"book": str(user_book_path()), "sources": [_outcome(outcome) for outcome in outcomes]})
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

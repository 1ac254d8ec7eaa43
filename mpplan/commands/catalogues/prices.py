"""`mpplan prices`: list, show, add, check, import and refresh the rows of the price book, shipped and the user's."""

from __future__ import annotations

from typing import Annotated

import typer

from mpplan.commands.catalogues import price_files
from mpplan.commands.catalogues.price_files import AsOfOption, Dated
from mpplan.commands.catalogues.price_output import entry, print_document, read_day, read_price_day, warn_of_bad_rows
from mpplan.commands.catalogues.short_names import meant
from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.listing import details, table, wrapped
from planner.costs.prices import GpuPrice
from planner.errors import InputFileError, Message, MpplanError, UsageError
from planner.hardware.catalogue import find_gpu, load_gpus
from planner.question import names
from planner.rows import Row, near_names
from planner.units import today
from pricing.base.listing import listed
from pricing.book.current import counting_rows
from pricing.book.reading import load_book, user_book_path
from pricing.book.rows import COLUMNS, COMMITMENTS, PriceRow, price_row
from pricing.gpu_price.query import parse_commitment

prices_app = typer.Typer(help="List the prices in the price book with their dates and sources.")


def _gpus_and_rows() -> list[str]:
    """Return the GPUs, and the ids of the price rows where the book can be read."""
    from contextlib import suppress

    rows: list[str] = []
    with suppress(MpplanError):
        rows = [row.id for row in load_book().rows]
    return [*names.gpus(), *rows]


GpuOption = Annotated[
    str | None,
    typer.Option("--gpu", metavar="ID", help="Only this GPU.", autocompletion=options.completion(names.gpus)),
]
ProviderOption = Annotated[str | None, typer.Option("--provider", metavar="NAME", help="Only this provider.")]
RegionOption = Annotated[str | None, typer.Option("--region", metavar="NAME", help="Only this region.")]
CommitmentOption = Annotated[
    str | None,
    typer.Option(
        "--commitment",
        metavar="NAME",
        help="Only on-demand, spot, 1y or 3y.",
        autocompletion=options.completion(lambda: COMMITMENTS),
    ),
]
Kind = Annotated[
    str,
    typer.Option(
        "--commitment",
        metavar="NAME",
        help="on-demand, spot, 1y or 3y.",
        autocompletion=options.completion(lambda: COMMITMENTS),
    ),
]
OfGpu = Annotated[
    str,
    typer.Option("--gpu", metavar="ID", help="A GPU in the catalogue.", autocompletion=options.completion(names.gpus)),
]
Price = Annotated[str, typer.Option("--price", metavar="AMOUNT", help="Price of one GPU for one hour.")]
Seller = Annotated[str, typer.Option("--seller", metavar="KIND", help="provider, broker or marketplace.")]
AddCurrency = Annotated[str, typer.Option("--currency", metavar="CODE", help="ISO 4217 currency code of the price.")]
AllOption = Annotated[bool, typer.Option("--all", help="Also show rows that a newer row replaced.")]


@prices_app.callback(invoke_without_command=True)
def prices(context: typer.Context) -> None:
    """List the prices in the price book with their dates and sources."""
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
    day = read_day(as_of)
    book = load_book(_meant(gpu) if gpu else None)
    warn_of_bad_rows(book)
    rows = book.rows if everything else counting_rows(book.rows, day)
    kind = parse_commitment(commitment) if commitment else None
    filters = {"provider": provider, "region": region, "commitment": kind}
    for field, value in filters.items():
        if value:
            rows = _only(rows, field, value)
    rows = tuple(sorted(rows, key=lambda row: (row.gpu, row.commitment, row.price_per_gpu_h)))
    if json:
        entries = [entry(row) | {"stale": row.is_stale(day)} for row in rows]
        print_document("prices", {"as_of": str(day), "rows": entries})
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
    name: Annotated[
        str,
        typer.Argument(
            metavar="GPU|ROW",
            help="A GPU, or the id of a price row.",
            autocompletion=options.completion(_gpus_and_rows),
        ),
    ],
    provider: ProviderOption = None,
    region: RegionOption = None,
    commitment: Kind = "on-demand",
    as_of: AsOfOption = None,
    json: options.JsonFlag = False,
) -> None:
    """Show the price that a plan would use for a GPU and the rows behind it, or show one row in full."""
    from pricing import quote_gpu

    row = next((row for row in load_book().rows if row.id == name), None)
    if row is not None:
        cells = entry(row)
        text = details([(key, str(cells[key])) for key in COLUMNS])
        print_document("price-row", {"row": cells}) if json else typer.echo(text, nl=False)
        return
    gpu = _meant(name)
    price = quote_gpu(gpu, provider=provider, region=region, commitment=commitment, as_of=read_day(as_of))
    if json:
        from mpplan.api.document import worded
        from planner.answer.document import plain

        print_document("price", {"price": worded(plain(price))})
    else:
        _show_price(price)


def _meant(name: str) -> str:
    """Return the id of a GPU, resolved as a plan resolves its name."""
    return find_gpu(meant("gpu", name, load_gpus())).id


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
        vague = warning.key == "price.warning.vague_date"  # elsewhere this warning refers to the present command
        warn(word(Message.of("price.warning.vague_date_shown") if vague else warning))


@prices_app.command("add")
def add(
    gpu: OfGpu,
    provider: Annotated[str, typer.Option("--provider", metavar="NAME", help="Provider of the price.")],
    price: Price,
    source: Annotated[str, typer.Option("--source", metavar="TEXT", help="Where the price can be looked up.")],
    currency: AddCurrency = "USD",
    commitment: Kind = "on-demand",
    region: Annotated[str, typer.Option("--region", metavar="NAME", help="The provider's region.")] = "",
    instance: Annotated[str, typer.Option("--instance", metavar="NAME", help="The provider's instance type.")] = "",
    gpus: Annotated[int, typer.Option("--gpus", metavar="N", help="GPUs of that instance.")] = 1,
    seller: Seller = "provider",
    day: Dated = None,
    notes: Annotated[str, typer.Option("--notes", metavar="TEXT", help="Notes.")] = "",
    json: options.JsonFlag = False,
) -> None:
    """Add one row to your own book; earlier rows of the same provider and GPU are kept as history."""
    from pricing.book.check import check_book
    from pricing.book.user_book import add_rows, row_id
    from pricing.files.exchange_rates import load_rates

    on = read_price_day(day)
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
    own = load_book(row.gpu)
    warn_of_bad_rows(own)
    same = [other for other in own.rows if other.offer == row.offer]
    _refuse_conflicts(tuple(other for other in same if other.price_per_gpu_h != row.price_per_gpu_h))
    book = own.plus([row])
    findings = [finding for finding in check_book(book, load_rates(), today()) if finding.row_id == "new"]
    for finding in findings:
        if finding.is_error:
            raise UsageError(finding.what, hint="check the price and its commitment")
        warn(finding.what)
    done = add_rows([row], skip_invalid=False)
    _refuse_conflicts(done.conflicts)
    if json:
        rows = [entry(row) for row in done.added]
        print_document("prices-add", {"book": str(user_book_path()), "added": rows, "known": done.known})
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


prices_app.command("check")(price_files.check)
prices_app.command("import")(price_files.import_file)
prices_app.command("refresh")(price_files.refresh_sources)
prices_app.command("repair")(price_files.repair)

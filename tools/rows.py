"""Check that every row of the data files is valid: `make rows`.

For each file in `planner/catalog/` and `pricing/data/`, the program's own reader must accept it. Every row must have a
source, a date that is not in the future, and a unique key. Ranges must be ordered, GPUs must have the names of
`gpus.csv`, and cells must not contain control characters. Prints the number of rows of each file and every fault as
`file:line: column: what`, and exits with 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from planner.answer.run_totals import load_run_totals
from planner.claims.claim import load_claims
from planner.claims.shipped import load_verdicts
from planner.errors import MpplanError
from planner.hardware.architectures import find_architecture
from planner.hardware.catalogue import load_gpus
from planner.hardware.failures import load_failures
from planner.hardware.interconnect import load_interconnect
from planner.hardware.skypilot_names import skypilot_names
from planner.kernels.catalogue import kernel_rows, load_surface
from planner.models.catalogue import load_models
from planner.models.images.catalogue import load_image_models
from planner.models.published_names import load_published_names
from planner.question.usual_names import usual_names
from planner.rates.parameters import read_parameters
from planner.rows import CATALOG, Row, read_rows
from planner.training.frameworks import load_frameworks
from planner.training.grad_compression import load_grad_compressions
from planner.training.loss_scalers import load_loss_scalers
from planner.training.losses import load_losses
from planner.training.method import load_methods
from planner.training.number_formats import load_number_formats
from planner.training.optimizers import load_optimizers
from planner.training.policies import load_policies
from planner.training.releases import load_releases
from planner.validation.runs import Rejected, parse_run
from pricing.base.folder import DATA
from pricing.book.gpu_names import name_rules
from pricing.book.reading import shipped_book
from pricing.contracts.own_file import server_rows
from pricing.gpu_price.reserved import discounts
from pricing.place.carbon import embodied_of
from pricing.place.electricity import electricity_rows
from pricing.place.places import grid_rows, place_of
from pricing.place.site import pue_rows
from pricing.sources.azure import machines


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """Requirements for the rows of one file."""

    path: Path
    key: tuple[str, ...]
    """Columns that together identify a row."""
    dates: tuple[str, ...] = ()
    """Columns with a day, a month or a year, all required; only the first must not be in the future."""
    has_source: bool = True
    gpu: str | None = None
    """Column that names a GPU of the catalogue, if it is filled in."""
    ordered: tuple[str, ...] = ()
    """Columns whose values increase from left to right, if they are filled in."""
    load: Callable[[], object] | None = None
    """The program's own reader; None if another file's reader also reads this one."""


def _kernels() -> None:
    for surface in kernel_rows():
        load_surface(surface)


def _runs(name: str) -> None:
    for row in read_rows(CATALOG / name):
        run = parse_run(row.cells, row.line)
        if isinstance(run, Rejected):
            raise row.fail("id", str(run.reason))


FILES = (
    DataFile(path=CATALOG / "architectures.csv", key=("id",), dates=("year", "date"), gpu="reference_gpu",
             load=lambda: find_architecture("hopper")),
    DataFile(path=CATALOG / "claims.csv", key=("id",), dates=("date",), load=load_claims),
    DataFile(path=CATALOG / "claim_verdicts.csv", key=("id",), has_source=False, load=load_verdicts),
    DataFile(path=CATALOG / "failures.csv", key=("id",), dates=("date",), load=load_failures),
    DataFile(path=CATALOG / "frameworks.csv", key=("id",), dates=("date",), load=load_frameworks),
    DataFile(path=CATALOG / "gpu_aliases.csv", key=("alias",), has_source=False, gpu="gpu"),
    DataFile(path=CATALOG / "gpus.csv", key=("id",), dates=("year",), load=load_gpus),
    DataFile(path=CATALOG / "grad_compressions.csv", key=("id",), dates=("date",), load=load_grad_compressions),
    DataFile(path=CATALOG / "image_models.csv", key=("id",), dates=("date",), load=load_image_models),
    DataFile(path=CATALOG / "interconnect.csv", key=("id",), dates=("date",), load=load_interconnect),
    DataFile(path=CATALOG / "kernel_points.csv", key=("surface", "at"), has_source=False),
    DataFile(path=CATALOG / "kernels.csv", key=("id",), dates=("date",), gpu="gpu", load=_kernels),
    DataFile(path=CATALOG / "loss_scalers.csv", key=("id",), dates=("date",), load=load_loss_scalers),
    DataFile(path=CATALOG / "methods.csv", key=("id",), dates=("date",), load=load_methods),
    DataFile(path=CATALOG / "models.csv", key=("id",), dates=("date",), load=load_models),
    DataFile(path=CATALOG / "optimizers.csv", key=("id",), dates=("date",), load=load_optimizers),
    DataFile(path=CATALOG / "parameters.csv", key=("id",), dates=("date",), ordered=("low", "value", "high"),
             load=lambda: read_parameters(CATALOG / "parameters.csv")),
    DataFile(path=CATALOG / "policies.csv", key=("id",), dates=("date",), load=load_policies),
    DataFile(path=CATALOG / "posterior.csv", key=("id",), has_source=False),
    DataFile(path=CATALOG / "published_runs.csv", key=("id", "metric"),
             load=lambda: _runs("published_runs.csv")),
    DataFile(path=CATALOG / "number_formats.csv", key=("id",), dates=("date",), load=load_number_formats),
    DataFile(path=CATALOG / "precision_losses.csv", key=("id",), dates=("date",), gpu="gpu", load=load_losses),
    DataFile(path=CATALOG / "published_names.csv", key=("model",), dates=("date",), load=load_published_names),
    DataFile(path=CATALOG / "asked_totals.csv", key=("date",), dates=("date",), load=load_run_totals),
    DataFile(path=CATALOG / "run_totals.csv", key=("date",), dates=("date",), load=load_run_totals),
    DataFile(path=CATALOG / "software_releases.csv", key=("id",), dates=("released", "date"), load=load_releases),
    DataFile(path=CATALOG / "skypilot_gpus.csv", key=("gpu",), dates=("source_date",), gpu="gpu", load=skypilot_names),
    DataFile(path=CATALOG / "sweep_runs.csv", key=("id",), load=lambda: _runs("sweep_runs.csv")),
    DataFile(path=CATALOG / "usual_names.csv", key=("kind", "name"), dates=("date",),
             load=lambda: usual_names("gpu")),
    DataFile(path=DATA / "azure_skus.csv", key=("sku",), gpu="gpu", load=machines),
    DataFile(path=DATA / "discounts.csv", key=("id",), dates=("date",), load=discounts),
    DataFile(path=DATA / "electricity.csv", key=("id",), dates=("date_earliest", "date_latest"),
             ordered=("date_earliest", "date_latest"), load=electricity_rows),
    DataFile(path=DATA / "embodied.csv", key=("id",), dates=("date",), gpu="gpu",
             load=lambda: embodied_of("h100-sxm5-80gb")),
    DataFile(path=DATA / "gpu_names.csv", key=("pattern", "memory_gib_low"), has_source=False, load=name_rules),
    DataFile(path=DATA / "gpu_prices.csv", key=("id",), dates=("date_earliest", "date_latest"), gpu="gpu",
             ordered=("date_earliest", "date_latest"), load=shipped_book),
    DataFile(path=DATA / "grid.csv", key=("zone",), dates=("year",), load=grid_rows),
    DataFile(path=DATA / "pue.csv", key=("id",), dates=("date",), ordered=("low", "pue_ratio", "high"), load=pue_rows),
    DataFile(path=DATA / "regions.csv", key=("provider", "region"), load=lambda: place_of("aws", "us-east-1")),
    DataFile(path=DATA / "servers.csv", key=("id",), dates=("date_earliest", "date_latest"), gpu="gpu",
             ordered=("usd_per_gpu_low", "usd_per_gpu", "usd_per_gpu_high"), load=server_rows),
)  # fmt: skip
DATE = re.compile(r"(?P<year>\d{4})(-(?P<month>\d{2})(-(?P<day>\d{2}))?)?")
LEAST_SOURCE = 8
"""Minimum number of characters with which a source can be looked up."""


def faults(file: DataFile, today: str = "") -> Iterator[str]:
    """Yield the faults of a file, as `file:line: column: what`.

    Args:
        file: requirements for its rows.
        today: ISO date after which no date may be; empty: today in UTC.
    """
    try:
        if file.load is not None:
            file.load()
        rows = read_rows(file.path)
    except MpplanError as error:
        yield str(error)
        return
    first_line: dict[tuple[str, ...], int | None] = {}
    for row in rows:
        key = tuple(row.cell(column) for column in file.key)
        if key in first_line:
            yield f"{file.path.name}:{row.line}: {file.key[-1]}: the same as in line {first_line[key]}"
        first_line[key] = row.line
        for column, what in _row_faults(file, row, today or datetime.now(UTC).date().isoformat()):
            yield f"{file.path.name}:{row.line}: {column}: {what}, found `{row.cell(column)[:80]}`"


def _row_faults(file: DataFile, row: Row, today: str) -> Iterator[tuple[str, str]]:
    """Yield the faulty columns of one row, with what was expected."""
    for column, text in row.cells.items():
        if not text.isprintable() or "\ufffd" in text:
            yield column, "expected no control characters"
    if file.has_source and len(row.cell("source")) < LEAST_SOURCE:
        yield "source", "expected where it can be looked up"
    for column in file.dates:
        date = DATE.fullmatch(row.cell(column))
        if date is None or not "01" <= (date["month"] or "01") <= "12" or not "01" <= (date["day"] or "01") <= "31":
            yield column, "expected a year, a month or a day such as 2026-08-28"
        elif column == file.dates[0] and row.cell(column) > today:
            yield column, "expected a date that is not in the future"
    if file.gpu is not None and row.cell(file.gpu) and row.cell(file.gpu) not in load_gpus():
        yield file.gpu, "expected an id of gpus.csv"
    yield from _unordered(file, row)


def _unordered(file: DataFile, row: Row) -> Iterator[tuple[str, str]]:
    filled = [column for column in file.ordered if row.cell(column)]
    for lower, upper in pairwise(filled):
        values = (row.cell(lower), row.cell(upper))
        ordered = values[0] <= values[1] if lower in file.dates else float(values[0]) <= float(values[1])
        if not ordered:
            yield upper, f"expected at least `{lower}`, {values[0]}"


def main() -> int:
    """Print the number of rows of each file and every fault; return 1 if there is one."""
    wrong = 0
    for file in FILES:
        listed = list(faults(file))
        wrong += len(listed)
        rows = "unreadable" if listed and not file.path.exists() else f"{len(read_rows(file.path)):5} rows"
        sys.stdout.write(f"{rows}  {file.path.name}\n" + "".join(f"  {fault}\n" for fault in listed))
    sys.stdout.write(f"{wrong} fault{'' if wrong == 1 else 's'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

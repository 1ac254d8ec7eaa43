"""`mpplan records`: the available measurement records, both the user's own and the shipped ones."""

from __future__ import annotations

import sys
from dataclasses import asdict
from json import dumps
from typing import Annotated, Any

import typer

from mpplan.api.record_shelf import RecordShelf
from mpplan.commands.measuring.records_import import import_record
from mpplan.commands.measuring.records_merge import merge_records
from mpplan.ui import options
from mpplan.ui.collectives import collectives_text
from mpplan.ui.console import note
from mpplan.ui.listing import counted, details, figure, table
from mpplan.ui.probe_display import finding_text
from planner.errors import UsageError
from planner.measured.network.lines import collective_lines
from planner.records.home import NAMED, user_path
from planner.records.measurement import Measurement
from planner.records.store import (
    RECORD_SUFFIXES,
    StoredRecord,
    find_record,
    list_records,
    open_record,
    remove_record,
)
from planner.records.summary import RecordSummary
from planner.units import GIB, MILLI, TERA

LIST_SCHEMA, RECORD_SCHEMA = "mpplan.records/1", "mpplan.record/1"

records_app = typer.Typer(help="List, show, import, merge and remove measurement records.", no_args_is_help=True)
records_app.command("import")(import_record)
records_app.command("merge")(merge_records)

Name = Annotated[str, typer.Argument(metavar="RECORD", help="Name of a record.")]
NameOrFile = Annotated[
    str, typer.Argument(metavar="RECORD", help="Name of a record, or a record file (.jsonl or .jsonl.gz).")
]
Prefix = Annotated[bool, typer.Option("--prefix", help="Accept the beginning of a name, if only one record has it.")]


@records_app.command("list")
def list_all(json: options.JsonFlag = False) -> None:
    """List the records, newest first; `*` marks those that plans use, for a GPU's rates and for its network."""
    records = list_records(named=True)
    gpus = {record.gpu for record in records if record.gpu}
    shelf = RecordShelf(None)
    used = (choose(str(gpu)) for gpu in gpus for choose in (shelf.newest, shelf.newest_network))
    chosen = {record.path for record in used if record is not None}
    if json:
        entries = [_listed(record) | {"used": record.path in chosen} for record in records]
        typer.echo(dumps({"schema": LIST_SCHEMA, "records": entries}, indent=2, ensure_ascii=False))
        return
    if not records:
        note("no records yet: `mpplan probe` measures this machine's GPU, `mpplan probe --device cpu` its CPU")
        return
    rows = [
        (
            "*" if record.path in chosen else "",
            record.name,
            record.gpu or "-",
            record.facts.device_name or record.facts.problem or "-",
            (record.facts.date or "-")[:16].replace("T", " "),
            str(record.facts.points),
            "yes" if record.facts.trustworthy else "no",
            record.facts.imported or _origin(record),
        )
        for record in records
    ]
    typer.echo(table(("", "record", "gpu", "device", "measured", "points", "trusted", "from"), rows), nl=False)


@records_app.command("show")
def show(name: NameOrFile, prefix: Prefix = False, json: options.JsonFlag = False) -> None:
    """Show the contents of a record."""
    if name.endswith(RECORD_SUFFIXES) and (user_path(name).exists() or not _is_stored(name)):
        record = open_record(user_path(name))
    else:
        summary = find_record(name, prefix=prefix)
        record = open_record(summary.path, shipped=summary.shipped)
    points = record.file.latest()
    collectives = collective_lines(points)
    if json:
        held = {"collectives": [asdict(line) for line in collectives], "measurements": [asdict(p) for p in points]}
        typer.echo(dumps({"schema": RECORD_SCHEMA} | _entry(record) | held, indent=2, ensure_ascii=False))
        return
    typer.echo(details(_head(record)), nl=False)
    if collectives:
        typer.echo(f"\n{collectives_text(collectives)}", nl=False)
    rows = [_line(point) for point in points]
    if rows:
        typer.echo()
        headers = ("point", "status", "ms", "± %", "TFLOP/s", "GiB", "W", "J", "quality", "reason")
        typer.echo(table(headers, rows), nl=False)


@records_app.command("remove")
def remove(
    name: Name,
    prefix: Prefix = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove it without asking.")] = False,
) -> None:
    """Remove one of your own records."""
    record = find_record(name, prefix=prefix)
    if not record.shipped and not yes and not _is_wanted(record):
        note(f"kept {record.name}")
        return
    if not record.shipped:
        from probes.record.lock import must_be_free

        must_be_free(record.path)
    remove_record(record)
    note(f"removed {record.name}")


def _origin(record: RecordSummary) -> str:
    if not record.shipped:
        return "own"
    return "shipped, by name" if record.path.parent.name == NAMED else "shipped"


def _is_stored(file: str) -> bool:
    """Return whether the store holds a file of this name."""
    return any(record.path.name == file for record in list_records())


def _is_wanted(record: RecordSummary) -> bool:
    """Ask whether to remove a record.

    Raises:
        UsageError: nobody can answer.
        typer.Abort: the question was interrupted.
    """
    try:
        return typer.confirm(f"remove {record.name}, {counted(record.facts.points, 'point')}?", err=True)
    except typer.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
        typer.echo(err=True)  # end the line of the question
        raise UsageError(
            f"the question whether to remove `{record.name}` was not answered", hint="`--yes` removes it without asking"
        ) from None


def _head(record: StoredRecord) -> list[tuple[str, str]]:
    first = record.file.measurements[0] if record.file.measurements else None
    pairs = [
        ("record", record.name),
        ("file", str(record.path)),
        ("device", record.device_name or "-"),
        ("gpu", record.gpu or "not in the catalogue"),
        ("measured", record.date or "-"),
        ("points", str(record.verdict.points)),
        ("trusted", "yes" if record.verdict.trustworthy else "no"),
    ]
    if first is not None and first.imported.tool is not None:
        origins = dict.fromkeys((p.imported.tool, p.imported.file, p.imported.sha256) for p in record.file.measurements)
        pairs += [("imported", f"{tool}: {file}, SHA-256 {sha256}") for tool, file, sha256 in origins]
    if first is not None:
        versions = [
            ("torch", first.software.torch_version),
            ("driver", first.software.driver_version),
            ("python", first.software.python_version),
        ]
        pairs += [(name, value) for name, value in versions if value]
    return pairs + [("finding", finding.what) for finding in record.verdict.findings]


def _line(point: Measurement) -> tuple[str, ...]:
    time_s, sd = point.time.median_s, point.time_relative_sd
    rate = point.counts.flop_model / time_s if time_s and point.counts.flop_model else None
    return (
        point.probe_id,
        point.status,
        figure(time_s, MILLI),
        figure(None if sd is None else 196.0 * sd, digits=2),
        figure(rate, TERA),
        figure(point.memory.allocated_peak_bytes, GIB),
        figure(point.power.mean_w),
        figure(point.energy.j_per_iteration),
        point.sampling.quality or "-",
        finding_text(point) if point.kind == "numerics" and point.status == "ok" else point.reason or "",
    )


def _listed(record: RecordSummary) -> dict[str, Any]:
    """Return a record for the list; if it cannot be opened, only the reason."""
    try:
        if record.path.is_file():  # opening a pipe would wait for a writer
            return _entry(open_record(record.path, shipped=record.shipped))
        raise UsageError(str(record.facts.problem))
    except UsageError as error:
        problem = {"line": 0, "key": None, "what": str(error), "used": False}
        return {
            "name": record.name, "path": str(record.path), "shipped": record.shipped, "gpu": None, "device_name": None,
            "date": None, "points": 0, "trustworthy": False, "findings": [], "problems": [problem], "imported": None,
        }  # fmt: skip


def _entry(record: StoredRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "path": str(record.path),
        "shipped": record.shipped,
        "gpu": record.gpu,
        "device_name": record.device_name,
        "date": record.date,
        "points": record.verdict.points,
        "trustworthy": record.verdict.trustworthy,
        "findings": [asdict(finding) for finding in record.verdict.findings],
        "problems": [asdict(problem) for problem in record.file.problems],
        "imported": next((point.imported.tool for point in record.file.measurements), None),
    }

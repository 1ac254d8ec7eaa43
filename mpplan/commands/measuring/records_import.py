"""`mpplan records import`: turn measurements of other tools into a record that names them as its source."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.listing import counted, details, figure, table
from mpplan.ui.output import new_output, new_record
from mpplan.ui.progress import working
from planner.errors import UsageError
from planner.question.inputs import GLOBAL_BATCH, PRECISION, SEQ_LEN
from planner.question.parsers import whole_number
from planner.units import MILLI

if TYPE_CHECKING:
    from mpplan.api.imports import Imported
    from planner.imported.reading import Training

SHOWN_POINTS = 20

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Output of nccl-tests, nvidia-smi, dcgmi, Zeus, CodeCarbon or the PyTorch profiler, from one GPU model.",
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="FORMAT",
        help="nccl-tests, nvidia-smi, dcgm, zeus, codecarbon or torch-trace. Default: detected from the content.",
    ),
]
Steps = Annotated[
    str | None,
    typer.Option(
        "--steps",
        metavar="LOG",
        help="Log of the steps that ran during the measurement: any that `mpplan compare` reads, or CSV or JSON Lines "
        "with `step_time_s` or `timestamp`.",
    ),
]
Gpu = Annotated[str | None, typer.Option("--gpu", metavar="ID", help="The GPU, if no file names it.")]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="The model that was trained.")]
Precision = Annotated[str | None, typer.Option("--precision", metavar="NAME", help="The precision it was trained in.")]
Gpus = Annotated[str | None, typer.Option("--gpus", metavar="N", help="Total number of GPUs in the run.")]
SeqLen = Annotated[str | None, typer.Option("--seq-len", metavar="N", help="Tokens per sequence.")]
Batch = Annotated[
    str | None, typer.Option("--global-batch", metavar="N", help="Sequences per step. Default: from the log.")
]
Offset = Annotated[
    str | None,
    typer.Option("--utc-offset", metavar="HH:MM", help="UTC offset of times without a time zone, like +01:00."),
]
Record = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Write the record to this file (.jsonl or .jsonl.gz); without it, none is written.",
    ),
]
Runs = Annotated[
    str | None,
    typer.Option("--runs", metavar="PATH", help="Also write rows for `mpplan calibrate` to this CSV file."),
]


def import_record(
    files: Files,
    form: Form = None,
    steps: Steps = None,
    gpu: Gpu = None,
    model: Model = None,
    precision: Precision = None,
    gpus: Gpus = None,
    seq_len: SeqLen = None,
    global_batch: Batch = None,
    utc_offset: Offset = None,
    output: Record = None,
    runs: Runs = None,
    json: options.JsonFlag = False,
    quiet: options.QuietFlag = False,
) -> None:
    """Import other tools' measurements as a record, noting each file's source and limitations.

    Exit codes: 0 imported; 2 a flag is needed that the files cannot supply; 3 a file is invalid.
    """
    from mpplan.api.imports import calibration_rows, document, import_files, runs_table
    from planner.records.jsonl import record_bytes
    from planner.runlog.moments import parse_utc_offset

    record, table_place = new_record(output), new_output(runs, "--runs")
    if record is not None and record.is_stdout and (json or (table_place is not None and table_place.is_stdout)):
        raise UsageError("only one answer can go to stdout", hint="name a file with `-o`")
    training = _training(model, precision, gpus, seq_len, global_batch)
    offset_s = None if utc_offset is None else parse_utc_offset(utc_offset)
    with working("reading", quiet=quiet):
        imported = import_files(files, form=form, steps=steps, gpu=gpu, training=training, utc_offset_s=offset_s)
    rows = calibration_rows(imported) if runs is not None else []
    if table_place is not None:
        table_place.write(runs_table(imported))
    if record is not None:
        record.write(record_bytes(imported.measurements, str(record.path or "")))
    written = str(record.path) if record is not None and record.path else None
    if json:
        typer.echo(dumps(document(imported, written, rows), indent=2, ensure_ascii=False))
    elif not any(place is not None and place.is_stdout for place in (record, table_place)):
        typer.echo("\n".join(_text(imported)), nl=False)
    for path in (place.path for place in (record, table_place) if place is not None and place.path is not None):
        note(f"wrote {path}", quiet=quiet)
    if record is None and table_place is None and not json:
        warn("nothing was written: name a file for the record with `-o`", quiet=quiet)


def _training(
    model: str | None, precision: str | None, gpus: str | None, seq_len: str | None, batch: str | None
) -> Training:
    """Build the description of the training from what was typed."""
    from planner.imported.reading import Training
    from planner.models.catalogue import model_named

    known = None if model is None else model_named(model)
    return Training(
        model=model if known is None else known.name,
        precision=None if precision is None else PRECISION.parse(precision, "--precision"),
        gpus=None if gpus is None else whole_number()(gpus, "--gpus"),
        seq_len=None if seq_len is None else SEQ_LEN.parse(seq_len, "--seq-len"),
        global_batch=None if batch is None else GLOBAL_BATCH.parse(batch, "--global-batch"),
    )


def _text(imported: Imported) -> list[str]:
    """Return the answer for people: the files with their doubts, then the points."""
    device = imported.device
    gpu = device.gpu or "not in the catalogue"
    parts = [f"Imported {counted(len(imported.measurements), 'point')} of {device.name} ({gpu})", ""]
    for file in imported.files:
        version = f" {file.reading.tool_version}" if file.reading.tool_version else ""
        pairs = [
            ("file", file.source.name),
            ("tool", f"{file.form.name}{version}"),
            ("measured", file.reading.date or "the file does not say when"),
            ("gives", file.form.gives),
            *[("doubt", doubt) for doubt in file.reading.doubts],
            *[("doubt", doubt) for doubt in _own_doubts(imported, file.source.sha256)],
        ]
        parts.append(details(pairs))
    return [*parts, _points(imported)]


def _own_doubts(imported: Imported, sha256: str) -> list[str]:
    """Return the doubts about a file's points that are not already doubts about the file."""
    file = next(file for file in imported.files if file.source.sha256 == sha256)
    points = (point for point in imported.measurements if point.imported.sha256 == sha256)
    doubts = dict.fromkeys(doubt for point in points for doubt in point.imported.doubts)
    return [doubt for doubt in doubts if doubt not in file.reading.doubts]


def _points(imported: Imported) -> str:
    headers = ("point", "ms", "± %", "W", "± %", "J", "samples")
    rows: list[tuple[str, ...]] = []
    for point in imported.measurements[:SHOWN_POINTS]:
        rows.append(
            (
                point.probe_id,
                figure(point.time.median_s, MILLI),
                _range(point.time_relative_sd),
                figure(point.power.mean_w),
                _range(point.imported.power_sd_ratio),
                figure(point.energy.j_per_iteration),
                "-" if point.sampling.samples is None else str(point.sampling.samples),
            )
        )
    more = len(imported.measurements) - SHOWN_POINTS
    return table(headers, rows) + (f"… and {counted(more, 'point')} more\n" if more > 0 else "")


def _range(relative_sd: float | None) -> str:
    """Return half the width of a 95% interval, in percent."""
    return figure(None if relative_sd is None else 196.0 * relative_sd, digits=2)

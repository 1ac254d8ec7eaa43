"""`mpplan records import` without terminal output: convert files of other tools to record lines and to rows of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mpplan.version import __version__
from planner.csv_table import csv_table
from planner.errors import UsageError
from planner.imported.formats import format_of
from planner.imported.formats.base import ImportFormat
from planner.imported.reading import ImportContext, Training
from planner.imported.record import ImportedDevice, ImportedFile, device_of, to_measurements
from planner.imported.source import SourceFile, read_source
from planner.imported.steps import read_steps
from planner.imported.steps.log import StepLog
from planner.lazy import dataclass
from planner.records.home import user_path
from planner.records.measurement import Measurement
from planner.validation.template import COLUMNS

SCHEMA = "mpplan.import/1"
ROW_COLUMNS = (*COLUMNS, "source", "notes")
"""Columns of the rows for `mpplan calibrate`: those of its template, and those that give the origin of a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The imported content."""

    files: tuple[ImportedFile, ...]
    device: ImportedDevice
    measurements: tuple[Measurement, ...]
    training: Training
    steps: StepLog | None


def import_files(
    names: Sequence[str],
    *,
    form: str | None = None,
    steps: str | None = None,
    gpu: str | None = None,
    training: Training | None = None,
    utc_offset_s: float | None = None,
) -> Imported:
    """Read files of other tools.

    Args:
        names: paths of the files; at least one.
        form: name of their format; None: detect the format of each file from its content.
        steps: path of the log of the steps that ran meanwhile.
        gpu: name of the GPU; None: the one that the files state.
        training: what was trained.
        utc_offset_s: how far times without a time zone are ahead of UTC, in seconds.

    Raises:
        UsageError: a file is missing, required information is missing, or a name is unknown.
        InputFileError: a file is damaged, has no known format, or holds nothing of use.
    """
    sources = [read_source(user_path(name)) for name in names]
    _check_once(sources)
    forms = [format_of(source, form) for source in sources]
    if steps is not None and not any(known.takes_steps for known in forms):
        raise UsageError(f"--steps has no effect on a file of {forms[0].name}", hint="leave it out")
    log = None if steps is None else read_steps(read_source(user_path(steps)))
    what = _with_batch(training or Training(), log)
    context = ImportContext(training=what, steps=log, utc_offset_s=utc_offset_s)
    files = tuple(_read(source, known, context) for source, known in zip(sources, forms, strict=True))
    device = device_of(files, gpu)
    measurements = tuple(to_measurements(files, device, __version__))
    return Imported(files=files, device=device, measurements=measurements, training=what, steps=log)


def _with_batch(training: Training, log: StepLog | None) -> Training:
    """Return the training description with the batch size from the log of steps.

    Raises:
        UsageError: the user gave a different batch size.
    """
    logged = None if log is None else log.sequences_per_step
    if logged is None or logged != int(logged) or logged < 1:
        return training
    if training.global_batch not in (None, int(logged)):
        raise UsageError(
            f"--global-batch: the log of steps says {logged:g}, not {training.global_batch}", hint="leave it out"
        )
    return replace(training, global_batch=int(logged))


def _read(source: SourceFile, form: ImportFormat, context: ImportContext) -> ImportedFile:
    return ImportedFile(source=source, form=form, reading=form.read(source, context))


def _check_once(sources: Sequence[SourceFile]) -> None:
    """Raise if a file is given twice, because it would count twice."""
    by_hash: dict[str, str] = {}
    for source in sources:
        if source.sha256 in by_hash:
            raise UsageError(
                f"`{source.name}` has the same content as `{by_hash[source.sha256]}`", hint="give each file once"
            )
        by_hash[source.sha256] = source.name


def runs_table(imported: Imported) -> str:
    """Return the rows from which `mpplan calibrate` learns, as CSV.

    Raises:
        UsageError: the files contain no training, or part of the description of the training is unknown.
    """
    rows = calibration_rows(imported)
    return csv_table(ROW_COLUMNS, [[row.get(column, "") for column in ROW_COLUMNS] for row in rows], line_end="\n")


def calibration_rows(imported: Imported) -> list[dict[str, Any]]:
    """Return rows for `mpplan calibrate` as values by column: one for the step time, one for a GPU's mean power.

    Raises:
        UsageError: as `runs_table`.
    """
    trained = [point for point in imported.measurements if point.kind == "training"]
    if not trained:
        raise UsageError(
            "--runs: none of the files describes training",
            hint="files of kernels and collectives contain no runs; leave --runs out",
        )
    known = _known(imported)
    missing = [flag for flag, value in known.items() if value in (None, "")]
    if missing:
        raise UsageError(
            f"--runs: {', '.join(missing)} must be known to make a row",
            hint="give these flags: `mpplan calibrate` predicts each row before it learns from it",
        )
    shared = {
        "model": known["--model"], "precision": known["--precision"], "gpu": imported.device.gpu,
        "n_gpus": known["--gpus"], "seq_len": known["--seq-len"], "global_batch_seqs": known["--global-batch"],
        "framework": imported.steps.program if imported.steps else "", "energy_scope": "gpu",
    }  # fmt: skip
    return [
        {**shared, "id": f"{point.imported.tool}-{point.seq}-{metric}", "metric": metric, "value": f"{value:.6g}",
         "source": f"{point.imported.tool}: {point.imported.file}", "notes": "; ".join(point.imported.doubts)}
        for point in trained
        for metric, value in _figures(point)
    ]  # fmt: skip


def _known(imported: Imported) -> dict[str, Any]:
    """Return the values that a row needs, by the flag that sets each."""
    training = imported.training
    return {
        "--model": training.model, "--precision": training.precision, "--gpu": imported.device.gpu,
        "--gpus": training.gpus, "--seq-len": training.seq_len, "--global-batch": training.global_batch,
    }  # fmt: skip


def _figures(point: Measurement) -> list[tuple[str, float]]:
    figures: list[tuple[str, float]] = []
    if point.setup.role == "step" and point.time.median_s is not None:
        figures.append(("step_time_s", point.time.median_s))
    if point.power.mean_w is not None:
        figures.append(("avg_gpu_power_w", point.power.mean_w))
    return figures


def document(imported: Imported, record: str | None, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the document that `mpplan records import --json` prints.

    Args:
        imported: the imported files.
        record: path of the record; None if it was not written.
        rows: the rows for `mpplan calibrate`.
    """
    return {
        "schema": SCHEMA,
        "record": record,
        "device_name": imported.device.name,
        "gpu": imported.device.gpu,
        "files": [
            {
                "file": file.source.name,
                "tool": file.form.name,
                "version": file.reading.tool_version,
                "sha256": file.source.sha256,
                "date": file.reading.date,
                "gives": file.form.gives,
                "doubts": list(file.reading.doubts),
            }
            for file in imported.files
        ],
        "points": [_point(point) for point in imported.measurements],
        "rows": [{column: str(value) for column, value in row.items() if value not in (None, "")} for row in rows],
    }


def _point(point: Measurement) -> dict[str, Any]:
    return {
        "probe_id": point.probe_id,
        "kind": point.kind,
        "precision": point.setup.precision,
        "time_s": point.time.median_s,
        "time_relative_sd": point.time_relative_sd,
        "power_w": point.power.mean_w,
        "power_relative_sd": point.imported.power_sd_ratio,
        "energy_j": point.energy.j_per_iteration,
        "samples": point.sampling.samples,
        "doubts": list(point.imported.doubts),
    }

"""`mpplan validate`: predict published runs, then compare the predictions with the results."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpplan.commands.planning.runs_file import read_runs
from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.listing import counted as number_of
from mpplan.ui.listing import table
from mpplan.ui.output import open_output
from mpplan.ui.progress import counted
from mpplan.version import __version__
from planner.errors import Message, UsageError
from planner.records.home import user_path

if TYPE_CHECKING:
    from planner.calibration.document import ReadCalibration
    from planner.calibration.validation import HeldOutScore, LearnedValidation
    from planner.validation.score import ScoredRun, Summary
    from planner.validation.validate import MeasuredOf, Validation

File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="CSV file of runs, your own or published; `-` is stdin. Default: the published runs in the package.",
    ),
]
All = Annotated[bool, typer.Option("--all", help="Print every row, not only the summary and the largest misses.")]

Calibration = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Predict with this calibration, which `mpplan calibrate` wrote from your own runs."
    ),
]
Learn = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=1000,
        help="Learn from N rows of each lineage (team and software) and figure, and predict the others.",
    ),
]
Records = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Measurement record of the runs' GPUs: a file, a folder or a name. Default: with --calibration your "
        "own records, otherwise none.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Seed for choosing the rows of --learn.")]

SHOWN_UNREAD = 20
"""Maximum number of unreadable rows that are named; the rest are counted."""
FAR_OFF = 1e4
"""Relative errors from here on (a million percent) are written with a power of ten."""
SHOWN_MISSES = 15
SHOWN_GROUPS = 12
TABLES = {
    "by_precision": "precision",
    "by_group": "group",
    "by_gpu": "GPU",
    "by_framework": "framework",
    "by_size": "model size",
    "by_year": "GPU year",
    "by_stack": "stack",
}


def validate(
    file: File = None,
    json: options.JsonFlag = False,
    all_rows: All = False,
    calibration: Calibration = None,
    records: Records = None,
    learn: Learn = None,
    seed: Seed = 0,
    output: options.OutputOption = "-",
    quiet: options.QuietFlag = False,
) -> None:
    """Predict published runs and compare with what was reported."""
    from planner.validation.validate import to_validation_document, unmeasured
    from planner.validation.validate import validate as predict_and_score

    place = open_output(output or "-")
    if calibration is not None and learn is not None:
        raise UsageError("--calibration and --learn both say what is learned", hint="give one of them")
    rows = read_runs(file, quiet=quiet)
    if file is not None:
        _warn_of_unknown_words(rows, quiet)
    learned = None
    own = None if calibration is None else _calibration(calibration)
    measured_of = unmeasured if own is None and records is None else _measured(rows, records, own, quiet)
    started = time.perf_counter()
    if learn is not None:
        learned = _learned(rows, learn, seed, measured_of, quiet)
        validation = learned.validation
    else:
        parameters = None if own is None else own.parameters
        validation = predict_and_score(
            rows,
            progress=counted(len(rows), "rows", quiet=quiet),
            parameters_of=lambda _: parameters,
            measured_of=measured_of,
        )
    took_s, count = time.perf_counter() - started, len(rows)
    del rows  # free memory: with very many rows, the document needs the space
    if json:
        from mpplan.api.document import worded

        document = worded(to_validation_document(validation))
        if learned is not None:
            from planner.calibration.validation import to_learning_document

            document["learning"] = to_learning_document(learned)
        place.write(_json(document))
    else:
        place.write(("" if learned is None else _learning(learned) + "\n") + _shown(validation, all_rows))
    _warn_of_the_impossible(validation.runs, quiet, own=file is not None)
    if validation.skipped == len(validation.runs):
        warn("no row could be predicted; every row gives its reason", quiet=quiet)
    note(f"{number_of(count, 'row')} in {took_s:.1f} s, {count / max(took_s, 1e-9):,.0f} rows/s", quiet=quiet)


CHUNKS = 100_000
"""Number of JSON pieces joined at a time. All pieces, a few letters each, take several times the text's memory."""


def _json(document: Any) -> str:
    """Return a document as `json.dumps` writes it."""
    import json

    chunks = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False).iterencode(document)
    return "".join(iter(lambda: "".join(islice(chunks, CHUNKS)), "")) + "\n"


def _calibration(name: str) -> ReadCalibration:
    from planner.calibration.document import read_calibration
    from planner.rates.parameters import shipped_parameters

    return read_calibration(user_path(name), shipped_parameters())


def _warn_of_the_impossible(runs: Sequence[ScoredRun], quiet: bool, *, own: bool) -> None:
    """Name the rows that no GPU can have measured and, for the user's files, rows whose batch does not fit their GPUs.

    These rows are scored like any other.
    """
    from planner.validation.physical_limits import why_impossible, why_no_such_batch, why_uneven_batch
    from reports.text.messages import word

    checks = (why_no_such_batch, why_uneven_batch) if own else ()
    impossible = []
    for row in runs:
        if row.prepared is None or not row.counts or not row.published:
            continue
        reason = why_impossible(row.prepared, row.published)
        for check in checks:
            reason = reason or check(row.prepared)
        if reason is not None:
            impossible.append((row.id, word(reason)))
    for name, words in impossible[:SHOWN_GROUPS]:
        warn(f"{name}: {words}; it counts like any other row", quiet=quiet)


def _warn_of_unknown_words(rows: Sequence[Mapping[str, str]], quiet: bool) -> None:
    """Warn about unknown words in the user's rows; the shipped rows quote their sources and are not checked."""
    from mpplan.api.calibrations import unknown_words_told

    for words in unknown_words_told(rows):
        warn(words, quiet=quiet)


def _of_the_calibration(calibration: ReadCalibration | None, gpus: Collection[str]) -> list[Message]:
    """Warn if the calibration is of another mpplan version or does not cover some of the GPUs, as a plan would."""
    if calibration is None:
        return []
    learned_on = calibration.facts.gpus
    others = tuple(sorted(set(gpus) - set(learned_on)))
    far = [Message.of("warning.calibration_gpu", gpus=others, learned_on=learned_on)] if others else []
    return [*calibration.of_other_version(__version__), *far]


def _measured(
    rows: list[dict[str, str]], records: str | None, calibration: ReadCalibration | None, quiet: bool
) -> MeasuredOf:
    """Return the measured terms of the rows' GPUs, as a plan on these GPUs would use them.

    Raises:
        UsageError, InputFileError: the named records cannot be used.
    """
    from mpplan.api.run_records import record_mismatches, run_records
    from planner.validation.runs import parse_run
    from planner.validation.setup import Prepared, prepare
    from reports.text.messages import word

    prepared = prepare(parse_run(cells) for cells in rows)
    recorded = run_records(records, prepared)
    gpus = {run.cluster.gpu.id for run in prepared if isinstance(run, Prepared)}
    notices = [*recorded.notices, *_of_the_calibration(calibration, gpus)]
    if calibration is not None:
        notices += record_mismatches(calibration, recorded.used, gpus)
    for text in (*(word(notice) for notice in notices), *recorded.damage):
        warn(text, quiet=quiet)
    return recorded.terms


def _learned(
    rows: list[dict[str, str]], count: int, seed: int, measured_of: MeasuredOf, quiet: bool
) -> LearnedValidation:
    from planner.calibration.validation import learn_and_validate
    from planner.rates.parameters import shipped_parameters

    progress = counted(len(rows), "rows", quiet=quiet)
    return learn_and_validate(rows, count, seed, shipped_parameters(), progress, measured_of)


def _learning(learned: LearnedValidation) -> str:
    """Describe what learning changed: first each lineage, then the mean over lineages."""
    cells = [
        (score.lineage or "the file", score.figure.value, str(score.rows), *_change(score.before, score.after))
        for score in learned.scores
    ]
    for figure in dict.fromkeys(score.figure for score in learned.scores):
        mean = learned.mean(figure)
        if mean is not None:
            cells.append(("mean over lineages", figure.value, "", *_change(*mean)))
    if not cells:
        return f"no lineage has {number_of(learned.count, 'row')} to learn from and two to predict\n"
    heads = (
        "lineage",
        "figure",
        "rows",
        "error before",
        "after",
        "in the range before",
        "after",
        "width before",
        "after",
    )
    lead = f"Learned from {number_of(learned.count, 'row')} of each lineage and figure, predicted the others\n"
    return lead + table(heads, cells)


def _change(before: HeldOutScore, after: HeldOutScore) -> tuple[str, ...]:
    names = ("median_abs_error", "coverage", "median_width")
    return tuple(_percent(getattr(score, name)) for name in names for score in (before, after))


def _percent(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    digits = ".1f" if abs(value) < FAR_OFF else ".1e"
    return f"{100 * value:{'+' if sign else ''}{digits}}%"


def _summary_row(name: str, summary: Summary) -> tuple[str, ...]:
    return (
        name,
        str(summary.n),
        _percent(summary.median_abs_error),
        _percent(summary.p90_abs_error),
        _percent(summary.bias, sign=True),
        _percent(summary.coverage),
        _percent(summary.median_width),
    )


_HEADERS = ("runs", "median error", "90th percentile", "bias", "in the range", "width of the range")


def _shown(validation: Validation, all_rows: bool) -> str:
    parts = [_headline(validation), table(("", *_HEADERS), [_summary_row("all", validation.overall)])]
    for name, label in TABLES.items():
        groups = list(validation.breakdowns[name].items())
        rows = [_summary_row(value, summary) for value, summary in groups[: None if all_rows else SHOWN_GROUPS]]
        if rows:
            parts.append(table((label, *_HEADERS), rows))
    parts.append(_pairs(validation))
    parts.append(_skips(validation))
    parts.append(_all(validation.runs) if all_rows else _misses(validation.runs))
    return "\n".join(part for part in parts if part)


def _headline(validation: Validation) -> str:
    rows, skipped = len(validation.runs), validation.skipped
    wrong = sum(row.misjudged_fit for row in validation.runs)
    verdicts = sum(row.out_of_memory or row.metric == "peak_mem_gib" for row in validation.runs if row.prediction)
    lines = [
        f"{number_of(rows, 'run')}: {rows - skipped} predicted, {skipped} skipped, "
        f"{validation.overall.n} scored (repeats of one configuration count as one run)"
    ]
    if verdicts:
        lines.append(f"memory: {verdicts - wrong} of {verdicts} predictions of fit are right within 5%")
    return "\n".join(lines) + "\n"


def _pairs(validation: Validation) -> str:
    groups: dict[tuple[str, str], list[float]] = {}
    for pair in validation.pairs:
        if pair.error_ratio is not None and pair.metric != "peak_mem_gib":
            groups.setdefault((pair.frm, pair.to), []).append(abs(pair.error_ratio))
    rows = [
        (f"{frm} to {to}", str(len(errors)), _percent(sorted(errors)[len(errors) // 2]))
        for (frm, to), errors in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]
    return table(("speed-up of", "pairs", "median error"), rows) if rows else ""


def _skips(validation: Validation) -> str:
    from reports.text.messages import word

    names: dict[str, list[str]] = {}
    for row in validation.runs:
        if row.reason_skipped:
            names.setdefault(word(row.reason_skipped), []).append(row.id)
    if not names:
        return ""
    ordered = sorted(names.items(), key=lambda item: -len(item[1]))
    rows = [(reason, str(len(ids)), ids[0]) for reason, ids in ordered[:SHOWN_GROUPS]]
    more = f"and {number_of(len(ordered) - SHOWN_GROUPS, 'more reason')}\n" if len(ordered) > SHOWN_GROUPS else ""
    return table(("skipped because", "rows", "first"), rows) + more


def _all(runs: Sequence[ScoredRun]) -> str:
    """List every readable row, and the first of the unreadable ones."""
    unread = [row for row in runs if row.run is None]
    left_out = {id(row) for row in unread[SHOWN_UNREAD:]}
    text = _runs([row for row in runs if id(row) not in left_out])
    return text + (f"and {len(left_out):,} more rows that cannot be read\n" if left_out else "")


def _misses(runs: Iterable[ScoredRun]) -> str:
    scored = sorted((row for row in runs if row.counts), key=lambda row: -abs(row.error_ratio or 0.0))[:SHOWN_MISSES]
    if not scored:
        return ""
    return "Largest misses\n" + _runs(scored)


def _runs(runs: Iterable[ScoredRun]) -> str:
    from reports.text.messages import word

    rows = []
    for row in runs:
        prediction = row.prediction
        published = "OOM" if row.out_of_memory else _figure(row.published)
        verdict = (
            ""
            if prediction is None or row.metric != "peak_mem_gib"
            else ("fits" if prediction.fits else "does not fit")
        )
        rows.append(
            (
                row.id,
                row.metric,
                published,
                _figure(prediction.low if prediction else None),
                _figure(prediction.mid if prediction else None),
                _figure(prediction.high if prediction else None),
                _percent(row.error_ratio, sign=True),
                verdict,
                word(row.reason_skipped or ""),
            )
        )
    return table(("id", "metric", "actual", "low", "mid", "high", "error", "verdict", "skipped because"), rows)


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

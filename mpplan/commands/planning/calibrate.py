"""`mpplan calibrate`: learn from the user's own runs, and report what was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpplan.commands.planning.runs_file import read_runs
from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.listing import counted, table
from mpplan.ui.output import open_output
from mpplan.ui.progress import working
from planner.errors import UsageError
from reports.text.numbers import with_minus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE", help="CSV file of your own runs, with the columns that --template prints; `-` is stdin."
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="PATH", help="Write the calibration to this file; without it, nothing is written."
    ),
]
Template = Annotated[
    bool,
    typer.Option(
        "--template", help="Only print (or write to -o) an empty file of runs, with a comment on each column."
    ),
]

Records = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Measurement record of the runs' GPUs: a file, a folder or a name. Default: your own, as in a plan.",
    ),
]

SHOWN_ROWS = 20
SHOWN_TERMS = 10


def calibrate(
    file: File = None,
    output: Output = None,
    template: Template = False,
    records: Records = None,
    json: options.JsonFlag = False,
    quiet: options.QuietFlag = False,
) -> None:
    """Learn from your own runs: one row is enough, three give most of the benefit."""
    if template:
        from planner.validation.template import template_text

        open_output(output or "-").write(template_text())
        return
    if file is None:
        raise UsageError(
            "no file of runs was given", hint="`mpplan calibrate --template > my-runs.csv` writes an empty one"
        )
    from mpplan.api.calibrations import calibration_of

    place = open_output(output) if output is not None else None
    rows = read_runs(file, own=True, quiet=quiet)
    with working("learning", quiet=quiet):
        document, warnings = calibration_of(rows, source="stdin" if file == "-" else file, records=records)
    for warning in warnings:
        warn(warning, quiet=quiet)
    text = _json(document)
    if place is not None:
        place.write(text)
    if json and (place is None or not place.is_stdout):
        open_output("-").write(text)
    elif not json and (place is None or not place.is_stdout):
        open_output("-").write(_shown(document))
    if place is not None:
        given = "" if records is None else f" --records {records}"
        note(f"wrote {place.path}; plan with `mpplan estimate --calibration {place.path}{given} …`", quiet=quiet)


def _json(document: Mapping[str, Any]) -> str:
    """Return JSON with each row of the posterior's matrix on one line; indented, it would take thousands."""
    import json

    factor = document["posterior"]["factor"]
    marked = {**document, "posterior": {**document["posterior"], "factor": [f"@{n}" for n in range(len(factor))]}}
    text = json.dumps(marked, ensure_ascii=False, indent=1, allow_nan=False)
    for number, line in enumerate(factor):
        text = text.replace(f'"@{number}"', json.dumps(line, allow_nan=False), 1)
    return text + "\n"


def _shown(document: Mapping[str, Any]) -> str:
    runs = counted(document["runs"], "run")
    parts = [f"Learned from {runs} of {document['source']} on {', '.join(document['gpus'])}"]
    if document["records"]:
        names = ", ".join(dict.fromkeys(entry["record"] for entry in document["records"]))
        parts.append(f"in addition to what was measured on the GPUs themselves: {names}")
    parts.append("")
    parts += [f"  - {entry['words']}" for entry in document["total"]]
    learned = [
        (entry["words"], " (kept at three standard deviations from most teams)" if entry["bounded"] else "")
        for entry in document["learned"]
    ]
    parts += [f"  - {words}{bound}" for words, bound in learned[:SHOWN_TERMS]] or [
        "  no single term in which your runs differ from those of most teams"
    ]
    if len(learned) > SHOWN_TERMS:
        parts.append(f"  … and {counted(len(learned) - SHOWN_TERMS, 'line')} more; --json has all")
    parts.append("")
    parts += [
        f"For runs like these, the range of {FIGURES[name]} is {ratio:.0%} as wide as before."
        for name, ratio in document["width_ratio"].items()
    ]
    parts += ["", _rows(document["rows"])]
    return "\n".join(parts)


FIGURES = {"time": "the speed", "memory": "the peak memory", "power": "the power", "run": "a whole run"}


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        (
            row["id"], row["metric"], *(with_minus(f"{100 * row[name]:+.1f}%") for name in ERRORS),
            row["conflict"] or "",
        )
        for row in rows[:SHOWN_ROWS]
    ]  # fmt: skip
    text = table(("run", "metric", "error before", "after", "learned without it", "contradicts"), cells)
    return text + (f"… and {counted(len(rows) - SHOWN_ROWS, 'row')} more\n" if len(rows) > SHOWN_ROWS else "")


ERRORS = ("error_before", "error_after", "error_left_out")

"""`mpplan report`: render a saved answer, or a comparison of two, in any format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mpplan.ui import options
from mpplan.ui.console import note
from mpplan.ui.documents import read_answer
from mpplan.ui.output import open_output
from planner.errors import UsageError
from planner.records.home import user_path
from reports.formats import FORMATS, format_by_name

Plan = Annotated[str, typer.Argument(metavar="PLAN", help="Output of `mpplan estimate --json`; `-` is stdin.")]
Other = Annotated[
    str | None, typer.Argument(metavar="PLAN2", help="Output of another `mpplan estimate --json`, to compare with.")
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="html, markdown, terminal, csv, json or pdf. Default: by the file extension of -o, or html without one.",
    ),
]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the report.")]
Logo = Annotated[str | None, typer.Option(metavar="PATH", help="Logo for the page: PNG, JPEG, GIF, WebP or SVG.")]
Redact = Annotated[
    list[str] | None, typer.Option(metavar="PART", help="Leave out `prices` or `names`; may be repeated.")
]
Lang = Annotated[str, typer.Option(metavar="LANG", help="Language: en or zh.")]


def report(
    plan: Plan,
    other: Other = None,
    output: options.OutputOption = None,
    format: Format = None,  # noqa: A002 - the flag's name
    title: Title = None,
    logo: Logo = None,
    redact: Redact = None,
    lang: Lang = "en",
    quiet: options.QuietFlag = False,
) -> None:
    """Render a saved answer as HTML, Markdown, PDF, CSV, JSON or text."""
    from reports import LANGUAGES, render, render_comparison

    form = _form(format, output)
    place = open_output(output if output is not None else "-")
    if form == "pdf" and place.is_stdout and sys.stdout.isatty():
        raise UsageError("a PDF cannot be shown in a terminal", hint="name a file: `-o plan.pdf`")
    if lang not in LANGUAGES:
        raise UsageError(f"--lang: unknown `{lang}`", hint=f"use one of {', '.join(LANGUAGES)}")
    parts = [part.strip() for given in redact or () for part in given.split(",") if part.strip()]
    picture = user_path(logo) if logo else None
    color = None if place.is_stdout else False
    if plan == other == "-":
        raise UsageError("both answers would be read from stdin", hint="name a file for one of them")
    first = read_answer(plan)
    if other is None:
        content = render(first, form, name=plan, title=title, logo=picture, redact=parts, lang=lang, color=color)
    else:
        second, names = read_answer(other), _names(plan, other)
        content = render_comparison(
            first, second, form, names=names, title=title, logo=picture, redact=parts, lang=lang, color=color
        )
    place.write(content)
    if not place.is_stdout:
        note(f"wrote {place.path}", quiet=quiet)


def _form(given: str | None, output: str | None) -> str:
    """Return the given format, else the one of the output's suffix; HTML without a suffix."""
    form = given or format_by_name(output, instead=f"; or give --format, one of {', '.join(FORMATS)}")
    if form not in FORMATS:
        raise UsageError(f"--format: unknown `{form}`", hint=f"use one of {', '.join(FORMATS)}")
    return form


def _names(plan: str, other: str) -> tuple[str, str]:
    """Return names for the two answers: their file names, or A and B if those are equal or stdin."""
    first, second = Path(plan).stem, Path(other).stem
    return (first, second) if first != second and "-" not in (plan, other) else ("A", "B")

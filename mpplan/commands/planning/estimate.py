"""`mpplan estimate`: the main job, from flags to a table, a document or a page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.limits import Limits, check_limits, read_limits, unchecked
from mpplan.ui.output import Output, open_output
from mpplan.ui.progress import working
from mpplan.ui.question_flags import with_question_flags
from planner.errors import IncompleteError, InputFileError, UsageError
from planner.lazy import dataclass
from planner.question.asked import Ask
from reports.formats import FORMATS, format_by_name

if TYPE_CHECKING:
    from mpplan.api.answer import Result

LIMITS = "Limits"

Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel=options.OUTPUT,
        help="terminal, json, csv, markdown or html. Default: terminal.",
    ),
]
Report = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        rich_help_panel=options.OUTPUT,
        help="Also write the report as HTML, or in the format of the extension .md, .pdf, .csv or .txt; `-` is stdout.",
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full",
        rich_help_panel=options.OUTPUT,
        help="Print every table of the plan, not only the short answer.",
    ),
]
MaxCost = Annotated[
    str | None,
    typer.Option(metavar="USD", rich_help_panel=LIMITS, help="Exit 7 if the high figure of the cost is above this."),
]
MaxDays = Annotated[
    str | None,
    typer.Option(
        metavar="DAYS", rich_help_panel=LIMITS, help="Exit 7 if the high figure of the duration is above this."
    ),
]
MaxEnergy = Annotated[
    str | None,
    typer.Option(metavar="MWH", rich_help_panel=LIMITS, help="Exit 7 if the high figure of the energy is above this."),
]

Strict = Annotated[
    bool, options.strict_flag("Exit 5 if data is missing, such as a price, so that a total is only a lower bound.")
]

WITH_WARNINGS = ("terminal", "html", "markdown")
"""Formats that show the warnings themselves; with the others, they go to stderr."""


@with_question_flags
def estimate(
    context: typer.Context,
    ask: Ask,
    json: options.JsonFlag = False,
    format: Format = None,  # noqa: A002 - the flag's name
    full: Full = False,
    report: Report = None,
    quiet: options.QuietFlag = False,
    strict: Strict = False,
    max_cost: MaxCost = None,
    max_days: MaxDays = None,
    max_energy: MaxEnergy = None,
) -> None:
    """Plan a training run: GPUs, layout, days, cost, energy, carbon, in each precision."""
    form, page = _output(json=json, form=format, report=report)
    page_form = format_by_name(report, "--report")
    limits = read_limits(cost=max_cost, days=max_days, energy=max_energy)
    _answer(
        ask, _Delivery(form=form, page=page, page_form=page_form, limits=limits, full=full, quiet=quiet, strict=strict)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delivery:
    """How the answer is delivered; all of it is checked before any work starts."""

    form: str
    """Format of stdout."""
    page: Output | None
    """Destination of the report, in addition to stdout."""
    limits: Limits
    page_form: str
    """Format of the report."""
    full: bool
    """Whether the terminal shows every table, and not only the short answer."""
    quiet: bool
    strict: bool


def _answer(ask: Ask, delivery: _Delivery) -> None:
    """Answer, print, then report problems with the answer.

    Raises:
        MpplanError: see `mpplan.api.answer.estimate`, and `_verdict` for errors raised after the answer is printed.
    """
    from mpplan.api.answer import answer_question
    from mpplan.api.document import to_document
    from reports.text.messages import word

    brief = delivery.form == "terminal" and not delivery.full
    with working("planning", quiet=delivery.quiet):
        detailed = not brief or delivery.page is not None
        result = answer_question(ask, command=("mpplan", *sys.argv[1:]), detailed=detailed)
    document = to_document(result.answer)
    content = _rendered(document, delivery.form, brief=brief)
    page = _rendered(document, delivery.page_form, color=False) if delivery.page is not None else ""
    for warning in () if delivery.form in WITH_WARNINGS else result.answer.warnings:
        warn(word(warning), quiet=delivery.quiet)
    open_output("-").write(content)
    if delivery.page is not None:
        delivery.page.write(page)
        note(f"wrote {delivery.page.path}", quiet=delivery.quiet)
    _verdict(result, delivery)


def _verdict(result: Result, delivery: _Delivery) -> None:
    """Raise for problems with an answer that was printed all the same.

    Raises:
        LimitError: the plan is above a limit.
        InputFileError: lines of the measurements that the user named could not be used.
        IncompleteError: something is missing, and `--strict` was given.
    """
    from reports.text.messages import word

    check_limits(delivery.limits, result.answer)
    for doubt in unchecked(delivery.limits, result.answer):
        warn(doubt, quiet=delivery.quiet)
    if result.damage:
        further = len(result.damage) - 1
        more = f", and {further} {'line' if further == 1 else 'lines'} more" if further else ""
        raise InputFileError(
            f"{result.damage[0]}{more}", hint="the other lines were used; `mpplan check` says which to measure again"
        )
    if delivery.strict and result.answer.gaps:
        first = result.answer.gaps[0]
        raise IncompleteError(f"{word(first.what)}: {word(first.why)}", hint=first.effect)


def _output(*, json: bool, form: str | None, report: str | None) -> tuple[str, Output | None]:
    """Return the format of stdout, and the destination of the report.

    Raises:
        UsageError: two flags contradict each other, the format is unknown, or the report cannot be written.
    """
    chosen = form or ("json" if json else "terminal")
    if json and chosen != "json":
        raise UsageError(f"--json and --format {chosen} both set the format of stdout", hint="give one of them")
    if chosen not in FORMATS:
        raise UsageError(f"--format: unknown `{chosen}`", hint=f"use one of {', '.join(FORMATS)}")
    page = open_output(report, "--report") if report is not None else None
    if page is None or not page.is_stdout:
        return chosen, page
    if json or form:
        raise UsageError("--report - and another format are both meant for stdout", hint="give one of them")
    return "html", None


def _rendered(document: dict[str, Any], form: str, *, brief: bool = False, color: bool | None = None) -> str | bytes:
    if form == "json":  # printed as it is, because only the formats for people need a view
        import json

        return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    from reports import render

    return render(document, form, brief=brief, color=color)

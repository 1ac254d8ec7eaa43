"""`mpplan export`: the bill of a saved answer for finance software."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mpplan.ui import options
from mpplan.ui.console import note
from mpplan.ui.documents import read_answer
from mpplan.ui.output import open_output
from planner.errors import UsageError

Plan = Annotated[str, typer.Argument(metavar="PLAN", help="What `mpplan estimate --json` printed; `-` is stdin.")]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="cost-csv, parquet, or focus (columns of FinOps FOCUS 1.2, marked as estimate). "
        "Default by the output's name, else cost-csv.",
    ),
]
Precision = Annotated[
    str | None, typer.Option(metavar="NAME", help="With focus: precision of the plan. Default the asked one.")
]
Gpu = Annotated[str | None, typer.Option(metavar="ID", help="With focus: GPU of the plan. Default the first.")]
View = Annotated[
    str, typer.Option(metavar="NAME", help="With focus: same-gpus (default) or same-deadline.", show_default=False)
]
VIEWS = {"same-gpus": "plans", "same-deadline": "same_deadline"}


def export(
    plan: Plan,
    format: Format = None,  # noqa: A002 - the flag's name
    output: options.OutputOption = None,
    precision: Precision = None,
    gpu: Gpu = None,
    view: View = "same-gpus",
    quiet: options.QuietFlag = False,
) -> None:
    """Write the bill of a saved answer for finance: CSV, Parquet, or CSV shaped like FOCUS."""
    from pricing.exports import export_for, find_export
    from reports.text.clean import clean_tree

    form = find_export(format) if format is not None else export_for(output)
    place = open_output(output if output is not None else "-")
    if view not in VIEWS:
        raise UsageError(f"--view: unknown `{view}`", hint=f"one of {', '.join(VIEWS)}")
    if form.is_binary and place.is_stdout and sys.stdout.isatty():
        raise UsageError("Parquet cannot be shown in a terminal", hint="name a file: `-o plan.parquet`")
    if form.of_one_plan:
        content = form.render(clean_tree(read_answer(plan)), precision=precision, gpu=gpu, view=VIEWS[view])
    elif precision or gpu or view != "same-gpus":
        raise UsageError(
            f"--precision, --gpu and --view choose one plan, and {form.name} holds them all",
            hint="leave them out, or ask for --format focus",
        )
    else:
        content = form.render(clean_tree(read_answer(plan)))
    place.write(content)
    if not place.is_stdout:
        note(f"wrote {place.path}", quiet=quiet)

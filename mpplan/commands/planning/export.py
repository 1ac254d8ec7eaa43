"""`mpplan export`: convert a saved answer for other programs, as a bill for finance or a plan to launch."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.documents import read_answer
from mpplan.ui.output import Output, open_output
from planner.answer.document import Document
from planner.errors import UsageError
from planner.question import names


def _formats() -> list[str]:
    from pricing.exports import EXPORTS

    return [export.name for export in EXPORTS]


def _frameworks() -> list[str]:
    from reports.launch import FRAMEWORKS

    return [framework.name for framework in FRAMEWORKS]


VIEWS = {"same-gpus": "plans", "same-deadline": "same_deadline"}
Plan = Annotated[str, typer.Argument(metavar="PLAN", help="Output of `mpplan estimate --json`; `-` is stdin.")]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="cost-csv, parquet, or focus (columns of FinOps FOCUS 1.2, marked as estimate). "
        "Default: by the file extension of -o, or cost-csv without one.",
        autocompletion=options.completion(_formats),
    ),
]
Launch = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Write the plan as a configuration file, not a bill: megatron, torchtitan, deepspeed, accelerate, axolotl "
        "or skypilot.",
        autocompletion=options.completion(_frameworks),
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With focus or --launch: precision of the plan. Default: the requested one.",
        autocompletion=options.completion(names.precisions),
    ),
]
Gpu = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="With focus or --launch: GPU of the plan. Default: the one in the answer's first sentence.",
        autocompletion=options.completion(names.gpus),
    ),
]
View = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="With focus or --launch: table of the plan, same-gpus (default) or same-deadline.",
        show_default=False,
        autocompletion=options.completion(lambda: VIEWS),
    ),
]


def export(
    plan: Plan,
    format: Format = None,  # noqa: A002 - the flag's name
    launch: Launch = None,
    output: options.OutputOption = None,
    precision: Precision = None,
    gpu: Gpu = None,
    view: View = "same-gpus",
    quiet: options.QuietFlag = False,
) -> None:
    """Export from a saved answer: a bill for finance, or a framework's configuration file."""
    if view not in VIEWS:
        raise UsageError(f"--view: unknown `{view}`", hint=f"use one of {', '.join(VIEWS)}")
    if launch is not None:
        if format is not None:
            raise UsageError("--launch and --format write two different files", hint="ask for one of them")
        _launch(plan, launch, output, precision, gpu, VIEWS[view], quiet=quiet)
        return
    _bill(plan, format, output, precision, gpu, view, quiet=quiet)


def _bill(
    plan: str,
    format_name: str | None,
    output: str | None,
    precision: str | None,
    gpu: str | None,
    view: str,
    *,
    quiet: bool,
) -> None:
    from pricing.exports import export_for, find_export
    from pricing.exports.bill_table import unbilled_gpus

    form = find_export(format_name) if format_name is not None else export_for(output)
    place = open_output(output if output is not None else "-")
    if form.is_binary and place.is_stdout and sys.stdout.isatty():
        raise UsageError("Parquet cannot be shown in a terminal", hint="name a file: `-o plan.parquet`")
    if form.of_one_plan:
        content = form.render(_cleaned(plan), precision=precision, gpu=gpu, view=VIEWS[view])
    elif precision or gpu or view != "same-gpus":
        raise UsageError(
            f"--precision, --gpu and --view choose one plan, and {form.name} holds them all",
            hint="leave them out, or ask for --format focus",
        )
    else:
        document = _cleaned(plan)
        content = form.render(document)
        if left_out := unbilled_gpus(document):
            warn(f"not in the bill, since no cost is known: {', '.join(left_out)}", quiet=quiet)
    _write(place, content, quiet=quiet)


def _launch(
    plan: str, name: str, output: str | None, precision: str | None, gpu: str | None, view: str, *, quiet: bool
) -> None:
    from reports.launch import find_framework, launch_file

    framework = find_framework(name)  # before the answer is read, so that a wrong name is reported at once
    place = open_output(output if output is not None else "-")
    document = _cleaned(plan)
    compressed = (document["question"].get("grad_compression") or {}).get("value")
    if compressed not in (None, "none"):
        raise UsageError(
            f"--launch cannot yet write a file with compressed gradients ({compressed}) for any framework",
            hint="plan it without --grad-compression, export that, and register the hook or optimizer by hand",
        )
    named = "stdin" if plan == "-" else plan
    file = launch_file(document, framework.name, precision=precision, gpu=gpu, view=view, file=named)
    _write(place, file.text.encode("utf-8"), quiet=quiet)
    for line in file.notes:
        note(f"not in the file: {line}", quiet=quiet)


def _cleaned(plan: str) -> Document:
    from reports.text.clean import clean_tree

    document: Document = clean_tree(read_answer(plan))
    return document


def _write(place: Output, content: bytes, *, quiet: bool) -> None:
    place.write(content)
    if not place.is_stdout:
        note(f"wrote {place.path}", quiet=quiet)

"""`mpplan explain`: trace a number in a saved answer to its inputs and their sources."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Annotated

import typer

from mpplan.ui import options
from mpplan.ui.console import LEAST_COLUMNS
from mpplan.ui.documents import read_answer
from planner.question import names


def _figures() -> tuple[str, ...]:
    from reports.explain.walk import FIGURES

    return FIGURES


Document = Annotated[str, typer.Argument(metavar="PLAN", help="Output of `mpplan estimate --json`; `-` is stdin.")]
Figure = Annotated[
    str,
    typer.Argument(
        metavar="FIGURE",
        help="cost, gpu-hours, time, steps, tokens, step, goodput, throughput, rate, mfu, memory, energy, power, "
        "carbon, carbon-market, embodied, sci, mean-power or peak-power (of the building).",
        autocompletion=options.completion(_figures),
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Precision to explain. Default: the one you asked for.",
        autocompletion=options.completion(names.precisions),
    ),
]
Gpu = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="GPU to explain. Default: the one in the answer's first sentence.",
        autocompletion=options.completion(names.gpus),
    ),
]


def explain(
    plan: Document,
    figure: Figure,
    precision: Precision = None,
    gpu: Gpu = None,
    json: options.JsonFlag = False,
) -> None:
    """Trace a figure in a saved answer back to its inputs and their sources."""
    from json import dumps

    from reports.explain.text import to_json, to_text
    from reports.explain.walk import explain as derive

    derivation = derive(read_answer(plan), figure, precision=precision, gpu=gpu, name=plan)
    if json:
        typer.echo(dumps(to_json(derivation), ensure_ascii=False, indent=2, allow_nan=False))
    else:
        known = sys.stdout.isatty() or "COLUMNS" in os.environ
        columns = max(shutil.get_terminal_size().columns, LEAST_COLUMNS) if known else None
        typer.echo(to_text(derivation, columns), nl=False)

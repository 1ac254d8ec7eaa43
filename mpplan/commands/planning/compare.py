"""`mpplan compare`: compare the log of a real run with its plan."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from mpplan.ui import options
from mpplan.ui.console import note, warn
from mpplan.ui.output import Output, open_output
from mpplan.ui.progress import working
from planner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.answer.document import Document

Log = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="Log of the run, written by Megatron-LM, NeMo, torchtitan, Hugging Face's Trainer, DeepSpeed, Lightning, "
        "nanotron, Composer, litgpt, torchtune or OLMo-core, or a table of steps. May be gzipped (.gz); `-` is stdin.",
    ),
]
Plan = Annotated[str | None, typer.Option(metavar="PLAN", help="Output of `mpplan estimate --json` for the run.")]
Model = Annotated[
    str | None, typer.Option(metavar="NAME", help="A model that `mpplan models` lists, or a config.json.")
]
Method = Annotated[
    str | None, typer.Option(metavar="NAME", help="Training method, like lora. Default: the plan's, else pretrain.")
]
Gpu = Annotated[str | None, typer.Option(metavar="ID", help="A GPU that `mpplan gpus` lists.")]
Gpus = Annotated[
    str | None, typer.Option(metavar="N", help="Total number of GPUs in the run. Default: from the log or the plan.")
]
SeqLen = Annotated[
    str | None, typer.Option(metavar="N", help="Tokens per sequence. Default: from the log or the plan.")
]
Batch = Annotated[str | None, typer.Option(metavar="N", help="Sequences per step. Default: from the log or the plan.")]
Precision = Annotated[str | None, typer.Option(metavar="NAME", help="Precision. Default: from the log or the plan.")]
Price = Annotated[str | None, typer.Option(metavar="USD", help="Price per GPU-hour. Default: the plan's.")]
Row = Annotated[
    str | None,
    typer.Option(
        "--row",
        "-o",
        metavar="FILE.csv",
        help="Add the run to this CSV file of runs, for `mpplan calibrate`; existing rows of the same run are "
        "replaced.",
    ),
]
Lang = Annotated[str, typer.Option(metavar="LANG", help="Language of the text: en or zh.")]


def compare(
    log: Log,
    plan: Plan = None,
    model: Model = None,
    method: Method = None,
    gpu: Gpu = None,
    gpus: Gpus = None,
    seq_len: SeqLen = None,
    global_batch: Batch = None,
    precision: Precision = None,
    price: Price = None,
    row: Row = None,
    lang: Lang = "en",
    json: options.JsonFlag = False,
    quiet: options.QuietFlag = False,
) -> None:
    """Read the log of a real run and report its MFU, gap to the plan, finish date and cost."""
    from mpplan.api.comparisons import compare_log, given_of, replaced_values, with_rows
    from reports.text.language import LANGUAGES

    if lang not in LANGUAGES:
        raise UsageError(f"--lang: unknown `{lang}`", hint=f"use one of {', '.join(LANGUAGES)}")
    if log == "-" and plan == "-":
        raise UsageError("only one of log and plan can be stdin", hint="save the plan in a file")
    place = None if row is None else open_output(row, "--row")
    if place is not None and place.is_stdout and json:
        raise UsageError("only one answer can go to stdout", hint="name a file with `--row`")
    given = given_of(
        {"model": model, "method": method, "gpu": gpu, "gpus": gpus, "seq_len": seq_len, "global_batch": global_batch,
         "precision": precision, "price": price}
    )  # fmt: skip
    with working("reading the log", quiet=quiet):
        document = compare_log(log, plan, given)
    table = None if place is None or not document["rows"] else with_rows(place.path, document["rows"])
    replaced: list[tuple[str, str, str]] = []
    if place is not None and table is not None:
        replaced = replaced_values(place.path, document["rows"])
        place.write(table)
    if place is None or not place.is_stdout:
        open_output("-").write(_shown(document, lang, json=json))
    _tell(document, place, replaced, lang, quiet=quiet)


def _shown(document: Document, lang: str, *, json: bool) -> str:
    from reports.compared.text import WIDTH, to_text

    if not json:
        known = sys.stdout.isatty() or "COLUMNS" in os.environ
        return to_text(document, lang, shutil.get_terminal_size((WIDTH, 24)).columns if known else WIDTH)
    from json import dumps

    return dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _tell(
    document: Document, place: Output | None, replaced: Sequence[tuple[str, str, str]], lang: str, *, quiet: bool
) -> None:
    """Report on stderr what happened to the row."""
    from planner.errors import Message
    from reports.text.messages import word

    if place is None:
        return
    held = document["printed_rate"]
    if not document["rows"]:
        conflict = document["pace"] is not None and held is not None
        none = Message.of("compare.row.conflict") if conflict else Message.of("compare.row.none")
        warn(word(none, lang), quiet=quiet)
        return
    if held is not None and held["verdict"] != "agrees":  # first line of the text output, which may not be shown
        warn(word(document["findings_message"][0], lang), quiet=quiet)
    if document["row_missing"]:
        columns = tuple(document["row_missing"])
        warn(word(Message.of("compare.row.missing", columns=columns), lang), quiet=quiet)
    for run, before, after in replaced:
        warn(word(Message.of("compare.row.replaced", id=run, before=before, after=after), lang), quiet=quiet)
    if place.path is not None:
        note(f"wrote {place.path}; learn from it with `mpplan calibrate {place.path}`", quiet=quiet)

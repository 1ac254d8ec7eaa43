"""`mpplan estimate`: the main job, from flags to a table, a document or a page."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from mpplan.ui import options
from mpplan.ui import question_flags as flags
from mpplan.ui.config import sources
from mpplan.ui.console import note, warn
from mpplan.ui.limits import Limits, check_limits, read_limits, unchecked
from mpplan.ui.output import Output, open_output
from planner.errors import IncompleteError, InputFileError, UsageError
from reports.formats import FORMATS

if TYPE_CHECKING:
    from mpplan.api.answer import Found


SAY_WARNINGS = ("terminal", "html", "markdown")
"""Forms that hold the warnings themselves; the others leave them to stderr."""


def estimate(
    context: typer.Context,
    params: flags.Params = None,
    model: flags.Model = None,
    method: flags.Method = None,
    tokens: flags.Tokens = None,
    seq_len: flags.SeqLen = None,
    global_batch: flags.GlobalBatch = None,
    precision: flags.Precision = None,
    policy: flags.Policy = None,
    optimizer: flags.Optimizer = None,
    act_ckpt: flags.ActCkpt = None,
    offload: flags.Offload = None,
    stack: flags.Stack = None,
    attention: flags.Attention = None,
    gpu: flags.Gpu = None,
    gpus: flags.Gpus = None,
    deadline: flags.Deadline = None,
    budget: flags.Budget = None,
    gpus_per_node: flags.GpusPerNode = None,
    network: flags.Network = None,
    power_limit: flags.PowerLimit = None,
    tp: flags.Tp = None,
    pp: flags.Pp = None,
    vp: flags.Vp = None,
    cp: flags.Cp = None,
    ep: flags.Ep = None,
    zero: flags.Zero = None,
    micro_batch: flags.MicroBatch = None,
    price: flags.Price = None,
    provider: flags.Provider = None,
    region: flags.Region = None,
    commitment: flags.Commitment = None,
    as_of: flags.AsOf = None,
    quote: flags.Quote = None,
    own: flags.Own = None,
    beside: flags.Beside = None,
    pue: flags.Pue = None,
    electricity: flags.Electricity = None,
    tariff: flags.Tariff = None,
    power_cap: flags.PowerCap = None,
    grid: flags.Grid = None,
    market_grid: flags.MarketGrid = None,
    embodied: flags.Embodied = False,
    records: flags.Records = None,
    seed: flags.Seed = None,
    json: options.JsonFlag = False,
    format: flags.Format = None,  # noqa: A002 - the flag's name
    report: flags.Report = None,
    quiet: options.QuietFlag = False,
    strict: options.StrictFlag = False,
    max_cost: flags.MaxCost = None,
    max_days: flags.MaxDays = None,
    max_energy: flags.MaxEnergy = None,
) -> None:
    """Plan a training run: GPUs, layout, days, cost, energy, carbon, in each precision."""
    _run(context.params, sources(context))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What the flags say about the answer's form, checked before any work."""

    form: str
    """Format of stdout."""
    page: Output | None
    """Where the HTML report goes, besides stdout."""
    limits: Limits
    quiet: bool
    strict: bool


def _run(values: dict[str, Any], where: dict[str, str]) -> None:
    """Check, answer, print, then say what the user wanted to be told.

    Raises:
        MpplanError: see `mpplan.api.answer.estimate`, and `_verdict` for what comes after the answer is printed.
    """
    from mpplan.api.answer import SWITCHES, Asked, find_answer
    from mpplan.api.document import to_document
    from reports.text.messages import word

    wanted = _wanted(values)
    given = {name: values[name] for name in Asked.__annotations__ if values[name] is not None and name not in SWITCHES}
    given |= {name: "yes" for name in SWITCHES if values[name]}
    found = find_answer(given, sources=where, command=("mpplan", *sys.argv[1:]))
    answer = found.answer
    document = to_document(answer)
    content = _rendered(document, wanted.form)
    page = _rendered(document, "html") if wanted.page is not None else ""
    for warning in () if wanted.form in SAY_WARNINGS else answer.warnings:
        warn(word(warning), quiet=wanted.quiet)
    open_output("-").write(content)
    if wanted.page is not None:
        wanted.page.write(page)
        note(f"wrote {wanted.page.path}", quiet=wanted.quiet)
    _verdict(found, wanted)


def _verdict(found: Found, wanted: _Wanted) -> None:
    """What the exit code has to say about an answer that was given all the same.

    Raises:
        LimitError: the plan is above a limit.
        InputFileError: lines of the measurements that the user named could not be used.
        IncompleteError: something is missing, and `--strict`.
    """
    from reports.text.messages import word

    check_limits(wanted.limits, found.answer)
    doubt = unchecked(wanted.limits, found.answer)
    if doubt is not None:
        warn(doubt, quiet=wanted.quiet)
    if found.damage:
        more = f", and {len(found.damage) - 1} lines more" if len(found.damage) > 1 else ""
        raise InputFileError(
            f"{found.damage[0]}{more}", hint="the other lines were used; `mpplan check` says which to measure again"
        )
    if wanted.strict and found.answer.gaps:
        first = found.answer.gaps[0]
        raise IncompleteError(f"{word(first.what)}: {word(first.why)}", hint=first.effect)


def _wanted(values: dict[str, Any]) -> _Wanted:
    """Read the flags that are not part of the question.

    Raises:
        UsageError: two of them contradict each other, a limit is no number, or the report cannot be written.
    """
    form = values["format"] or ("json" if values["json"] else "terminal")
    if values["json"] and form != "json":
        raise UsageError(f"--json and --format {form} ask for two things on stdout", hint="give one of them")
    if form not in FORMATS:
        raise UsageError(f"--format: unknown `{form}`", hint=f"one of {', '.join(FORMATS)}")
    page = open_output(values["report"], "--report") if values["report"] is not None else None
    if page is not None and page.is_stdout:
        if values["json"] or values["format"]:
            raise UsageError("--report - and another form ask for two things on stdout", hint="give one of them")
        form, page = "html", None
    limits = read_limits(cost=values["max_cost"], days=values["max_days"], energy=values["max_energy"])
    return _Wanted(form=form, page=page, limits=limits, quiet=values["quiet"], strict=values["strict"])


def _rendered(document: dict[str, Any], form: str) -> str | bytes:
    if form == "json":  # as it is: no view is needed, and nothing is cleaned for a reader
        import json

        return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    from reports import render

    return render(document, form)

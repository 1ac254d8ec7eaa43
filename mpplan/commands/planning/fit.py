"""`mpplan fit`: report whether a fine-tuning run fits, and what would make it fit."""

from __future__ import annotations

from dataclasses import replace
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from mpplan.ui import options
from mpplan.ui.console import warn
from mpplan.ui.listing import figure, folding, wrapped
from mpplan.ui.output import open_output
from mpplan.ui.progress import working
from mpplan.ui.question_flags import with_question_flags
from planner.question.asked import Ask
from planner.question.cost_inputs import (
    AS_OF,
    CALIBRATION,
    COMMITMENT,
    PRICE,
    PRICE_LIKE,
    PROVIDER,
    RECORDS,
    REGION,
    SEED,
)
from planner.question.inputs import (
    ACT_CKPT,
    ATTENTION,
    GLOBAL_BATCH,
    GPU,
    GPUS,
    GPUS_PER_NODE,
    MEMORY_RISK,
    METHOD,
    MICRO_BATCH,
    MODEL,
    PARAMS,
    PRECISION,
    SEQ_LEN,
    STACK,
    ZERO,
)
from planner.question.tuning_inputs import LORA_RANK, LORA_TARGETS, LOSS, TRAINED_LAYERS

if TYPE_CHECKING:
    from mpplan.api.fitting import Fit, GpuFit
    from planner.planning.fitting.rows import FitRow

SEQ_LENS = replace(
    SEQ_LEN, metavar="N,...", help="Sequence lengths in tokens; several are compared.", default="1024, 2048 and 4096"
)
"""`--seq-len` for one length or several; the other commands take one."""

METHODS = replace(
    METHOD,
    help="sft (full fine-tuning), freeze, lora, qlora, dora, qdora, dpo, dpo-lora or dpo-qlora.",
    default="sft, freeze, dora, lora and qlora",
)
"""`--method` for one method; the default compares several."""
ONE_PRECISION = replace(
    PRECISION, help="The precision to fine-tune in: fp32, tf32, fp16, bf16, fp8 (mxfp8, nvfp4).", default="bf16"
)
COMPARED_GPUS = replace(
    GPU,
    help="GPUs, h100-sxm5-80gb by default, each in its own table; auto picks the cheapest on which "
    "the --method fits, or full fine-tuning if none is given.",
)
NUMBER = replace(GPUS, default="1")

FIT_INPUTS = (
    PARAMS, MODEL, METHODS, SEQ_LENS, GLOBAL_BATCH, ONE_PRECISION, ACT_CKPT, STACK, ATTENTION, LORA_RANK, LORA_TARGETS,
    TRAINED_LAYERS, LOSS, COMPARED_GPUS, NUMBER, GPUS_PER_NODE, ZERO, MICRO_BATCH, MEMORY_RISK, PRICE, PRICE_LIKE,
    PROVIDER, REGION, COMMITMENT, AS_OF, RECORDS, CALIBRATION, SEED,
)  # fmt: skip
"""Inputs that are common to all compared ways of training. The other inputs are what the ways differ in."""

HEADERS = (
    "way to fine-tune", "sequence", "act ckpt", "batch", "GiB", "range", "risk", "host GiB", "tokens/s", "$/M tokens",
)  # fmt: skip
KEYS = 2
"""Number of leading columns that identify a row."""
MENTIONED_GIB = 8.0
"""Host memory in GiB above which it is mentioned; every machine has less than that."""
HOST = HEADERS.index("host GiB")
"""Index of the column that is left out if nothing is offloaded."""

Full = Annotated[
    bool,
    typer.Option(
        "--full",
        rich_help_panel=options.OUTPUT,
        help="Show every activation-checkpointing mode, not only the best one.",
    ),
]


def _fit(
    context: typer.Context,
    ask: Ask,
    json: options.JsonFlag = False,
    full: Full = False,
    quiet: options.QuietFlag = False,
) -> None:
    """Check whether fine-tuning fits, and what would make it fit: memory, out-of-memory risk and speed of each method.

    Compares methods, optimizers and checkpointing on one or more GPU models. --seq-len may name several lengths,
    separated by commas.
    """
    from mpplan.api.fitting import fit as compare
    from mpplan.api.fitting import to_fit_document

    with working("fitting", quiet=quiet):
        answer = compare(ask)
    place, document = open_output("-"), to_fit_document(answer)
    for warning in document["warnings"]:
        warn(warning, quiet=quiet)
    if json:
        place.write(dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        return
    place.write("\n".join(_shown(answer, entry, full=full) for entry in answer.gpus))


fit = with_question_flags(_fit, FIT_INPUTS)
fit.__name__ = "fit"


def _shown(answer: Fit, entry: GpuFit, *, full: bool) -> str:
    """Describe one kind of GPU: the answer in a sentence, then the table."""
    from reports.text.names import pretty_gpu

    many = f"{entry.gpus} × " if entry.gpus > 1 else ""
    summary = (
        f"{answer.model} on {many}{pretty_gpu(entry.gpu)}, {answer.precision.upper()}, stack {answer.stack}: "
        f"{_verdict(entry)}."
    )
    if not entry.rows:
        return f"{wrapped(summary)}\n"
    rows = list(entry.rows) if full else _informative(_best_checkpointing(entry.rows))
    cells = [_cells(row) for row in rows]
    offloads = any(row.host_gib for row in rows)
    shown = [n for n in range(len(HEADERS)) if n != HOST or offloads]
    body = folding([HEADERS[n] for n in shown], [[line[n] for n in shown] for line in cells], keys=KEYS)
    end = (
        f"A process can use {entry.capacity_gib:.1f} GiB of a GPU. Safe: at most a {answer.memory_risk:.0%} risk of "
        "running out of memory. Batch: sequences per GPU in a micro-batch. All sequences are full length."
    )
    if offloads:
        end += " Host GiB: what is kept in the memory of each host; check that yours have that much."
    return f"{wrapped(summary)}\n\n{body}\n{wrapped(end)}\n"


def _verdict(entry: GpuFit) -> str:
    """Say which methods fit safely at the shortest length, from the most to the fewest trained weights."""
    from planner.training.method import find_method
    from reports.text.language import words_for

    listed = words_for("en").join
    shortest = min((row.seq_len for row in entry.rows), default=0)
    rows = [row for row in entry.rows if row.seq_len == shortest]
    least: dict[str, float] = {}
    for row in rows:
        if row.safe:
            name = find_method(row.variant.method).name
            least[name] = min(row.host_gib, least.get(name, row.host_gib))
    safe = [
        name if gib < MENTIONED_GIB else f"{name} (with {gib:,.0f} GiB of host memory)" for name, gib in least.items()
    ]
    if not rows:
        other = "" if entry.instead is None else f"; ask for --precision {entry.instead}, its best"
        return f"none of the ways to fine-tune can run on it in this precision{other}"
    if not safe:
        risky = list(dict.fromkeys(find_method(row.variant.method).name for row in rows if row.fits))
        more = f"; {listed(risky)} may" if risky else ""
        return f"nothing fits safely at {shortest:,} tokens{more}"
    return f"at {shortest:,} tokens, {listed(safe)} {'fits' if len(safe) == 1 else 'fit'} safely"


def _best_checkpointing(rows: tuple[FitRow, ...]) -> list[FitRow]:
    """Keep one way of checkpointing per variant and length: the fastest safe one, else that with least memory."""
    best: dict[tuple[object, int], FitRow] = {}
    for row in rows:
        key = (row.variant, row.seq_len)
        if key not in best or _rank(row) > _rank(best[key]):
            best[key] = row
    return list(best.values())


def _informative(rows: list[FitRow]) -> list[FitRow]:
    """Return the rows without uninformative ones.

    These are longer sequences of a variant that does not fit even at the shortest length, and offloading where the same
    way is safe without it.
    """
    shortest = min((row.seq_len for row in rows), default=0)
    hopeless = {row.variant for row in rows if row.seq_len == shortest and not row.fits}
    safe = {(row.variant, row.seq_len) for row in rows if row.safe}
    return [
        row
        for row in rows
        if (row.seq_len == shortest or row.variant not in hopeless)
        and (row.variant.offload is None or (replace(row.variant, offload=None), row.seq_len) not in safe)
    ]


def _rank(row: FitRow) -> tuple[bool, float]:
    speed = 0.0 if row.tokens_per_s is None else row.tokens_per_s.mid
    return row.safe, speed if row.safe else -row.memory_gib.mid


def _cells(row: FitRow) -> tuple[str, ...]:
    from planner.training.method import find_method
    from reports.text.messages import word

    flags = [word(flag) for flag in row.flags if ("input", "method") not in flag.values]
    speed = "does not fit" if row.tokens_per_s is None else _rate(row.tokens_per_s.mid)
    return (
        " ".join((find_method(row.variant.method).name, *flags)),
        f"{row.seq_len:,}",
        row.act_ckpt,
        f"{row.layout.micro_batch:,}",
        f"{row.memory_gib.mid:,.1f}",
        f"{row.memory_gib.low:,.0f} to {row.memory_gib.high:,.0f}",
        _risk(row.memory_risk),
        f"{row.host_gib:,.0f}" if row.host_gib else "-",
        speed,
        "-" if row.usd_per_million_tokens is None else f"{row.usd_per_million_tokens:.3g}",
    )


def _rate(per_s: float) -> str:
    rounded = figure(per_s, digits=3)
    return f"{int(rounded):,}" if rounded.isdigit() else rounded


def _risk(risk: float) -> str:
    if risk < 0.01:
        return "<1%"
    return ">99%" if risk > 0.99 else f"{risk:.0%}"

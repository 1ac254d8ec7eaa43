"""`mpplan fit` as a function: the ways to fine-tune a model on some GPUs, with the memory, risk and speed of each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mpplan.version import __version__
from planner.answer.invariants import require_ordered
from planner.errors import Message, UsageError
from planner.evidence import Estimate
from planner.lazy import dataclass
from planner.question.asked import Ask
from planner.question.cost_inputs import RECORDS
from planner.question.inputs import GPUS, METHOD, SEQ_LEN
from planner.question.parsers import AUTO, is_auto
from planner.question.tuning_inputs import LORA_RANK, LORA_TARGETS, TRAINED_LAYERS
from planner.units import ungrouped

if TYPE_CHECKING:
    from mpplan.api.answer import ResolvedQuestion
    from planner.planning.fitting.rows import FitRow
    from planner.question.question import Question, Tuning

SCHEMA = "mpplan.fit/1"
SEQ_LENS = (1024, 2048, 4096)
"""Sequence lengths that are compared by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFit:
    """The fit on one kind of GPU."""

    gpu: str
    gpus: int
    capacity_gib: float
    """Memory of one GPU that is available to a process, in GiB."""
    rows: tuple[FitRow, ...]
    instead: str | None
    """The best precision of a GPU that lacks the requested one; None if it has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The answer of `mpplan fit`."""

    model: str
    params_total: float
    precision: str
    stack: str
    """Stack as requested, or the default."""
    memory_risk: float
    """Highest risk of running out of memory that counts as safe."""
    gpus: tuple[GpuFit, ...]
    warnings: tuple[Message, ...] = ()
    """Which records and calibration it rests on, and what a reader must know about them."""


def fit(ask: Ask) -> Fit:
    """Compare the ways to fine-tune a model.

    Args:
        ask: the question as typed. Several sequence lengths may be separated by commas. Without a number of GPUs, one
            is assumed.

    Raises:
        UsageError: an input is wrong, or the method is not fine-tuning.
        InputFileError: a file that the question names is invalid.
    """
    from mpplan.api.answer import resolve_ask
    from mpplan.api.planned import with_own_rates
    from planner.performance.memory import usable_bytes
    from planner.planning.estimate import unsupported_by
    from planner.planning.fitting.rows import fit_rows
    from planner.units import GIB
    from pricing.answer.priced import price_question

    lengths = _lengths(ask)
    resolved = resolve_ask(_single(ask, lengths, SFT))
    question = replace(resolved.question, tuning=_tuning(ask, lengths, resolved.question.tuning))
    if question.model.has_network:
        raise UsageError(
            f"{question.model.name} is a vision model: `mpplan fit` compares ways to fine-tune a language model",
            hint="`mpplan estimate` plans it and, if it does not fit, says by how much",
        )
    methods = _methods(ask)
    instead = {row.gpu: row.instead for row in unsupported_by(question) if row.precision == question.policy.precision}
    priced = price_question([cluster.gpu for cluster in question.clusters], question.money)
    rates_and_prices = with_own_rates(priced, resolved.measured, resolved.parameters)
    gpus = question.gpus or 1
    entries = []
    for cluster in question.clusters:
        alone = replace(question, clusters=(cluster,))
        rows = tuple(fit_rows(alone, rates_and_prices, gpus, lengths or _usual(question), methods))
        capacity_gib = usable_bytes(cluster.gpu) / GIB
        entries.append(
            GpuFit(
                gpu=cluster.gpu.id, gpus=gpus, capacity_gib=capacity_gib, rows=rows, instead=instead.get(cluster.gpu.id)
            )
        )  # fmt: skip
    return Fit(
        model=question.model.name, params_total=question.model.params_total, precision=question.policy.precision,
        stack=str(question.inputs["stack"].value), memory_risk=question.memory_risk, gpus=tuple(entries),
        warnings=_warnings(resolved, question, ask),
    )  # fmt: skip


def _warnings(resolved: ResolvedQuestion, question: Question, ask: Ask) -> tuple[Message, ...]:
    unused = [Message.of("warning.unused_line", problem=problem) for problem in resolved.damage]
    told = (*resolved.notices, *(unused if ask.text(RECORDS) else ()))
    if resolved.calibration is None:
        return told
    gpus = [cluster.gpu.id for cluster in question.clusters]
    recipe = question.recipe(question.policy, question.clusters[0])
    nodes = max(-(-(question.gpus or 1) // cluster.gpus_per_node) for cluster in question.clusters)
    return (*told, *resolved.calibration.notices(recipe, gpus, nodes, __version__))


def _lengths(ask: Ask) -> tuple[int, ...]:
    text = ask.text(SEQ_LEN)
    if text is None:
        return ()
    length = ungrouped(text)
    if length not in (None, text):
        raise UsageError(
            f"{SEQ_LEN.flag}: `{text}` may be one length or several",
            hint=f"write {length} for one, or another order for several",
        )
    return tuple(dict.fromkeys(SEQ_LEN.parse(part.strip(), SEQ_LEN.flag) for part in text.split(",")))


def _usual(question: Question) -> tuple[int, ...]:
    """Return the default lengths that the model's context allows; at least one."""
    return tuple(length for length in SEQ_LENS if length <= question.model.context) or (question.model.context,)


SFT = "sft"
"""The method with which the question is resolved if none was named: all weights are trained."""

OF_METHODS = {"lora": (LORA_RANK, LORA_TARGETS), "freeze": (TRAINED_LAYERS,)}
"""Inputs that belong to only some of the compared methods, by a method that takes them."""


def _tuning(ask: Ask, lengths: tuple[int, ...], base: Tuning) -> Tuning:
    """Return the tuning with the options that the question sets for the compared methods, if it names no method.

    Raises:
        UsageError: a rank or number of layers is not possible for the model.
    """
    from mpplan.api.answer import resolve_ask

    if not is_auto(ask.text(METHOD) or AUTO):
        return base
    for method, inputs in OF_METHODS.items():
        if any(ask.text(item) is not None for item in inputs):
            asked = resolve_ask(_single(ask, lengths, method)).question.tuning
            base = replace(base, **{item.name: getattr(asked, item.name) for item in inputs})
    return base


def _single(ask: Ask, lengths: tuple[int, ...], method: str) -> Ask:
    """Return the question with one length and one number of GPUs, and with `method` if it names none."""
    texts = dict(ask.texts)
    if lengths:
        texts[SEQ_LEN.name] = str(lengths[0])
    texts.setdefault(GPUS.name, "1")
    if is_auto(texts.get(METHOD.name, AUTO)):
        texts[METHOD.name] = method
        for other, inputs in OF_METHODS.items():
            if other != method:
                texts = {name: text for name, text in texts.items() if name not in {item.name for item in inputs}}
    return Ask(texts=texts, sources=ask.sources)


def _methods(ask: Ask) -> frozenset[str]:
    """Return the methods to compare: the named one, else all that fine-tune.

    Raises:
        UsageError: the method is pre-training.
    """
    from planner.training.method import find_method, load_methods

    text = ask.text(METHOD)
    if text is None or is_auto(text):
        return frozenset(load_methods())
    method = find_method(METHOD.parse(text, METHOD.flag))
    if not method.fine_tunes:
        raise UsageError(
            f"{METHOD.flag} {method.id}: `mpplan fit` compares ways to fine-tune",
            hint="`mpplan estimate` plans pre-training and, if it does not fit, says by how much",
        )
    return frozenset({method.id})


def to_fit_document(answer: Fit) -> dict[str, Any]:
    """Return the answer as plain JSON values, `mpplan.fit/1`, worded in English.

    Raises:
        InternalError: a range in it is out of order.
    """
    from reports.text.messages import word

    document = {
        "schema": SCHEMA,
        "model": answer.model,
        "params_total": answer.params_total,
        "precision": answer.precision,
        "stack": answer.stack,
        "memory_risk_allowed": answer.memory_risk,
        "gpus": [
            {
                "gpu": entry.gpu, "gpus": entry.gpus, "memory_capacity_gib": entry.capacity_gib,
                "instead": entry.instead, "rows": [_row(row) for row in entry.rows],
            }
            for entry in answer.gpus
        ],
        "warnings": [word(warning) for warning in answer.warnings],
    }  # fmt: skip
    require_ordered(document)
    return document


def _row(row: FitRow) -> dict[str, Any]:
    from reports.text.messages import word

    return {
        "method": row.variant.method,
        "policy": row.policy,
        "optimizer": row.optimizer,
        "offload": row.variant.offload or "none",
        "in_backward": row.variant.in_backward,
        "flags": [word(flag) for flag in row.flags],
        "act_ckpt": row.act_ckpt,
        "seq_len": row.seq_len,
        "micro_batch": row.layout.micro_batch,
        "zero": row.layout.zero,
        "fits": row.fits,
        "safe": row.safe,
        "memory_gib": _range(row.memory_gib),
        "host_gib": row.host_gib,
        "memory_risk": row.memory_risk,
        "tokens_per_s": None if row.tokens_per_s is None else _range(row.tokens_per_s),
        "usd_per_million_tokens": row.usd_per_million_tokens,
    }


def _range(estimate: Estimate) -> dict[str, float]:
    return {"low": estimate.low, "mid": estimate.mid, "high": estimate.high}

"""Fit and speed of each way to train: memory, risk and throughput by checkpointing and sequence length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from planner.errors import Message
from planner.evidence import Estimate
from planner.lazy import dataclass
from planner.parallelism.layout import Layout
from planner.parallelism.search import FixedLayout
from planner.performance.memory import memory_range_gib
from planner.planning.case import Case, RatesAndPrices
from planner.planning.choice import best_on
from planner.planning.fitting.variants import Variant, asked_as, changes, variants_of
from planner.planning.risk import risk_of
from planner.question.question import Question
from planner.rates.terms import Draws
from planner.units import GIB, HOUR_S, MEGA

FIT_DRAWS = 301
"""Number of draws behind the ranges of a row."""

CHECKPOINTING = ("none", "full")
"""Activation-checkpointing modes that a table compares: the fastest and the leanest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRow:
    """One way to train at one sequence length."""

    variant: Variant
    flags: tuple[Message, ...]
    """Flags that turn the question into this way."""
    policy: str
    optimizer: str
    act_ckpt: str
    seq_len: int
    gpus: int
    layout: Layout
    """The fastest safe layout. Where none is safe, one of the least risky; where none fits, the one with the least
    memory."""
    fits: bool
    """Whether the layout is more likely to fit than not."""
    safe: bool
    """Whether the layout's risk is within what the question allows."""
    memory_gib: Estimate
    """Peak per GPU."""
    host_gib: float
    """Memory taken on each host; 0 where nothing is offloaded."""
    memory_risk: float
    tokens_per_s: Estimate | None
    """Throughput of all GPUs together, without padding; None where it does not fit."""
    usd_per_million_tokens: float | None
    """Cost per million tokens; None where it does not fit or no price is known."""


def fit_rows(
    question: Question, rates_and_prices: RatesAndPrices, gpus: int, seq_lens: Iterable[int], methods: frozenset[str]
) -> Iterator[FitRow]:
    """Yield every way to train that the GPU can run, for every sequence length and checkpointing mode.

    Args:
        question: the model, the stack, the one kind of GPU and all else that the ways have in common.
        rates_and_prices: of that GPU.
        gpus: number of GPUs of the one run.
        seq_lens: sequence lengths in tokens; all sequences are full.
        methods: ids of the methods to include.
    """
    draws = Draws(count=FIT_DRAWS, seed=question.seed)
    (cluster,) = question.clusters
    for variant in variants_of(question):
        asked = asked_as(question, variant)
        if variant.method not in methods:
            continue
        if asked.why_unable(asked.policy, cluster.gpu) is not None:
            continue
        for seq_len in seq_lens:
            of_length = replace(asked, seq_len=seq_len, lengths=None, lengths_assumed=False)
            case = rates_and_prices.case(of_length, cluster)
            for act_ckpt in (question.fixed.act_ckpt,) if question.fixed.act_ckpt else CHECKPOINTING:
                fixed = replace(asked.fixed, act_ckpt=act_ckpt)
                row = _row(case, fixed, gpus, draws, variant, changes(question, variant))
                if row is not None:
                    yield row


def _row(
    case: Case, fixed: FixedLayout, gpus: int, draws: Draws, variant: Variant, flags: tuple[Message, ...]
) -> FitRow | None:
    """Return one way to train; None if no layout has its batch: updates in the backward pass do not accumulate."""
    choice = best_on(case, fixed, gpus)
    if not len(choice.layouts):
        return None
    index = int(np.argmin(choice.scores.memory_bytes)) if choice.best is None else choice.best
    at = choice.layouts.only(index)
    drawn = case.evaluate(at, draws)
    risk, speed = risk_of(case, at), None
    if choice.best is not None:
        speed = Estimate.of_draws(np.broadcast_to(np.ravel(drawn.tokens_per_s_per_gpu), (draws.count,)) * gpus)
    price = case.price.usd_per_gpu_h
    per_million = None
    if speed is not None and price is not None:
        per_million = price.mid * gpus / HOUR_S / (speed.mid / MEGA)
    return FitRow(
        variant=variant, flags=flags, policy=case.policy.id, optimizer=case.recipe.optimizer.id,
        act_ckpt=str(fixed.act_ckpt), seq_len=case.recipe.seq_len, gpus=gpus, layout=at.at(0),
        fits=choice.best is not None, safe=choice.best is not None and risk <= case.memory_risk,
        memory_gib=memory_range_gib(drawn.memory_bytes), host_gib=case.host_bytes(at) / GIB, memory_risk=risk,
        tokens_per_s=speed, usd_per_million_tokens=per_million,
    )  # fmt: skip

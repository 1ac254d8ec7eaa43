"""How many sequences a step has where nobody says: the default, what may stand for it, and the critical batch."""

from __future__ import annotations

import math

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """The samples of a step, and what else the planner may take."""

    sequences: int
    """Or images."""
    band: tuple[int, int] | None = None
    """Least and most that may stand for it; None: exactly that."""
    critical: float | None = None
    """Above which a larger batch saves hardly any steps; None where no law is at hand."""
    kept: bool = False
    """Whether it is left only where that saves much: the model's published one, or the usual one of a fine-tuning."""


LEAST_BATCH_TOKENS = 2.0**19
"""Tokens per step that no default is below: GPT-2's and the least of GPT-3's (arXiv 2005.14165, table 2.1)."""


def default_batch_sequences(tokens: float, seq_len: int) -> int:
    """Sequences per step where the model publishes none: a power of two, by the tokens that it is trained on.

    The nearest to `0.58 D ** 0.571` tokens, the batch of the lowest loss in 3,700 trainings (Li et al. 2025, Step Law,
    arXiv 2503.04715: it hardly depends on the size of the model). At 20 tokens per parameter that is 1 Mi tokens for 7B
    parameters and 4 Mi for 70B; Llama 3.1 405B was trained with 16 Mi on 15.6T tokens (arXiv 2407.21783), for which the
    law says 19 Mi.
    """
    batch = max(0.58 * tokens**0.571, LEAST_BATCH_TOKENS)
    return int(2 ** max(0, round(math.log2(batch / seq_len))))


def batch_sequences(tokens: float, seq_len: int) -> int:
    """Sequences per step of a batch that is stated in tokens.

    A whole number of sequences is what a team ran and is kept. Any other figure was rounded for print: "4M" stands for
    2 048 sequences of 2 048 tokens (LLaMA) or 1 024 of 4 096 (Llama 2), so that the nearest of 1, 1.25, 1.5 and 1.75
    times a power of two is taken, which GPUs divide evenly.
    """
    sequences = tokens / seq_len
    if sequences <= 4 or sequences.is_integer():
        return max(1, round(sequences))
    quarter = 2 ** (math.floor(math.log2(sequences)) - 2)
    return int(round(sequences / quarter) * quarter)


BAND = 1.25
"""How far, up and down, the planner may leave the default batch so that it divides over the GPUs. Assumed."""


def batch_band(sequences: int, critical: float | None) -> tuple[int, int]:
    """Least and most sequences per step that may stand for a default batch; above it only up to the critical one."""
    most = sequences * BAND if critical is None else min(sequences * BAND, critical)
    return max(1, math.ceil(sequences / BAND)), max(sequences, math.floor(most))


def critical_batch_tokens(params: float, tokens: float) -> float:
    """Tokens per step above which a larger batch saves hardly any steps, for a model and the tokens it is trained on.

    `2e8 * L ** -(1 / 0.21)` at the loss `L = ((6.4e13 / N) ** (0.076 / 0.103) + 1.8e13 / D) ** 0.103`: Kaplan et al.
    2020, arXiv 2001.08361, equations 1.4 and 1.5 and table 2. The law was measured on models of up to 1.5B parameters.
    """
    loss = ((6.4e13 / params) ** (0.076 / 0.103) + 1.8e13 / tokens) ** 0.103
    return float(2e8 * loss ** (-1.0 / 0.21))


def tuning_band(sequences: int, *, in_backward: bool) -> tuple[int, int]:
    """Least and most sequences per step that may stand for the usual ones of a fine-tuning.

    With updates inside the backward pass a step is one micro-batch, so that few sequences are better than none.
    """
    return 1 if in_backward else max(1, sequences // 2), 2 * sequences

"""Sequences per step where the user gives none: the default, the range around it, and the critical batch."""

from __future__ import annotations

import math

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """The samples of a step, and the other batches that the planner may take."""

    sequences: int
    """Number of sequences or images."""
    band: tuple[int, int] | None = None
    """Fewest and most samples that may replace it; None: exactly that number."""
    critical: float | None = None
    """Batch above which a larger one saves hardly any steps; None where no law is at hand."""
    kept: bool = False
    """Whether the planner leaves it only where that saves much: it is the model's published batch, or usual for
    fine-tuning."""


LEAST_BATCH_TOKENS = 2.0**19
"""Fewest tokens per step of any default: those of GPT-2 and of the smallest GPT-3 (arXiv 2005.14165, table 2.1)."""


def default_batch_sequences(tokens: float, seq_len: int) -> int:
    """Return the default sequences per step for a model that publishes none: a power of two, by its training tokens.

    It is the power of two nearest to `0.58 D ** 0.571` tokens, the batch of the lowest loss in 3,700 trainings (Li et
    al. 2025, Step Law, arXiv 2503.04715: it hardly depends on the size of the model). At 20 tokens per parameter that
    is 1 Mi tokens for 7B parameters and 4 Mi for 70B; Llama 3.1 405B was trained with 16 Mi on 15.6T tokens (arXiv
    2407.21783), for which the law says 19 Mi.
    """
    batch = max(0.58 * tokens**0.571, LEAST_BATCH_TOKENS)
    return int(2 ** max(0, round(math.log2(batch / seq_len))))


def batch_sequences(tokens: float, seq_len: int) -> int:
    """Return the sequences per step of a batch that is stated in tokens.

    A whole number of sequences is what a team ran and is kept. Any other figure was rounded for print: "4M" means 2 048
    sequences of 2 048 tokens (LLaMA) or 1 024 of 4 096 (Llama 2). The nearest of 1, 1.25, 1.5 and 1.75 times a power of
    two is taken instead, which GPUs divide evenly.
    """
    sequences = tokens / seq_len
    if sequences <= 4 or sequences.is_integer():
        return max(1, round(sequences))
    quarter = 2 ** (math.floor(math.log2(sequences)) - 2)
    return int(round(sequences / quarter) * quarter)


BAND = 1.25
"""Factor, up and down, by which the planner may leave the default batch so that it divides over the GPUs. Assumed."""


def batch_band(sequences: int, critical: float | None) -> tuple[int, int]:
    """Return the fewest and most sequences per step that may replace a default batch, at most the critical batch."""
    most = sequences * BAND if critical is None else min(sequences * BAND, critical)
    return max(1, math.ceil(sequences / BAND)), max(sequences, math.floor(most))


def critical_batch_tokens(params: float, tokens: float) -> float:
    """Return the tokens per step above which a larger batch saves hardly any steps, for a model and its data.

    `2e8 * L ** -(1 / 0.21)` at the loss `L = ((6.4e13 / N) ** (0.076 / 0.103) + 1.8e13 / D) ** 0.103`: Kaplan et al.
    2020, arXiv 2001.08361, equations 1.4 and 1.5 and table 2. The law was measured on models of up to 1.5B parameters.
    """
    loss = ((6.4e13 / params) ** (0.076 / 0.103) + 1.8e13 / tokens) ** 0.103
    return float(2e8 * loss ** (-1.0 / 0.21))


TUNING_BATCH = 32
"""Sequences per step of a fine-tuning where the user gives none: assumed; guides take 8 to 128."""


def tuning_batch(gpus: int, sequences_per_example: int) -> int:
    """Return the default sequences per step of a fine-tuning on a number of GPUs: every GPU gets work."""
    return max(TUNING_BATCH, sequences_per_example * gpus)


def tuning_band(sequences: int, *, in_backward: bool) -> tuple[int, int]:
    """Return the fewest and most sequences per step that may replace the usual number of a fine-tuning.

    With updates inside the backward pass a step is one micro-batch, so any number down to 1 is allowed.
    """
    return 1 if in_backward else max(1, sequences // 2), 2 * sequences

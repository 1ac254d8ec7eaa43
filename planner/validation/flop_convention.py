"""How a source counts FLOP: with or without recomputation, causal or full attention, with or without the output layer.

The same run is 12 to 60 % apart between conventions, so a published TFLOP/s or MFU is predicted in its own words.
"""

from __future__ import annotations

import re

from planner.hardware.gpu import Gpu
from planner.parallelism.layout import full_share
from planner.performance.operations import model_flop_per_token
from planner.training.recipe import Recipe


def counts_recompute(convention: str) -> bool:
    """Whether a source counts the forward pass of checkpointing again (`hardware FLOPs`, `8N`)."""
    text = convention.lower()
    return bool(re.search(r"hardware|recompute counted|\b8n\b", text))


def counts_half_attention(convention: str) -> bool:
    """Whether a source counts only the causal half of attention: if it says so, or nothing (then as this project)."""
    text = convention.lower()
    if not text:
        return True
    return "halved" in text and "non-causal" not in text and "not causal" not in text


def counts_parameters_only(convention: str) -> bool:
    """Whether a source counts 6 or 8 N per token and nothing else."""
    return bool(re.search(r"8n only|logits excluded", convention.lower()))


def counted_flop_per_token(convention: str, recipe: Recipe, act_ckpt: str) -> float:
    """FLOP per token as the source counts them.

    Hardware FLOP under full checkpointing are those of Narayanan et al. 2021, `96 B s l h^2 (1 + s/6h + V/16lh)`: four
    thirds of the layers that are checkpointed whole and no recomputed output layer.
    """
    model = recipe.model
    again = 1.0 + full_share(act_ckpt) / 3.0 if counts_recompute(convention) else 1.0
    head = 6.0 * model.head_params
    if counts_parameters_only(convention):
        return again * (6.0 * model.matrix_params_active - head)
    whole = model_flop_per_token(model, recipe.seq_len, causal_half=counts_half_attention(convention))
    return again * (whole - head) + head


def peak_of_convention(convention: str, recipe: Recipe, gpu: Gpu) -> float:
    """The peak in the denominator of a source's MFU: BF16 where it says so, else that of the run's precision."""
    peaks = gpu.peak_flop_per_s
    text = convention.lower()
    if re.search(r"vs 989 tf|peak 312", text):
        return peaks.get("bf16", peaks[recipe.policy.linear_compute])
    return peaks[recipe.policy.linear_compute]

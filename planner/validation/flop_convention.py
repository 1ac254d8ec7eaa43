"""A source's FLOP convention: with or without recomputation, causal or full attention, with or without output layer.

The same run differs by 12 to 60 % between conventions, so a published TFLOP/s or MFU is predicted in its source's own
convention. The column `flops_convention` holds the source's own words, of which only those of
`text_patterns.PATTERNS` are recognised.
"""

from __future__ import annotations

from planner.hardware.gpu import Gpu
from planner.parallelism.layout import full_share
from planner.performance.evaluation import flop_of
from planner.performance.operations import recomputed_flop_per_token, worked_flop_per_token
from planner.training.recipe import Recipe
from planner.validation.text_patterns import BF16_PEAK, HALVED, NOT_HALVED, PARAMETERS_ONLY, RECOMPUTE_COUNTED


def counts_recompute(convention: str) -> bool:
    """Return whether a source also counts the forward pass that checkpointing repeats (`hardware FLOPs`, `8N`)."""
    return RECOMPUTE_COUNTED.says(convention)


def counts_half_attention(convention: str) -> bool:
    """Return whether a source counts only the causal half of attention.

    It does if its text states so, or if the text is blank (this project's convention). A text that does not mention
    attention counts it in full, as MFU usually does.
    """
    return not convention or (HALVED.says(convention) and not NOT_HALVED.says(convention))


def counts_parameters_only(convention: str) -> bool:
    """Return whether a source counts 6 or 8 N per token and nothing else."""
    return PARAMETERS_ONLY.says(convention)


def counted_flop_per_token(convention: str, recipe: Recipe, act_ckpt: str) -> float:
    """Return FLOP per token (per image for a vision model) as the source counts them.

    Fine-tuning counts what its method needs, as a plan does: LoRA needs no gradients of the frozen weights. Hardware
    FLOP under full checkpointing follow Narayanan et al. 2021, `96 B s l h^2 (1 + s/6h + V/16lh)`: the forward pass of
    the fully checkpointed layers again, without a recomputed output layer.
    """
    model = recipe.model
    if model.has_network:
        return flop_of(recipe)
    recomputed_ratio = full_share(act_ckpt) if counts_recompute(convention) else 0.0
    if counts_parameters_only(convention):
        return 6.0 * (1.0 + recomputed_ratio / 3.0) * (model.matrix_params_active - model.head_params)
    causal = counts_half_attention(convention)
    forward = recomputed_flop_per_token(recipe, "full", causal_half=causal)
    return worked_flop_per_token(recipe, causal_half=causal) + recomputed_ratio * forward


def peak_of_convention(convention: str, recipe: Recipe, gpu: Gpu) -> float:
    """Return the peak in the denominator of a source's MFU, from the catalogue.

    It is the BF16 peak where the text names the BF16 peak of the H100 or A100 as in `words.BF16_PEAK`, else the peak of
    the run's precision. No other number in a text is read.
    """
    peaks = gpu.peak_flop_per_s
    if BF16_PEAK.says(convention):
        return peaks.get("bf16", peaks[recipe.policy.linear_compute])
    return peaks[recipe.policy.linear_compute]

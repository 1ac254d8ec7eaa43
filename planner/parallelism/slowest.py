"""Waiting for the slowest of many: the expected maximum relative to the mean."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.kernels.surface import Value
from planner.models.shape import ModelShape


def expected_max(count: Value) -> Value:
    """Expected largest of N standard normal draws (asymptotic form, within 0.1 from 8 to 16 384)."""
    n = np.maximum(count, 2.0)
    x = np.sqrt(2.0 * np.log(n))
    peak = x - (np.log(np.log(n)) + np.log(4.0 * np.pi)) / (2.0 * x) + 0.13
    return np.where(np.asarray(count) > 1, np.maximum(peak, 0.56), 0.0)


def busiest_ratio(model: ModelShape, ep: npt.NDArray[np.int64], load_sd_ratio: Value) -> Value:
    """Tokens on the busiest GPU of an expert parallel group relative to the mean, `[layout]` or `[draw]`.

    A GPU receives the tokens of its `E / e` experts. The mean over that many experts, drawn without replacement, has
    `sqrt((e - 1) / (E - 1))` of the standard deviation of a single expert: 0 if every GPU holds all experts, 1 if each
    GPU holds one expert.

    Args:
        model: the model, which gives the number of experts.
        ep: expert parallel sizes, `[layout]`.
        load_sd_ratio: standard deviation of the tokens per expert over their mean.
    """
    if not model.experts:
        return 1.0
    narrower = np.sqrt((ep - 1.0) / max(model.experts - 1.0, 1.0))
    busiest: Value = 1.0 + load_sd_ratio * expected_max(ep.astype(np.float64)) * narrower
    return busiest

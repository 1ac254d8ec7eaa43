"""What a token costs in FLOP per matrix parameter, by training method."""

from __future__ import annotations

from planner.training.method import PRETRAIN, find_method

FLOP_PER_PARAM = 6.0
"""Operations per matrix parameter and token, forward and backward (the 6 of 6N)."""
FLOP_PER_FROZEN_PARAM = 4.0
"""Beside adapters: forward, and the gradient of the activations."""
REFERENCE_FLOP_PER_PARAM = 2.0
"""Forward through the reference that scores the same answers."""


def flop_per_param(method: str | None) -> float | None:
    """Operations per matrix parameter and token; None where not all layers are run backward.

    Args:
        method: id of the training method; None: pre-training.

    Raises:
        UsageError: no such method.
    """
    row = find_method(method or PRETRAIN)
    if row.trains == "last-layers":
        return None
    return (FLOP_PER_FROZEN_PARAM if row.adapts else FLOP_PER_PARAM) + (REFERENCE_FLOP_PER_PARAM if row.pairs else 0.0)


def beside_matrices(method: str | None) -> str:
    """What else a token costs FLOP in; arguments and errors as of `flop_per_param`."""
    return "adapters and attention" if find_method(method or PRETRAIN).adapts else "attention"

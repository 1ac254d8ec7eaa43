"""FLOP per token and matrix parameter, by training method."""

from __future__ import annotations

from planner.training.method import PRETRAIN, find_method

FLOP_PER_PARAM = 6.0
"""FLOP per matrix parameter and token, forward and backward (the 6 in 6N)."""
FLOP_PER_FROZEN_PARAM = 4.0
"""FLOP per frozen parameter and token with adapters: forward, and the gradient of the activations."""
REFERENCE_FLOP_PER_PARAM = 2.0
"""FLOP per parameter and token of the forward pass through the reference model, which scores the same answers."""


def flop_per_param(method: str | None) -> float | None:
    """Return the FLOP per matrix parameter and token; None if not all layers run backward.

    Args:
        method: id of the training method; None: pre-training.

    Raises:
        UsageError: there is no such method.
    """
    row = find_method(method or PRETRAIN)
    if row.trains == "last-layers":
        return None
    return (FLOP_PER_FROZEN_PARAM if row.adapts else FLOP_PER_PARAM) + (REFERENCE_FLOP_PER_PARAM if row.pairs else 0.0)


def beside_matrices(method: str | None) -> str:
    """Return what else a token takes FLOP for; arguments and errors as for `flop_per_param`."""
    return "adapters and attention" if find_method(method or PRETRAIN).adapts else "attention"

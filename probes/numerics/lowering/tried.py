"""Whether a device really computes the products of a recipe, tried on a small layer before a run is called real.

A kernel may be missing from the driver's libraries, or be present and answer wrongly: before torch 2.10, scales of
128 x 128 were read from the wrong place for some sizes, without an error (pytorch/pytorch#166752).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch

from probes.device.faults import DeviceLost, cleaned, is_lost
from probes.numerics.lowering.recipes import LowerRecipe

ROWS, INNER, COLUMNS = 256, 640, 384
"""All are multiples of 128. The inner sizes of the two products with a weight, 640 and 384, are not multiples of 512,
which is where wrong scales show."""
WORST_ERROR_RATIO = 0.02
"""Largest relative error of a product or gradient: sums in BF16 and in the accumulators of FP8 are off by about 0.3%,
wrong scales by more than a tenth."""


@cache
def why_not_real(recipe: LowerRecipe, device: torch.device) -> str | None:
    """Return why a device that should run a scaled recipe does not; None if it does.

    recipe: a recipe that scales linear layers.
    device: a device whose compute capability supports the recipe.

    Raises:
        DeviceLost: the products left the device unusable.
    """
    from probes.numerics.lowering.products import linear, on_matrix_units

    generator = torch.Generator().manual_seed(0)
    spread = torch.logspace(-2.0, 2.0, INNER)  # along the inner dimension, so that blocks differ in their scales
    held = torch.nn.utils.skip_init(torch.nn.Linear, INNER, COLUMNS, device=device)  # draws no random numbers
    with torch.no_grad():
        held.bias.zero_()
        held.weight.copy_((torch.randn(COLUMNS, INNER, generator=generator) / spread).bfloat16())
    x = (torch.randn(ROWS, INNER, generator=generator) * spread).bfloat16().float().to(device)
    dy = torch.randn(ROWS, COLUMNS, generator=generator).bfloat16().float().to(device)
    try:
        exact = _results(linear, held, x, dy, recipe)
        real = _results(on_matrix_units, held, x, dy, recipe)
        error = max(
            float((result - exact_result).norm() / exact_result.norm())
            for result, exact_result in zip(real, exact, strict=True)
        )
    except Exception as problem:  # libraries report a missing kernel in various ways
        if is_lost(problem):
            raise DeviceLost(cleaned(problem)) from problem
        return f"a small matrix product on its own units failed: {cleaned(problem)}"
    if not error <= WORST_ERROR_RATIO:
        return f"a small matrix product on its own units is off by {100.0 * error:.2g}%"
    return None


def _results(
    forward: Callable[..., torch.Tensor], layer: torch.nn.Linear, x: torch.Tensor, dy: torch.Tensor, recipe: LowerRecipe
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the output, the gradient of the input and the gradient of the weight."""
    leaf = x.clone().requires_grad_()
    layer.zero_grad()
    y = forward(layer, leaf, recipe)
    y.backward(dy)
    return y.detach(), leaf.grad, layer.weight.grad.clone()

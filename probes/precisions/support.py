"""Which precisions a device really runs, tested by the error of a small product against FP64.

An accepted setting is not necessarily active: CPUs accept `high` matrix precision and compute in FP32, and an
environment variable can switch on TF32 in a strict FP32 run.
"""

from __future__ import annotations

from planner.lazy import dataclass
from probes.device.device import Device
from probes.device.faults import DeviceLost, cleaned, is_lost
from probes.precisions.interface import PrecisionRecipe

SIZE = 512
FP32_ERROR_RATIO = 1e-5
"""Separates FP32, whose products of this size are off by about 3e-7, from TF32: 3e-4 (10 bits of mantissa)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Whether a recipe runs here."""

    recipe: PrecisionRecipe
    reason: str | None
    """Why it does not run; None if it does."""
    error_ratio: float | None
    """Relative error of one linear layer's output."""


def check_support(recipe: PrecisionRecipe, device: Device) -> Support:
    """Run one small linear layer forward and backward in a recipe and return whether that worked.

    Raises:
        DeviceLost: it broke the device.
    """
    reason = recipe.unsupported_on(device)
    if reason is not None:
        return Support(recipe=recipe, reason=reason, error_ratio=None)
    try:
        error = product_error(recipe, device)
    except Exception as problem:
        if is_lost(problem):
            raise DeviceLost(cleaned(problem)) from problem
        return Support(recipe=recipe, reason=f"a small matrix product failed: {cleaned(problem)}", error_ratio=None)
    if recipe.tf32 and error < FP32_ERROR_RATIO:
        why = "TF32 is accepted but not active: products have FP32's error"
        return Support(recipe=recipe, reason=why, error_ratio=error)
    if recipe.id == "fp32" and error > FP32_ERROR_RATIO:
        why = "products have TF32's error although it is off; look for NVIDIA_TF32_OVERRIDE in the environment"
        return Support(recipe=recipe, reason=why, error_ratio=error)
    return Support(recipe=recipe, reason=None, error_ratio=error)


def product_error(recipe: PrecisionRecipe, device: Device) -> float:
    """Return the relative error of a linear layer's output against FP64 (Frobenius norm), after a backward pass too.

    The backward pass casts to other types and along other dimensions, by kernels that a device may lack although the
    forward pass runs there.
    """
    import torch

    from probes.precisions.training import Training

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(SIZE, SIZE, generator=generator)
    weight = torch.randn(SIZE, SIZE, generator=generator)
    layer = torch.nn.Linear(SIZE, SIZE, bias=False)
    with torch.no_grad():
        layer.weight.copy_(weight)
    module = torch.nn.Sequential(layer).to(device.torch)  # conversion swaps children, not the root
    recipe.activate()
    training = Training(module, recipe, device.kind)
    inputs = x.to(device.torch, getattr(torch, recipe.held)).detach().requires_grad_()
    with training.region():
        y = module(inputs)
    training.backward(y, torch.ones_like(y))
    device.clock.synchronize()  # an error of the backward pass belongs to this recipe
    exact = x.double() @ weight.double().t()
    return float(torch.linalg.norm(y.detach().double().cpu() - exact) / torch.linalg.norm(exact))

"""Shared by the FP8 recipes: torchao's converted layers if it is installed, else our own on `_scaled_mm`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from probes.precisions.interface import PrecisionRecipe, Product

if TYPE_CHECKING:
    import torch

    from probes.device.device import Device


def convert_linears(module: torch.nn.Module, recipe_name: str, *, emulate: bool = False) -> tuple[str, ...]:
    """Swap the linear layers of a module for FP8 layers.

    Args:
        module: changed in place.
        recipe_name: torchao's name: `tensorwise` or `rowwise`.
        emulate: compute in high precision on rounded values (torchao only), for machines without FP8.

    Returns:
        Flags for the record.
    """
    rowwise = recipe_name == "rowwise"
    common = ("pow2_scales", "e4m3_gradients") if rowwise else ("fast_accum_forward", "e5m2_gradients")
    if find_spec("torchao") is None:
        from probes.precisions.linear.scaled_linear import swap

        swap(module, rowwise=rowwise)
        return ("scaled_mm", *common)
    from dataclasses import replace

    from torchao.float8 import Float8LinearConfig, convert_to_float8_training

    from probes.precisions.linear.scaled_linear import is_eligible

    config = Float8LinearConfig.from_recipe_name(recipe_name)
    if emulate:
        config = replace(config, emulate=True)
    convert_to_float8_training(module, config=config, module_filter_fn=is_eligible)
    return ("torchao", *common, *(("emulated",) if emulate else ()))


def scaled_product(
    recipe: PrecisionRecipe, role: str, M: int, N: int, K: int, device: Device, copies: int, *, rowwise: bool
) -> Product:
    """Return the bare product on operands cast beforehand; the cost of casts is measured by the memory-bound points."""
    import torch

    from probes.precisions.linear.products import make_scaled

    gradient = torch.float8_e4m3fn if rowwise else torch.float8_e5m2
    return make_scaled(role, M, N, K, device, copies, rowwise=rowwise, gradient=gradient)

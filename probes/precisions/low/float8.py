"""Shared by the FP8 recipes: torchao's converted layers if it can be imported, else our own on `_scaled_mm`."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from probes.device.faults import cleaned
from probes.precisions.interface import PrecisionRecipe, Product

if TYPE_CHECKING:
    import torch

    from probes.device.device import Device


@cache
def why_no_torchao() -> str | None:
    """Return why torchao's FP8 layers cannot be used; None if they can.

    torchao names no torch that it needs: its version 0.18 cannot be imported beside torch 2.9 or older.
    """
    if find_spec("torchao") is None:
        return "it is not installed"
    try:
        import torchao.float8  # noqa: F401
    except Exception as error:  # whatever a version that does not fit this torch fails with
        return cleaned(error)
    return None


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
    if why_no_torchao() is not None:
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

"""MXFP8 linear layers: e4m3 with one power-of-two scale per 32 elements, through torchao."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.precisions.interface import PrecisionRecipe, Product

if TYPE_CHECKING:
    import torch

    from probes.device.device import Device


def convert(module: torch.nn.Module) -> tuple[str, ...]:
    """Swap the linear layers."""
    from probes.precisions.linear.mx_linear import swap

    swap(module, emulate=False)
    return ("torchao", "rceil_scales")


def product(recipe: PrecisionRecipe, role: str, M: int, N: int, K: int, device: Device, copies: int) -> Product:
    """Return the bare product on operands cast beforehand."""
    from probes.precisions.linear.mx_linear import make_mx

    return make_mx(role, M, N, K, device, copies, emulate=False)


RECIPE = PrecisionRecipe(
    id="mxfp8",
    precision="mxfp8",
    summary="bf16-fsdp with MXFP8 linear layers",
    operand="float8_e4m3fn",
    held="bfloat16",
    master_weights=True,
    min_capability=(10, 0),
    why_capability="MXFP8 matrix units came with Blackwell",
    why_not_cpu="CPUs have no MXFP8 matrix units; torch would emulate them",
    needs="torchao",
    convert=convert,
    product=product,
)

"""A recipe: one named way to train in a precision, completely specified."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from planner.lazy import dataclass

if TYPE_CHECKING:
    import torch

    from probes.device.device import Device

ROLES = ("forward", "dgrad", "wgrad")
"""The three matrix products of a linear layer: output, gradient of the input, gradient of the weight."""

Product = Callable[[], None]
"""Runs one matrix product; operands rotate from call to call."""

MakeProduct = Callable[["PrecisionRecipe", str, int, int, int, "Device", int], Product]
"""`(recipe, role, M, N, K, device, copies)`: makes the operands of a product and returns it."""

Convert = Callable[["torch.nn.Module"], tuple[str, ...]]
"""Swaps the linear layers of a module in place; returns flags that describe how."""


def dense_product(recipe: PrecisionRecipe, role: str, M: int, N: int, K: int, device: Device, copies: int) -> Product:
    """Make a plain matrix product in the recipe's operand type."""
    from probes.precisions.linear.products import make_dense

    return make_dense(recipe.operand, role, M, N, K, device, copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionRecipe:
    """How a precision is applied: the type of each stored tensor, and the type in which the matrix products run.

    Types are named as in torch, without importing it.
    """

    id: str
    """Name in the registry; the planner's id if the planner has a policy with the same meaning."""
    precision: str
    """Precision that a user asks for: fp32, tf32, fp16, bf16, fp8, mxfp8."""
    summary: str
    operand: str
    """Type of the operands of the linear layers' matrix products."""
    held: str = "float32"
    """Type in which the module's parameters are held."""
    autocast: str | None = None
    """Type of the autocast region around the forward pass."""
    master_weights: bool = False
    """True: the optimizer updates FP32 copies, and gradients are accumulated in FP32."""
    loss_scaling: bool = False
    tf32: bool = False
    """True: FP32 matrix products may round their operands to TF32."""
    min_capability: tuple[int, int] = (0, 0)
    """Least CUDA compute capability."""
    why_capability: str = ""
    why_not_cpu: str | None = None
    """Why a CPU cannot run it at a speed worth measuring; None if it can."""
    needs: str | None = None
    """Package that must be installed."""
    convert: Convert | None = None
    product: MakeProduct = dense_product
    kernel: bool = True
    """False: its bare matrix products equal those of another recipe, and need not be measured twice."""
    flags: tuple[str, ...] = ()

    def unsupported_on(self, device: Device) -> str | None:
        """Return why this device cannot run the recipe; None if it can."""
        from importlib.util import find_spec

        if device.kind == "cpu":
            return self.why_not_cpu
        if self.needs and find_spec(self.needs) is None:
            return f"needs {self.needs}, which is not installed"
        if device.capability < self.min_capability:
            have = f"{device.capability[0]}.{device.capability[1]}"
            want = f"{self.min_capability[0]}.{self.min_capability[1]}"
            return f"{self.why_capability}: compute capability {want} is needed, this device has {have}"
        return None

    def activate(self) -> None:
        """Set torch's global switches for this recipe; called before each batch of samples."""
        import torch

        torch.set_float32_matmul_precision("high" if self.tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = self.tf32

    def region(self, device_kind: str) -> AbstractContextManager[object]:
        """Return the context of the forward pass."""
        if self.autocast is None:
            return nullcontext()
        import torch

        region: AbstractContextManager[object] = torch.autocast(device_kind, dtype=getattr(torch, self.autocast))
        return region

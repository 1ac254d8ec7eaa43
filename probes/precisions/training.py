"""A module prepared for training by a recipe: its parameters held, updated and scaled as the recipe defines."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import nn

from probes.precisions.interface import PrecisionRecipe

CLIP_NORM = 1.0
"""Gradients are clipped to this norm before an update, as in nearly every large run."""


class Training:
    """Forward context, backward and update of one module under one recipe."""

    def __init__(self, module: nn.Module, recipe: PrecisionRecipe, device_kind: str) -> None:
        """Convert the module in place: types first, then linear layers, then master weights."""
        self.module = module
        self.recipe = recipe
        self.device_kind = device_kind
        hold(module, getattr(torch, recipe.held))
        self.flags = recipe.flags + (recipe.convert(module) if recipe.convert else ())
        held = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self._copies: list[torch.Tensor] = []
        self.updated: list[torch.Tensor] = held
        """Tensors that the optimizer updates: the parameters, or their FP32 master copies."""
        if recipe.master_weights:
            self._copies = held
            self.updated = [self._master(parameter) for parameter in held]
        self._scaler: Any = torch.amp.GradScaler(device_kind) if recipe.loss_scaling else None

    def region(self) -> AbstractContextManager[object]:
        """Return the context of the forward pass."""
        return self.recipe.region(self.device_kind)

    def backward(self, output: torch.Tensor, gradient: torch.Tensor | None = None) -> None:
        """Run the backward pass from a loss, or from a module's output with the gradient that arrives there."""
        if self._scaler is not None and gradient is None:
            output = self._scaler.scale(output)
        torch.autograd.backward(output, gradient)

    def update(self, optimizer: torch.optim.Optimizer) -> None:
        """Unscale, clip, step, copy the master weights back, and free the gradients."""
        if self._scaler is not None:
            self._scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(self.updated, CLIP_NORM)
        if self._scaler is not None:
            self._scaler.step(optimizer)
            self._scaler.update()
        else:
            optimizer.step()
        with torch.no_grad():
            if self._copies:
                torch._foreach_copy_(self._copies, self.updated)
        optimizer.zero_grad(set_to_none=True)

    @property
    def loss_scale(self) -> float | None:
        """Present loss scale; None without loss scaling."""
        return None if self._scaler is None else float(self._scaler.get_scale())

    def _master(self, copy: nn.Parameter) -> torch.Tensor:
        """Make the FP32 copy of a parameter; gradients that reach the parameter are accumulated there and freed."""
        master = copy.detach().float().requires_grad_()
        copy.register_post_accumulate_grad_hook(partial(_add_up, master))
        return master


def _add_up(master: torch.Tensor, copy: torch.Tensor) -> None:
    gradient = copy.grad
    if gradient is None:
        return
    if master.grad is None:
        master.grad = gradient.float()
    else:
        master.grad.add_(gradient)
    copy.grad = None


def hold(module: nn.Module, dtype: torch.dtype) -> None:
    """Convert floating-point parameters and buffers, except rotary frequencies, which always stay in FP32."""
    with torch.no_grad():
        for tensor in module.parameters():
            if tensor.is_floating_point() and tensor.dtype != dtype:
                tensor.data = tensor.data.to(dtype)
        for owner in module.modules():
            for name, tensor in owner._buffers.items():
                if tensor is not None and tensor.is_floating_point() and "inv_freq" not in name:
                    owner._buffers[name] = tensor.to(dtype)


def fused_adamw(tensors: list[torch.Tensor]) -> torch.optim.Optimizer:
    """Make AdamW in one fused kernel, with states in the tensors' own type."""
    return torch.optim.AdamW(tensors, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

"""Updates of optimizers that torch lacks, in plain torch: their state and traffic match their papers.

They serve only to time one update and to count its state; for training, use a maintained library.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class _Optimizer(torch.optim.Optimizer):  # type: ignore[misc]  # torch is not read by mypy
    """Applies `_update` to every parameter that has a gradient."""

    def __init__(self, params: Iterable[torch.Tensor], **settings: float) -> None:
        super().__init__(list(params), settings)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Any = None) -> None:
        """Run one update."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, self.state[parameter], group)

    def _update(self, parameter: torch.Tensor, gradient: torch.Tensor, kept: dict[str, Any], group: Any) -> None:
        raise NotImplementedError


class Lamb(_Optimizer):
    """LAMB: Adam's update scaled by the ratio of two norms per tensor (You et al., arXiv 1904.00962, algorithm 2)."""

    def __init__(
        self, params: Iterable[torch.Tensor], lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
        eps: float = 1e-6, weight_decay: float = 0.01,
    ) -> None:  # fmt: skip
        super().__init__(params, lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay)

    def _update(self, parameter: torch.Tensor, gradient: torch.Tensor, kept: dict[str, Any], group: Any) -> None:
        first, second, step = _moments(parameter, kept)
        first.lerp_(gradient, 1.0 - group["beta1"])
        second.mul_(group["beta2"]).addcmul_(gradient, gradient, value=1.0 - group["beta2"])
        mean = first / (1.0 - group["beta1"] ** step)
        spread = (second / (1.0 - group["beta2"] ** step)).sqrt_().add_(group["eps"])
        update = mean.div_(spread).add_(parameter, alpha=group["weight_decay"])
        weight_norm, update_norm = parameter.norm(), update.norm()
        ratio = torch.where((weight_norm > 0) & (update_norm > 0), weight_norm / update_norm, 1.0)
        parameter.sub_(update.mul_(ratio), alpha=group["lr"])


class SophiaG(_Optimizer):
    """Sophia with the Gauss-Newton-Bartlett estimate (Liu et al., arXiv 2305.14342, algorithms 2 and 3).

    The estimate is renewed every `interval` steps, here from the current gradient. The separate sampled backward pass
    that it really needs, about 5 % of the compute at an interval of 10, is not part of the update.
    """

    def __init__(
        self, params: Iterable[torch.Tensor], lr: float = 1e-4, beta1: float = 0.96, beta2: float = 0.99,
        rho: float = 0.04, weight_decay: float = 0.1, samples: float = 1.0, interval: int = 10,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr=lr, beta1=beta1, beta2=beta2, rho=rho, weight_decay=weight_decay, samples=samples,
            interval=interval,
        )  # fmt: skip

    def _update(self, parameter: torch.Tensor, gradient: torch.Tensor, kept: dict[str, Any], group: Any) -> None:
        momentum, curvature, step = _moments(parameter, kept)
        momentum.lerp_(gradient, 1.0 - group["beta1"])
        if step % group["interval"] == 1:
            estimate = 1.0 - group["beta2"]
            curvature.mul_(group["beta2"]).addcmul_(gradient, gradient, value=estimate * group["samples"])
        bound = curvature.mul(group["rho"] * group["samples"]).clamp_(min=1e-15)
        parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
        parameter.sub_(momentum.div(bound).clamp_(-1.0, 1.0), alpha=group["lr"])


def _moments(parameter: torch.Tensor, kept: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return two moments of a parameter and the number of this update."""
    if not kept:
        kept["first"], kept["second"], kept["step"] = torch.zeros_like(parameter), torch.zeros_like(parameter), 0
    kept["step"] += 1
    return kept["first"], kept["second"], kept["step"]

"""Which precisions a GPU can train a model in: what the GPU lacks, and what the framework lacks for the model."""

from __future__ import annotations

from collections.abc import Iterable

from planner.errors import Message
from planner.hardware.gpu import Gpu
from planner.models.shape import ModelShape
from planner.training.policies import best_supported, why_unsupported
from planner.training.precision import PrecisionPolicy


def why_unable(model: ModelShape, policy: PrecisionPolicy, gpu: Gpu) -> Message | None:
    """Why a model cannot be trained in a policy on a GPU; None where it can.

    A vision transformer has its arithmetic in linear layers, which FP8 recipes replace; a convolutional network has not
    (torchao's `Float8Linear` and Transformer Engine's modules are linear layers, norms and attention).
    """
    reason = why_unsupported(policy, gpu)
    if reason is None and no_gpu_can(model, policy):
        return Message.of("why.no_narrow_convolutions", name=model.name, precision=policy.precision.upper())
    return reason


def no_gpu_can(model: ModelShape, policy: PrecisionPolicy) -> bool:
    """Whether what a model lacks rules a policy out on every GPU."""
    return policy.narrow and model.network is not None and model.network.is_convolutional


def best_able(model: ModelShape, policies: Iterable[PrecisionPolicy], gpu: Gpu) -> PrecisionPolicy | None:
    """The policy with the fastest linear products of those that a model can be trained in; None where there is none."""
    return best_supported([policy for policy in policies if why_unable(model, policy, gpu) is None], gpu)

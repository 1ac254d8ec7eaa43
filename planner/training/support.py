"""The precisions in which a GPU can train a model, given the limits of the GPU and of software."""

from __future__ import annotations

from collections.abc import Iterable

from planner.errors import Message
from planner.hardware.gpu import Gpu
from planner.models.shape import ModelShape
from planner.training.method import find_method
from planner.training.policies import best_supported, why_unsupported
from planner.training.precision import PrecisionPolicy


def why_unable(model: ModelShape, policy: PrecisionPolicy, gpu: Gpu, method: str) -> Message | None:
    """The reason why a model cannot be trained with a policy on a GPU; None if it can.

    FP8 recipes replace linear layers (torchao's `Float8Linear` and Transformer Engine's modules are linear layers,
    norms and attention). These do most of the arithmetic of a vision transformer, but not of a convolutional network.

    4-bit weights are unpacked to a 16-bit compute type, in which their products run (QLoRA, arXiv 2305.14314, equation
    5; bitsandbytes, `MatMul4Bit`). No FP8 or FP4 recipe replaces these layers: torchao creates its `Float8Linear` from
    a whole weight, not from a packed one.
    """
    reason = why_unsupported(policy, gpu)
    if reason is None and _lacks_convolutions(model, policy):
        return Message.of("why.no_narrow_convolutions", name=model.name, precision=policy.precision.upper())
    if reason is None and method_lacks(policy, method):
        name = find_method(method).name
        return Message.of("why.no_narrow_low_bits", method=name, precision=policy.precision.upper())
    return reason


def no_gpu_can(model: ModelShape, policy: PrecisionPolicy, method: str) -> bool:
    """Whether limits of the model or the method rule out a policy on every GPU."""
    return _lacks_convolutions(model, policy) or method_lacks(policy, method)


def method_lacks(policy: PrecisionPolicy, method: str) -> bool:
    """Whether the method cannot run products in the policy's narrow type."""
    return policy.narrow and find_method(method).low_bits


def _lacks_convolutions(model: ModelShape, policy: PrecisionPolicy) -> bool:
    return policy.narrow and model.network is not None and model.network.is_convolutional


def best_able(model: ModelShape, policies: Iterable[PrecisionPolicy], gpu: Gpu, method: str) -> PrecisionPolicy | None:
    """The policy with the fastest linear products among those with which the model can be trained; None if none can."""
    return best_supported([policy for policy in policies if why_unable(model, policy, gpu, method) is None], gpu)

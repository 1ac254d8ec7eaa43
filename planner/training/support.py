"""Which precisions a GPU can train a model in: what the GPU lacks, and what software does."""

from __future__ import annotations

from collections.abc import Iterable

from planner.errors import Message
from planner.hardware.gpu import Gpu
from planner.models.shape import ModelShape
from planner.training.method import find_method
from planner.training.policies import best_supported, why_unsupported
from planner.training.precision import PrecisionPolicy


def why_unable(model: ModelShape, policy: PrecisionPolicy, gpu: Gpu, method: str) -> Message | None:
    """Why a model cannot be trained in a policy on a GPU; None where it can.

    A vision transformer has its arithmetic in linear layers, which FP8 recipes replace; a convolutional network has not
    (torchao's `Float8Linear` and Transformer Engine's modules are linear layers, norms and attention).

    4-bit weights are unpacked to the compute type of 16 bits, in which their products run (QLoRA, arXiv 2305.14314,
    equation 5; bitsandbytes, `MatMul4Bit`), and no recipe of FP8 or FP4 takes the place of these layers: torchao makes
    its `Float8Linear` of a weight that is whole, not packed.
    """
    reason = why_unsupported(policy, gpu)
    if reason is None and _lacks_convolutions(model, policy):
        return Message.of("why.no_narrow_convolutions", name=model.name, precision=policy.precision.upper())
    if reason is None and method_lacks(policy, method):
        name = find_method(method).name
        return Message.of("why.no_narrow_low_bits", method=name, precision=policy.precision.upper())
    return reason


def no_gpu_can(model: ModelShape, policy: PrecisionPolicy, method: str) -> bool:
    """Whether what a model or a method lacks rules a policy out on every GPU."""
    return _lacks_convolutions(model, policy) or method_lacks(policy, method)


def method_lacks(policy: PrecisionPolicy, method: str) -> bool:
    """Whether a method has no products in the policy's narrow type."""
    return policy.narrow and find_method(method).low_bits


def _lacks_convolutions(model: ModelShape, policy: PrecisionPolicy) -> bool:
    return policy.narrow and model.network is not None and model.network.is_convolutional


def best_able(model: ModelShape, policies: Iterable[PrecisionPolicy], gpu: Gpu, method: str) -> PrecisionPolicy | None:
    """The policy with the fastest linear products of those that a model can be trained in; None where there is none."""
    return best_supported([policy for policy in policies if why_unable(model, policy, gpu, method) is None], gpu)

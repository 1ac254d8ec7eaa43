"""The software of a published run: its framework's defaults, overridden by the row."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import Message
from planner.hardware.architectures import find_architecture
from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.training.frameworks import Framework, find_framework
from planner.training.method import PRETRAIN, Method, find_method, load_methods
from planner.training.policies import load_policies, why_unsupported
from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS, PrecisionPolicy
from planner.training.recipe import LOSSES, trained_mtp_layers
from planner.validation.columns import ATTENTION, YES
from planner.validation.defaults import Filled
from planner.validation.model import CannotPredictError, model_of
from planner.validation.runs import PublishedRun

POWERS = ("avg_gpu_power_w", "avg_node_power_w")
"""Metrics of power."""
TUNED_SINCE = 2022
"""Launch year from which Megatron-LM means Megatron-Core with Transformer Engine (Hopper and later)."""


def framework_of(run: PublishedRun, gpu: Gpu) -> Framework:
    """Return the framework's defaults on this generation of GPU."""
    framework, architecture = find_framework(run.framework), find_architecture(gpu.arch)
    fused_kernels = framework.stack in ("classic", "tuned") and framework.attention == "naive"
    if fused_kernels and architecture.year >= TUNED_SINCE and ATTENTION.get(run.attention.lower()) != "naive":
        is_megatron = framework.id.startswith("megatron")
        return find_framework("Megatron-Core") if is_megatron else replace(framework, attention="flash")
    if not architecture.fused_attention and framework.attention == "flash":
        return replace(framework, attention="naive")
    return framework


def policy_of(run: PublishedRun, framework: Framework, gpu: Gpu, filled: Filled) -> PrecisionPolicy:
    """Return the precision policy that the row names, else the framework's policy for its precision.

    Raises:
        CannotPredictError: the precision or policy is unknown, the policy belongs to another precision, or the GPU
            cannot run it.
    """
    precision = run.precision
    if precision is None and run.metric in POWERS:
        precision = "fp32"  # a framework's own default; power near a limit depends little on it
        filled.take("precision", as_="fp32")
    if precision is None:
        raise CannotPredictError("precision: blank")
    if precision not in PRECISIONS + EXTRA_PRECISIONS:
        raise CannotPredictError(f"precision: unknown `{precision}`")
    policy = _named_policy(run.policy, precision) if run.policy else framework.policy(precision)
    reason = why_unsupported(policy, gpu)
    if reason:
        raise CannotPredictError(Message.of("skipped.precision", reason=reason))
    return policy


def _named_policy(name: str, precision: str) -> PrecisionPolicy:
    known = {policy.id: policy for policy in load_policies().values() if policy.precision == precision}
    if name not in known:
        why = f"is not of the row's precision {precision}" if name in load_policies() else "is no policy"
        raise CannotPredictError(f"policy: `{name}` {why}; those of {precision} are {', '.join(known)}")
    return known[name]


def loss_of(run: PublishedRun, framework: Framework) -> str:
    """Return one of `recipe.LOSSES`: as either column of the row states, else the framework's default."""
    if run.loss or not run.fused_loss:
        return run.loss or framework.loss
    full, chunked, fused = LOSSES
    if run.fused_loss not in YES:
        return full
    return fused if framework.loss == fused else chunked


def stack_of(run: PublishedRun, framework: Framework) -> str:
    """Return one of `recipe.STACKS`; the row's `compile` counts only where the framework leaves it open."""
    if framework.stack in ("typical", "tuned", "classic"):
        return framework.stack
    compiled = run.compile.lower()
    return "fsdp-compile" if compiled in YES else "eager" if compiled in ("n", "no") else framework.stack


def _is_plain_encoder(framework: Framework, model: ModelShape) -> bool:
    """Return whether it is an encoder in eager PyTorch, whose code has dropout and separate attention matmuls."""
    return model.kind == "encoder" and framework.stack == "eager"


def drops_out(framework: Framework, model: ModelShape) -> bool:
    """Return whether dropout masks are drawn and applied; a plan has them for encoders only."""
    if framework.planned:
        return model.kind == "encoder"
    return framework.dropout or _is_plain_encoder(framework, model)


def attention_of(run: PublishedRun, framework: Framework, model: ModelShape) -> str:
    """One of `recipe.ATTENTIONS`."""
    usual = "naive" if _is_plain_encoder(framework, model) else framework.attention
    return ATTENTION.get(run.attention.lower()) or usual


def method_of(run: PublishedRun) -> Method:
    """Return the training method.

    Raises:
        CannotPredictError: the method is unknown.
    """
    name = run.method or PRETRAIN
    if name not in load_methods():
        raise CannotPredictError(f"method: unknown `{name}`; known are {', '.join(load_methods())}")
    return find_method(name)


def mtp_layers_of(run: PublishedRun, model: ModelShape, method: Method, stack: str) -> int:
    """Return the trained modules of multi-token prediction: the row's, else the usual number."""
    return trained_mtp_layers(model, method, stack) if run.mtp_layers is None else run.mtp_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """How a run trains, with fields named like the columns of a row."""

    policy: str
    """Id."""
    loss: str
    attention: str
    mtp_layers: int


def software_of(run: PublishedRun, gpu: Gpu) -> Software:
    """Return the software of a row, with the meanings of its blank cells.

    Raises:
        CannotPredictError: the row lacks a decisive cell.
    """
    framework, model, filled = framework_of(run, gpu), model_of(run, Filled()), Filled()
    return Software(
        policy=policy_of(run, framework, gpu, filled).id,
        loss=loss_of(run, framework),
        attention=attention_of(run, framework, model),
        mtp_layers=mtp_layers_of(run, model, method_of(run), stack_of(run, framework)),
    )

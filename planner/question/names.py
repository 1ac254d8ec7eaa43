"""The names that an input can take, from where each is declared; they are loaded when needed, not with the flags."""

from __future__ import annotations

from collections.abc import Iterable


def methods() -> Iterable[str]:
    """Return the training methods."""
    from planner.training.method import load_methods

    return load_methods()


def precisions() -> Iterable[str]:
    """Return the precisions: those that every answer compares, then those that are compared on request."""
    from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS

    return (*PRECISIONS, *EXTRA_PRECISIONS)


def policies() -> Iterable[str]:
    """Return the precision policies of the catalogue."""
    from planner.training.policies import load_policies

    return load_policies()


def optimizers() -> Iterable[str]:
    """Return the optimizers of the catalogue."""
    from planner.training.optimizers import load_optimizers

    return load_optimizers()


def checkpointing_modes() -> Iterable[str]:
    """Return the activation-checkpointing modes."""
    from planner.training.recipe import ACT_CKPT

    return ACT_CKPT


def offloads() -> Iterable[str]:
    """Return the kinds of state that can be kept in host memory."""
    from planner.training.recipe import OFFLOADS

    return OFFLOADS


def grad_compressions() -> Iterable[str]:
    """Return the ways to compress gradients, including none."""
    from planner.training.grad_compression import NONE, load_grad_compressions

    return (NONE, *load_grad_compressions())


def stacks() -> Iterable[str]:
    """Return the software stacks, and the frameworks that have a named stack."""
    from planner.training.frameworks import named_stacks
    from planner.training.recipe import STACKS

    return (*STACKS, *named_stacks())


def adapter_targets() -> Iterable[str]:
    """Return the groups of weights that can have adapters."""
    from planner.training.adapters import LORA_TARGETS

    return LORA_TARGETS


def losses() -> Iterable[str]:
    """Return the ways to compute the loss."""
    from planner.training.recipe import LOSSES

    return LOSSES


def attentions() -> Iterable[str]:
    """Return the attention kernels."""
    from planner.training.recipe import ATTENTIONS

    return ATTENTIONS


def dispatchers() -> Iterable[str]:
    """Return the ways to send tokens to their experts."""
    from planner.parallelism.routing import DISPATCHERS

    return DISPATCHERS


def models() -> Iterable[str]:
    """Return the models of the catalogue, language models first."""
    from planner.models.catalogue import load_models
    from planner.models.images.catalogue import load_image_models

    return (*load_models(), *load_image_models())


def gpus() -> Iterable[str]:
    """Return the GPUs of the catalogue."""
    from planner.hardware.catalogue import load_gpus

    return load_gpus()


def networks() -> Iterable[str]:
    """Return the networks that have a name."""
    from planner.hardware.network import NETWORKS

    return [row.name for row in NETWORKS]

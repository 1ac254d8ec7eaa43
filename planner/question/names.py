"""The names that an input can take, from where each is declared; loaded when they are needed, not with the flags."""

from __future__ import annotations

from collections.abc import Iterable


def methods() -> Iterable[str]:
    """Training methods."""
    from planner.training.method import load_methods

    return load_methods()


def precisions() -> Iterable[str]:
    """Precisions: those that every answer compares, then those that are compared when asked for."""
    from planner.training.precision import EXTRA_PRECISIONS, PRECISIONS

    return (*PRECISIONS, *EXTRA_PRECISIONS)


def policies() -> Iterable[str]:
    """Precision policies of the catalogue."""
    from planner.training.policies import load_policies

    return load_policies()


def optimizers() -> Iterable[str]:
    """Optimizers of the catalogue."""
    from planner.training.optimizers import load_optimizers

    return load_optimizers()


def checkpointing_modes() -> Iterable[str]:
    """Ways to checkpoint activations."""
    from planner.training.recipe import ACT_CKPT

    return ACT_CKPT


def offloads() -> Iterable[str]:
    """What can be kept in host memory."""
    from planner.training.recipe import OFFLOADS

    return OFFLOADS


def grad_compressions() -> Iterable[str]:
    """Ways to compress gradients, and none."""
    from planner.training.grad_compression import NONE, load_grad_compressions

    return (NONE, *load_grad_compressions())


def stacks() -> Iterable[str]:
    """Software stacks, and the frameworks that have one of them."""
    from planner.training.frameworks import named_stacks
    from planner.training.recipe import STACKS

    return (*STACKS, *named_stacks())


def adapter_targets() -> Iterable[str]:
    """Weights that adapters stand beside."""
    from planner.training.adapters import LORA_TARGETS

    return LORA_TARGETS


def losses() -> Iterable[str]:
    """Ways to compute the loss."""
    from planner.training.recipe import LOSSES

    return LOSSES


def attentions() -> Iterable[str]:
    """Attention kernels."""
    from planner.training.recipe import ATTENTIONS

    return ATTENTIONS


def dispatchers() -> Iterable[str]:
    """Ways to send tokens to their experts."""
    from planner.parallelism.routing import DISPATCHERS

    return DISPATCHERS


def models() -> Iterable[str]:
    """Models of the catalogue, language models first."""
    from planner.models.catalogue import load_models
    from planner.models.images.catalogue import load_image_models

    return (*load_models(), *load_image_models())


def gpus() -> Iterable[str]:
    """GPUs of the catalogue."""
    from planner.hardware.catalogue import load_gpus

    return load_gpus()


def networks() -> Iterable[str]:
    """Networks that have a name."""
    from planner.hardware.network import NETWORKS

    return [row.name for row in NETWORKS]

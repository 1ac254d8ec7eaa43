"""How often a token is sent to its experts, and over how many nodes these are spread."""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
import numpy.typing as npt

from planner.hardware.architectures import find_architecture
from planner.hardware.gpu import Gpu
from planner.models.shape import ModelShape
from planner.training.precision import PrecisionPolicy

Floats = npt.NDArray[np.float64]

DISPATCHERS = ("deepep", "alltoall")
"""With `deepep` (DeepEP and similar), a token crosses the network once for each node that holds any of its experts and
is copied there. With `alltoall` (Megatron-Core's `alltoall` dispatcher, torchtitan's `standard`), it crosses once for
each expert."""

BF16_BYTES = 2.0
"""Bytes of an activation in the widest format that DeepEP sends."""

DEEPEP_YEAR = 2025.5
"""Decimal year from which frameworks are assumed to have DeepEP: Megatron-Core added it in version 0.12 of May 2025
(its megatron/core/transformer/moe/README.md)."""


def settled_dispatcher(
    requested: str | None, stack: str, gpu: Gpu, policy: PrecisionPolicy, year: float | None = None
) -> str:
    """Choose one of `DISPATCHERS`: the requested one if the precision allows it, otherwise the usual one.

    DeepEP sends BF16 (DeepSpeed's deepspeed/module_inject/auto_ep_comm.py: "handles bfloat16 only"). It runs on NVIDIA
    GPUs from Ampere on that are joined by NVLink (its README), and Megatron and its relatives offer it.

    Args:
        requested: the requested one of `DISPATCHERS`; None if not specified.
        stack: one of `recipe.STACKS`.
        gpu: the GPU that holds the experts.
        policy: the precision policy of the training.
        year: decimal year of the software's release; None for current software.
    """
    if policy.activation_bytes > BF16_BYTES or policy.precision == "fp16":
        return "alltoall"
    architecture = find_architecture(gpu.arch)
    runs = architecture.vendor == "NVIDIA" and architecture.fused_attention and gpu.nvlink_domain_gpus > 1
    offered = stack in ("tuned", "typical") and (year is None or year >= DEEPEP_YEAR)
    return requested or ("deepep" if runs and offered else "alltoall")


def messages_per_copy(dispatcher: str, model: ModelShape, nodes: Floats) -> Floats:
    """Messages sent per copy of a token (there is one copy for each of its experts), `[layout]`.

    Args:
        dispatcher: one of `DISPATCHERS`.
        model: a mixture of experts.
        nodes: number of nodes; see `nodes_met`.
    """
    if dispatcher == "alltoall":
        return np.ones_like(nodes)
    return np.minimum(nodes_met(model, nodes) / model.top_k, 1.0)


def nodes_met(model: ModelShape, nodes: Floats) -> Floats:
    """Expected number of nodes that hold the experts of one token, `[layout]`.

    `k` experts chosen uniformly are on `D (1 - (1 - 1/D)^k)` of `D` nodes. If experts form groups and each token's
    experts come from a few groups (DeepSeek-V3, arXiv 2412.19437, section 2.1.2), there are fewer nodes.

    Args:
        model: a mixture of experts.
        nodes: number of nodes over which the experts are spread in order, so that the experts of a group are on
            neighbouring GPUs, `[layout]`.
    """
    if not model.expert_groups:
        return np.asarray(nodes * (1.0 - (1.0 - 1.0 / nodes) ** model.top_k))
    groups, chosen = model.expert_groups, model.token_groups
    on_a_node = groups / nodes
    whole_groups = np.interp(on_a_node, np.arange(groups + 1), _missed(groups, chosen, model.top_k))
    # Where a group is spread over several nodes:
    split_group = 1.0 - chosen / groups * (1.0 - (1.0 - on_a_node / chosen) ** model.top_k)
    return np.asarray(nodes * (1.0 - np.where(on_a_node >= 1.0, whole_groups, split_group)))


@lru_cache(maxsize=64)
def _missed(groups: int, chosen: int, top_k: int) -> tuple[float, ...]:
    """Probability that a node holds none of a token's experts, by the number of groups on the node (0 to `groups`).

    The number of the node's groups that are chosen follows a hypergeometric distribution.
    """
    ways = comb(groups, chosen)
    return tuple(
        sum(
            comb(held, common) * comb(groups - held, chosen - common) / ways * (1.0 - common / chosen) ** top_k
            for common in range(min(held, chosen) + 1)
        )
        for held in range(groups + 1)
    )

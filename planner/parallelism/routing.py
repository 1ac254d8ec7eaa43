"""How often a token is sent to its experts, and on how many nodes they lie."""

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
"""A token crosses the network once for each node that holds some of its experts, and is copied there (DeepEP and its
like); or once for each expert (the `alltoall` dispatcher of Megatron-Core, torchtitan's `standard`)."""

BF16_BYTES = 2.0
"""Bytes of an activation in the widest format that DeepEP sends."""

DEEPEP_YEAR = 2025.5
"""From then on frameworks are taken to have DeepEP: Megatron-Core added it in version 0.12 of May 2025 (its
megatron/core/transformer/moe/README.md)."""


def settled_dispatcher(
    asked: str | None, stack: str, gpu: Gpu, policy: PrecisionPolicy, year: float | None = None
) -> str:
    """One of `DISPATCHERS`: as asked where the precision can, else what is usual.

    DeepEP sends BF16 (DeepSpeed's deepspeed/module_inject/auto_ep_comm.py: "handles bfloat16 only"), runs on NVIDIA
    GPUs since Ampere that NVLink joins (its README), and Megatron's relatives offer it.

    Args:
        asked: one of `DISPATCHERS`; None: nobody says.
        stack: one of `recipe.STACKS`.
        gpu: on which the experts lie.
        policy: of the training.
        year: decimal year of the software's release; None: current.
    """
    if policy.activation_bytes > BF16_BYTES or policy.precision == "fp16":
        return "alltoall"
    part = find_architecture(gpu.arch)
    runs = part.vendor == "NVIDIA" and part.fused_attention and gpu.nvlink_domain_gpus > 1
    offered = stack in ("tuned", "typical") and (year is None or year >= DEEPEP_YEAR)
    return asked or ("deepep" if runs and offered else "alltoall")


def sent_share(dispatcher: str, model: ModelShape, nodes: Floats) -> Floats:
    """Share of the copies of a token, one for each of its experts, that are sent between nodes, `[layout]`.

    Args:
        dispatcher: one of `DISPATCHERS`.
        model: a mixture of experts.
        nodes: as of `nodes_met`.
    """
    if dispatcher == "alltoall":
        return np.ones_like(nodes)
    return np.minimum(nodes_met(model, nodes) / model.top_k, 1.0)


def nodes_met(model: ModelShape, nodes: Floats) -> Floats:
    """Expected number of nodes that hold the experts of one token, `[layout]`.

    Of `D` nodes, `k` experts chosen evenly lie on `D (1 - (1 - 1/D)^k)`. Where experts come in groups and those of a
    token lie in a few of them (DeepSeek-V3, arXiv 2412.19437, section 2.1.2), fewer nodes are met.

    Args:
        model: a mixture of experts.
        nodes: over how many the experts are spread in order, so that a group lies on neighbouring GPUs, `[layout]`.
    """
    if not model.expert_groups:
        return np.asarray(nodes * (1.0 - (1.0 - 1.0 / nodes) ** model.top_k))
    groups, chosen = model.expert_groups, model.token_groups
    on_a_node = groups / nodes
    whole = np.interp(on_a_node, np.arange(groups + 1), _missed(groups, chosen, model.top_k))
    part = 1.0 - chosen / groups * (1.0 - (1.0 - on_a_node / chosen) ** model.top_k)  # a group over several nodes
    return np.asarray(nodes * (1.0 - np.where(on_a_node >= 1.0, whole, part)))


@lru_cache(maxsize=64)
def _missed(groups: int, chosen: int, top_k: int) -> tuple[float, ...]:
    """The probability that a node has none of a token's experts, by how many of the groups it holds, from none to all.

    How many of a node's groups are chosen follows the hypergeometric distribution.
    """
    ways = comb(groups, chosen)
    return tuple(
        sum(
            comb(held, common) * comb(groups - held, chosen - common) / ways * (1.0 - common / chosen) ** top_k
            for common in range(min(held, chosen) + 1)
        )
        for held in range(groups + 1)
    )

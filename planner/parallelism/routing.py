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


def copies_sent(dispatcher: str, model: ModelShape, ranks: Floats) -> Floats:
    """Copies of a token that its GPU sends to the ranks of its experts, `[layout]`.

    A plain all-to-all sends one for each expert. DeepEP sends one to each rank that holds any of them
    (deepseek-ai/DeepEP, `Buffer.get_dispatch_layout`: `is_token_in_rank`) and adds up the results there.

    Args:
        dispatcher: one of `DISPATCHERS`.
        model: a mixture of experts.
        ranks: number of expert parallel ranks; see `parts_met`.
    """
    if dispatcher == "alltoall":
        return np.full_like(ranks, model.top_k, dtype=np.float64)
    return np.minimum(parts_met(model, ranks), model.top_k)


def crossing_ratio(dispatcher: str, model: ModelShape, ranks: Floats, nodes: Floats) -> Floats:
    """Messages to other nodes per copy for a rank there, `[layout]`: with DeepEP, a token enters a node only once."""
    if dispatcher == "alltoall":
        return np.ones_like(nodes, dtype=np.float64)
    return np.minimum(parts_met(model, nodes) / copies_sent(dispatcher, model, ranks), 1.0)


def parts_met(model: ModelShape, parts: Floats) -> Floats:
    """Expected number of parts of the experts (nodes or ranks) that hold those of one token, `[layout]`.

    `k` experts chosen uniformly are in `D (1 - (1 - 1/D)^k)` of `D` parts. If experts form groups and each token's
    experts come from a few groups (DeepSeek-V3, arXiv 2412.19437, section 2.1.2), there are fewer.

    Args:
        model: a mixture of experts.
        parts: number of nodes or ranks over which the experts are spread in order, so that the experts of a group are
            on neighbouring GPUs, `[layout]`.
    """
    if not model.expert_groups:
        return np.asarray(parts * (1.0 - (1.0 - 1.0 / parts) ** model.top_k))
    groups, chosen = model.expert_groups, model.token_groups
    on_a_part = groups / parts
    whole_groups = np.interp(on_a_part, np.arange(groups + 1), _missed(groups, chosen, model.top_k))
    # Where a group is spread over several parts:
    split_group = 1.0 - chosen / groups * (1.0 - (1.0 - on_a_part / chosen) ** model.top_k)
    return np.asarray(parts * (1.0 - np.where(on_a_part >= 1.0, whole_groups, split_group)))


@lru_cache(maxsize=64)
def _missed(groups: int, chosen: int, top_k: int) -> tuple[float, ...]:
    """Probability that a part holds none of a token's experts, by the number of groups in it (0 to `groups`).

    The number of the part's groups that are chosen follows a hypergeometric distribution.
    """
    ways = comb(groups, chosen)
    return tuple(
        sum(
            comb(held, common) * comb(groups - held, chosen - common) / ways * (1.0 - common / chosen) ** top_k
            for common in range(min(held, chosen) + 1)
        )
        for held in range(groups + 1)
    )

"""On how many nodes the experts of a token lie."""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
import numpy.typing as npt

from planner.models.shape import ModelShape

Floats = npt.NDArray[np.float64]


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

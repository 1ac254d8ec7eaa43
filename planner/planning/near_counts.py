"""What to ask for where a number of GPUs divides nothing: the nearest numbers that do."""

from __future__ import annotations

import numpy as np

from planner.errors import Message
from planner.parallelism.search import FixedLayout, enumerate_layouts
from planner.planning.case import Case


def near_counts(case: Case, fixed: FixedLayout, gpus: int) -> Message:
    """The nearest numbers of whole nodes, from half to double, that divide the model and its batch, as a hint."""
    layouts = enumerate_layouts(case.recipe, case.cluster, fixed, gpus_between=(max(1, gpus // 2), 2 * gpus))
    counts = np.unique(layouts.gpus)
    near = [int(count) for count in (*counts[counts < gpus][-1:], *counts[counts > gpus][:1])]
    if len(near) == 2:
        return Message.of("hint.gpus_near", fewer=near[0], more=near[1])
    return Message.of("hint.gpus_only", gpus=near[0]) if near else Message.of("hint.more_divisors")

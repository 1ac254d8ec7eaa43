"""How the layers of a model split into the stages of a pipeline, and into the chunks of an interleaved one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ENDS = (0, 2)
"""Number of model ends that count as layers in interleaved stages: none, or both embedding and head. Multi-token
prediction modules count as layers themselves (DeepSeek-V3: `Et*2|(tt|)*29,t|mL`, 64 with both ends)."""


def even_chunks(layers: int, chunks: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether the layers split into equal chunks, as Megatron's interleaving requires, for each number of chunks.

    The model's ends may count as layers (`ENDS`).
    """
    even = np.any([(layers + ends) % chunks == 0 for ends in ENDS], axis=0)
    return np.asarray(even & (chunks <= layers + 2))


def needed_depth(layers: int, depths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the fewest stages whose fullest has no more layers than that of a pipeline of each depth, `[depth]`.

    Of 62 layers, each of 24 stages has up to 3, as each of 21 stages has: three stages more cost GPUs and save no time.
    """
    return np.asarray(-(-layers // -(-layers // depths)))

"""How a training step is spread over ranks: one file per strategy, listed here in the order of their value to a plan.

Listing the strategies does not import torch; building a step does.
"""

from __future__ import annotations

from probes.models.parallel.alone import Alone
from probes.models.parallel.cp import ContextParallel
from probes.models.parallel.ddp import Ddp
from probes.models.parallel.fsdp2 import Fsdp2
from probes.models.parallel.interface import Strategy
from probes.models.parallel.pipeline import Pipeline
from probes.models.parallel.tp import TensorParallel
from probes.models.parallel.tp_fsdp2 import TensorParallelFsdp2

STRATEGIES: tuple[Strategy, ...] = (
    Alone(),
    Ddp(),
    Fsdp2(id="alone-fsdp2", alone=True, metered=False),
    Fsdp2(),
    TensorParallel(id="alone-tp", alone=True),
    TensorParallel(),
    Pipeline(id="alone-pp", alone=True),
    Pipeline(),
    ContextParallel(),
    TensorParallelFsdp2(),
    Pipeline(id="pp-1f1b+ddp", ranks=2, least_world=4),
    Pipeline(id="pp-interleaved", vp=2),
    Ddp(recompute=True, metered=False),
)
"""All strategies; the first is the baseline of the others."""

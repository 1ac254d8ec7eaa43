"""One rank of the tests of this folder: takes three steps of every strategy and writes down what it saw.

Started with the number of ranks, the file to write, and the least number of ranks of the strategies that are taken.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from probes.device.clock import no_mark
from probes.memory.peaks import Baseline, peak_of
from probes.models.parallel import STRATEGIES
from probes.models.parallel.case import ParallelCase, case_of
from probes.models.parallel.interface import Strategy
from probes.models.parallel.mesh import mesh_of
from probes.precisions import recipe_by_id
from probes.ranks.join import place_from_environment
from probes.ranks.team import Team
from tests.probes.build import CPU
from tests.probes.ranks.forked import fork_ranks

STEPS = 3
NARROW = ("tp", "cp")
"""Strategies that send hidden states, which BF16 halves."""
WEIGHED = ("ddp", "fsdp2")
OPS = {
    "allreduce_": "all_reduce",
    "all_reduce": "all_reduce",
    "_allgather_base_": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "all_gather_single": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_single": "reduce_scatter",
    "send": "send_recv",
}
"""Operators of `c10d` and `_c10d_functional` to names of messages; receives belong to their sends."""
OTHERS = ("recv_", "wait_tensor", "_wrap_tensor_autograd")


def case_for(strategy: Strategy, world: int) -> ParallelCase:
    """As the probe takes it, but narrower and as flat as can be, with gradients for two buckets still."""
    case = case_of(world, on_gpu=False)
    layers = max(2, strategy.layout(world).stages)
    return replace(case, shape=replace(case.shape, hidden=128, ffn=256, vocab=2560), layers=layers, seq_len=16)


class Sent(TorchDispatchMode):
    """Counts what is sent, by operation and whole buffer of a rank."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented  # it is taken apart, and comes back as what it sends
        if "c10d" in func.namespace:
            self._count(func.__name__.split(".")[0], args)
        return func(*args, **(kwargs or {}))

    def _count(self, name: str, args: Any) -> None:
        if name in OTHERS:
            return
        tensors = [t for arg in args for t in (arg if isinstance(arg, list) else [arg]) if isinstance(t, torch.Tensor)]
        size_bytes = max(tensor.nbytes for tensor in tensors)
        if name.startswith("all_gather"):  # functional: the part goes in, the size of the group beside it
            size_bytes *= args[1]
        self.messages[f"{OPS[name]} {size_bytes}"] += 1


def taken(strategy: Strategy, case: ParallelCase, recipe: str, team: Team) -> dict[str, Any]:
    """What this rank saw of the steps of a strategy: losses, what the last step sent, memory."""
    step = strategy.build(case, recipe_by_id(recipe), team, CPU, 0)
    losses = [step.step(no_mark) for _ in range(STEPS - 1)]
    with Sent() as sent:
        losses.append(step.step(no_mark))
    peak_bytes = None
    if strategy.id in WEIGHED:
        peak_bytes = peak_of(CPU, step.step, before=Baseline(), held_bytes=step.held_bytes).allocated_peak_bytes
    return {
        "losses": [None if loss is None else float(loss) for loss in losses],
        "sent": dict(sent.messages),
        "held_bytes": step.held_bytes,
        "peak_bytes": peak_bytes,
    }


def main(path: str, least: int) -> None:
    """Take the steps; rank 0 writes what all saw."""
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    place = place_from_environment()
    assert place is not None
    dist.init_process_group("gloo")
    team = Team(place, "gloo")
    seen: dict[str, Any] = {}
    for strategy in [strategy for strategy in STRATEGIES if strategy.least_world >= least]:
        case = case_for(strategy, team.size)
        for recipe in ("fp32", "bf16-autocast") if strategy.id in NARROW else ("fp32",):
            if team.size >= strategy.least_world and strategy.unsupported(case, team.size) is None:
                name = f"{strategy.id} {recipe}{' recomputed' if strategy.recompute else ''}"
                seen[name] = team.gather(taken(strategy, case, recipe, team))
    seen["mesh"] = mesh_of(team, CPU, dp=team.size // 2, tp=2).mesh.tolist()
    if team.leads:
        with open(path, "w") as file:
            json.dump(seen, file)
    dist.destroy_process_group()


USED = ("torch.distributed.fsdp", "torch.distributed.pipelining", "torch.nn.attention.bias")
"""What strategies import."""

if __name__ == "__main__":
    sys.exit(max(map(abs, fork_ranks(int(sys.argv[1]), partial(main, sys.argv[2], int(sys.argv[3])), *USED))))

"""All layouts of a question and the best of them by nested loops, to hold `search.py` and `choice.py` against."""

from __future__ import annotations

from collections.abc import Iterator

from planner.hardware.cluster import Cluster
from planner.parallelism.layout import Layout
from planner.performance.evaluation import UnitPrices
from planner.rates.terms import Rates
from planner.training.recipe import Recipe
from tests.planner.brute_force import OneLayout


def all_layouts(recipe: Recipe, cluster: Cluster, gpus: int, ckpts: tuple[str, ...]) -> Iterator[Layout]:
    """Every layout on exactly `gpus` GPUs that the rules at the head of `search.py` allow."""
    model, seq, batch = recipe.model, recipe.seq_len, recipe.global_batch
    whole = model.params_total * 18 < cluster.gpu.memory_bytes
    near = cluster.gpus_per_node if cluster.nvlink_domain == 1 else cluster.nvlink_domain
    for tp in (t for t in (1, 2, 4, 8, 16) if t <= near and model.heads % t == 0):
        for cp in (c for c in (1, 2, 4, 8, 16, 32) if c == 1 or (seq / c >= 4096 and seq % c == 0)):
            for pp in range(1, min(model.layers, 128) + 1):
                even = model.layers % pp == 0 or -(-model.layers // 4) * 4 % pp == 0  # ends of the model as layers
                fullest = -(-model.layers // pp)
                spare = any(-(-model.layers // fewer) == fullest for fewer in range(1, pp))  # stages that save no time
                nearly = pp <= 32 and not spare and fullest * pp <= 1.18 * model.layers
                if not (even or nearly) or gpus % (tp * cp * pp):
                    continue
                dp = gpus // (tp * cp * pp)
                for vp in range(1, model.layers + 3):
                    for micro in range(1, 129):
                        yield from _finished(recipe, whole, tp, cp, pp, vp, dp, micro, batch, ckpts)


def _interleaves(layers: int, pp: int, vp: int, micro_batches: int) -> bool:
    if vp == 1:
        return True
    chunks = pp * vp
    listed = vp in (2, 4, 8) or (vp <= 24 and layers % vp == 0)
    even = any((layers + ends) % chunks == 0 for ends in (0, 2))
    return pp > 1 and listed and even and chunks <= layers + 2 and micro_batches % pp == 0


def _finished(
    recipe: Recipe,
    whole: bool,
    tp: int,
    cp: int,
    pp: int,
    vp: int,
    dp: int,
    micro: int,
    batch: int,
    ckpts: tuple[str, ...],
) -> Iterator[Layout]:
    model, seq = recipe.model, recipe.seq_len
    if batch % (dp * micro) or not _interleaves(model.layers, pp, vp, batch // (dp * micro)):
        return
    if seq >= 8192 and micro * (seq // cp) > 262144:
        return
    for ep in range(1, 129):
        if (model.experts and model.experts % ep) or (not model.experts and ep > 1) or (tp * cp * dp) % ep:
            continue
        fsdp = (1, 3) if recipe.stack == "tuned" else (1, 2, 3)
        stages = fsdp if pp == 1 else (1,)
        if dp * cp == 1:  # 2 and 3 send gradients and parameters to the host, sharded or not
            stages = (0, *(zero for zero in stages if zero > 1 and recipe.offload == "optimizer"))
        for zero in (0, *stages) if whole and dp * cp > 1 else stages:
            for ckpt in ckpts:
                yield Layout(
                    tp=tp, pp=pp, vp=vp, cp=cp, ep=ep, dp=dp, zero=zero, micro_batch=micro,
                    grad_accum=batch // (dp * micro), act_ckpt=ckpt,
                )  # fmt: skip


def fastest(
    recipe: Recipe, cluster: Cluster, gpus: int, rates: Rates, ckpts: tuple[str, ...]
) -> tuple[float, list[Layout]]:
    """Seconds per step of the fastest that fits, and the layouts that take as long."""
    timed = []
    for where in all_layouts(recipe, cluster, gpus, ckpts):
        computed = OneLayout(recipe, cluster, where, rates)
        if sum(computed.memory().values()) <= cluster.gpu.memory_bytes - 0.55 * 2**30:  # what the driver keeps
            timed.append((sum(computed.step().values()), where))
    if not timed:
        return float("inf"), []
    least = min(seconds for seconds, _ in timed)
    return least, [where for seconds, where in timed if seconds <= least * (1 + 1e-9)]


def wall_s(recipe: Recipe, cluster: Cluster, where: Layout, rates: Rates, prices: UnitPrices, tokens: float) -> float:
    """Wall time of a run in one layout."""
    return OneLayout(recipe, cluster, where, rates).run(prices, tokens)["wall_s"]

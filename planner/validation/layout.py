"""Convert a published run's layout columns to layouts: fixed by the row where stated, else candidates."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from planner.errors import Message, UsageError
from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.parallelism.layout import Layout, Layouts
from planner.parallelism.search import FixedLayout, divisors, enumerate_layouts
from planner.training.recipe import ACT_CKPT, Recipe
from planner.validation.columns import Sharding, parse_sharding
from planner.validation.defaults import Filled
from planner.validation.model import CannotPredictError
from planner.validation.runs import PublishedRun

LONG_SEQUENCE = 32768
"""Sequence length above which sequences are trained one at a time, so that no other micro-batch is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialLayout:
    """The known part of a run's layout, after the framework's defaults."""

    gpus: int
    zero: int
    sharding: Sharding | None
    """The row's statement on ZeRO or FSDP."""
    act_ckpt: str | None
    tp: int | None
    pp: int | None
    vp: int | None
    cp: int | None
    ep: int | None
    micro_batch: int | None
    grad_accum: int | None


def data_parallel(partial: PartialLayout) -> int:
    """Return GPUs over `tp * pp * cp`.

    Raises:
        CannotPredictError: the product does not divide the GPUs.
    """
    inner = (partial.tp or 1) * (partial.pp or 1) * (partial.cp or 1)
    if partial.gpus % inner:
        raise CannotPredictError(f"layout: tp x pp x cp = {inner} does not divide {partial.gpus} GPUs")
    return partial.gpus // inner


def _micro_batches(partial: PartialLayout, per_rank: float) -> list[int]:
    if partial.micro_batch:
        return [partial.micro_batch]
    if partial.grad_accum:
        return [max(1, round(per_rank / partial.grad_accum))]
    whole = max(1, round(per_rank))
    return [m for m in divisors(whole) if m <= 1024]


def replicas(partial: PartialLayout, dp: int, cp: int, tp: int, ep: int) -> int:
    """Return the copies of the states: more than one where ZeRO shards only inside groups, and these come out even.

    A degree (`fsdp2-8`) counts data-parallel ranks; the context-parallel ranks of each shard with them (torchtitan).
    """
    ranks = dp * cp
    sharding = partial.sharding
    if sharding is None or sharding.group is None or partial.zero == 0 or ep > 1:
        return 1
    inside = max(1, sharding.group // tp) if sharding.in_gpus else sharding.group * cp
    return ranks // inside if inside < ranks and ranks % inside == 0 else 1


def _chunks(recipe: Recipe, partial: PartialLayout, pp: int, filled: Filled) -> list[int]:
    """Return the candidate layer chunks per stage: as stated, else all even ones for a tuned stack's pipeline."""
    layers = recipe.model.layers
    if partial.vp is not None or pp == 1 or recipe.kernels != "tuned" or layers % pp:
        vp = partial.vp or 1
        return [vp if pp > 1 and vp * pp <= layers + 2 else 1]
    filled.take("vp", as_="the fastest that fits")
    return divisors(layers // pp)


def stated_layouts(recipe: Recipe, partial: PartialLayout, filled: Filled) -> Layouts:
    """Return the candidates where tp and pp are known; `grad_accum` follows from the batch.

    Raises:
        CannotPredictError: the layout contradicts itself.
    """
    dp = data_parallel(partial)
    tp, pp, cp = partial.tp or 1, partial.pp or 1, partial.cp or 1
    model = recipe.model
    eps = [partial.ep or 1]
    if model.experts and partial.ep is None:
        eps = [e for e in divisors(model.experts) if (tp * cp * dp) % e == 0]
        filled.take("ep", as_="the fastest that fits")
    elif model.experts and (tp * cp * dp) % eps[0]:
        raise CannotPredictError(f"layout: ep {eps[0]} does not divide the {tp * cp * dp} GPUs of a pipeline stage")
    per_rank = recipe.global_batch / dp
    micro = _micro_batches(partial, per_rank)
    if len(micro) > 1:
        filled.take("micro_batch", as_="the fastest that fits")
    ckpts = [partial.act_ckpt] if partial.act_ckpt else list(ACT_CKPT)
    chunks = _chunks(recipe, partial, pp, filled)
    # A single rank shards nothing, but where FSDP's policy computes with gathered copies, it still makes those.
    zero = partial.zero if dp * cp > 1 or (partial.zero == 3 and not recipe.policy.weight_bytes) else 0
    candidates = []
    for ep, mb, ckpt, vp in product(eps, micro, ckpts, chunks):
        # If micro-batches do not divide the batch, take the nearest even split: 20 in steps of 8 is three of 7.
        accum = max(1, -(-round(per_rank) // mb))
        even = max(1, round(per_rank / accum))
        if vp > 1 and partial.vp is None and accum % pp:
            continue  # interleaving processes groups of pp micro-batches
        layout = Layout(
            tp=tp, pp=pp, vp=vp, cp=cp, ep=ep, dp=dp, zero=zero, micro_batch=even, grad_accum=accum, act_ckpt=ckpt,
            replicas=replicas(partial, dp, cp, tp, ep),
        )  # fmt: skip
        candidates.append(layout)
    return Layouts.of(*candidates)


def searched_layouts(recipe: Recipe, cluster: Cluster, partial: PartialLayout, filled: Filled) -> Layouts:
    """Return all layouts of the planner's own search that keep what the row fixes.

    Raises:
        CannotPredictError: no layout is consistent.
    """
    open_axes = [name for name in ("tp", "pp", "micro_batch") if getattr(partial, name) is None]
    filled.take(*open_axes, as_="chosen by the layout search")
    micro = 1 if recipe.seq_len > LONG_SEQUENCE and partial.micro_batch is None else partial.micro_batch
    fixed = FixedLayout(
        tp=partial.tp, pp=partial.pp, vp=partial.vp, cp=partial.cp, ep=partial.ep, micro_batch=micro,
        act_ckpt=partial.act_ckpt, zero=partial.zero if partial.zero != 1 else None,
    )  # fmt: skip
    # If the batch does not divide, take the nearest that does: whole sequences for groups of 8 GPUs, then for each.
    group = partial.gpus // 8 if partial.gpus % 8 == 0 else partial.gpus
    nearest = [max(1, round(recipe.global_batch / step)) * step for step in (1, group, partial.gpus)]
    refusal: str | Message = f"no split of {recipe.global_batch} sequences over {partial.gpus} GPUs is even"
    for batch in dict.fromkeys(nearest):
        try:
            layouts = enumerate_layouts(replace(recipe, global_batch=batch), cluster, fixed, gpus=partial.gpus)
        except UsageError as error:
            refusal = error.message
            continue
        if len(layouts):
            return layouts
    raise CannotPredictError(Message.of("skipped.layout", reason=refusal))


def partial_layout(run: PublishedRun, gpus: int, zero: int, act_ckpt: str | None, *, splits: bool) -> PartialLayout:
    """Return the row's own layout; with `splits` the framework's pipeline splits the local batch.

    It then makes as many micro-batches as there are stages (torchtitan's default for `pipeline_parallel_microbatches`).
    """
    stages, micro_batch = run.pp or 1, run.micro_batch or 0
    local = splits and stages > 1 and micro_batch >= stages
    return PartialLayout(
        gpus=gpus,
        zero=zero,
        sharding=parse_sharding(run.zero_or_fsdp_stage),
        act_ckpt=act_ckpt,
        tp=run.tp,
        pp=run.pp,
        vp=run.vp,
        cp=run.cp,
        ep=run.ep,
        micro_batch=micro_batch // stages if local else run.micro_batch,
        grad_accum=None if local else run.grad_accum,
    )

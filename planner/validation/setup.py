"""Prepare a published run for evaluation (`Prepared`), with documented defaults for what its row leaves open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from planner.errors import UsageError
from planner.hardware.cluster import Cluster
from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layout, Layouts
from planner.parallelism.routing import settled_dispatcher
from planner.performance.evaluation import UnitPrices, memory_of, score
from planner.question.question import overlaps_tensor_parallel
from planner.rates.ladder import resolve_rates
from planner.rates.parameters import Parameters, shipped_parameters
from planner.rates.terms import Rates
from planner.training.adapters import LORA_TARGETS
from planner.training.frameworks import Framework
from planner.training.lengths import Lengths
from planner.training.optimizer import Optimizer
from planner.training.optimizers import find_optimizer
from planner.training.precision import PrecisionPolicy
from planner.training.recipe import LORA_RANK, LOSSES, TRAINED_LAYERS, Recipe
from planner.validation.columns import YES, parse_ckpt, parse_sharding
from planner.validation.defaults import Default, Filled
from planner.validation.layout import (
    PartialLayout,
    data_parallel,
    partial_layout,
    searched_layouts,
    stated_layouts,
)
from planner.validation.machine import cluster_of, note_meter
from planner.validation.model import CannotPredictError, model_of
from planner.validation.runs import PublishedRun, Rejected, once_for_alike
from planner.validation.software import (
    POWERS,
    attention_of,
    drops_out,
    framework_of,
    loss_of,
    method_of,
    mtp_layers_of,
    policy_of,
    stack_of,
)
from planner.validation.text_patterns import NOT_A_GPU, software_year

TOTALS = ("gpu_hours", "time_to_train_min", "energy_mwh")
"""Metrics of a whole run, which need its number of tokens."""
TASK_HEAD_RATIO = 1e-4
"""Output layer of a classification task over a vocabulary's: two or three classes over a vocabulary of 30 522."""
RAN_RATIO = 1.25
"""A published run did fit: a candidate is ruled out only if it exceeds the memory by more than the model's error."""
NO_PRICES = UnitPrices(usd_per_gpu_h=None, usd_per_kwh=None, pue=1.0, kg_co2e_per_kwh=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run ready to be evaluated, with everything that does not depend on the rates."""

    run: PublishedRun
    recipe: Recipe
    cluster: Cluster
    layouts: Layouts
    """Exactly one layout."""
    framework: Framework
    filled: tuple[Default, ...]
    """Defaults taken for what the row leaves open."""
    tokens: float
    """Tokens of the whole run; those of one step where the length does not matter."""
    batch_scale: float
    """The row's global batch over the evenly divided batch that is evaluated; 1 where it divides."""
    nominal_ratio: float
    """The row's sequence length over the mean length that is evaluated; above 1 where padding is left out."""


def prepare_run(run: PublishedRun, parameters: Parameters | None = None) -> Prepared | Rejected:
    """Set up one run, or return the reason why it cannot be predicted.

    Args:
        run: run as published.
        parameters: parameters by which an open layout is chosen; None: the shipped ones.
    """
    try:
        return _prepare(run, parameters or shipped_parameters())
    except CannotPredictError as error:
        return Rejected(id=run.id, reason=error.args[0], metric=run.metric)
    except UsageError as error:
        return Rejected(id=run.id, reason=error.message, metric=run.metric)


def prepare(runs: Iterable[PublishedRun | Rejected], parameters: Parameters | None = None) -> list[Prepared | Rejected]:
    """Set up runs in their order, as in `prepare_run`; rejected runs stay rejected."""
    return once_for_alike(runs, lambda run: prepare_run(run, parameters), lambda done, run: replace(done, run=run))


def _prepare(run: PublishedRun, parameters: Parameters) -> Prepared:
    filled = Filled()
    if NOT_A_GPU.says(run.gpu):
        raise CannotPredictError(f"gpu: {run.gpu} is not a GPU")
    cluster = cluster_of(run, filled, parameters)
    note_meter(run, filled)
    framework = framework_of(run, cluster.gpu)
    policy = policy_of(run, framework, cluster.gpu, filled)
    model = _task_model(run, model_of(run, filled))
    seq_len = 1 if model.has_network else _seq_len(run, model, filled)
    tokens = run.tokens_total
    if tokens is None and run.metric in TOTALS:
        raise CannotPredictError("tokens_total: blank")
    if run.n_gpus is None:
        raise CannotPredictError("n_gpus: blank")
    mean_len = _mean_length(run, model, framework, seq_len, filled)
    recipe = _recipe(run, cluster, model, policy, framework, mean_len, filled)
    recipe, partial = _batch(run, recipe, run.n_gpus, framework, filled)
    layouts = _choose(recipe, cluster, partial, filled, parameters, open_ckpt=not run.act_ckpt)
    layout = layouts.at(0)
    batch = layout.dp * layout.micro_batch * layout.grad_accum
    scale = recipe.global_batch / batch
    return Prepared(
        run=run,
        recipe=replace(recipe, global_batch=batch),
        cluster=cluster,
        layouts=_alone(layout),
        framework=framework,
        filled=tuple(filled),
        tokens=tokens or recipe.tokens_per_step,
        batch_scale=scale,
        nominal_ratio=seq_len / mean_len,
    )


@lru_cache(maxsize=4096)
def _alone(layout: Layout) -> Layouts:
    """Return one layout as arrays of its own.

    A slice would keep the arrays of all searched layouts alive; through the cache, the rows of a sweep share theirs.
    """
    return Layouts.of(layout)


def _task_model(run: PublishedRun, model: ModelShape) -> ModelShape:
    """Give a fine-tuned encoder the small output layer of its task instead of the vocabulary's."""
    if model.kind != "encoder" or run.method in ("", "pretrain"):
        return model
    return replace(model, head_ratio=TASK_HEAD_RATIO)


def _seq_len(run: PublishedRun, model: ModelShape, filled: Filled) -> int:
    if run.seq_len:
        return run.seq_len
    if run.metric in POWERS:
        filled.take("seq_len", as_=str(model.context))
        return model.context
    raise CannotPredictError("seq_len: blank")


UNPADDED_SHARE = ((128, 0.84), (512, 0.50))
"""Mean over longest length of BERT's Wikipedia sequences, by the longest length (Krell et al., arXiv 2107.02027)."""
BINNED_SHARE = ((128, 0.89), (512, 0.55))
"""`UNPADDED_SHARE` after padding to bins of an eighth (a quarter at 128): half a bin more for sequences not full."""


def _mean_length(run: PublishedRun, model: ModelShape, framework: Framework, seq_len: int, filled: Filled) -> int:
    """Return the computed tokens per sequence: encoders are pre-trained on sentences, most shorter than the maximum."""
    shares = {"binned": BINNED_SHARE, "unpadded": UNPADDED_SHARE}.get(framework.padding)
    if shares is None or model.kind != "encoder" or run.method not in ("", "pretrain"):
        return seq_len
    ends, values = zip(*shares, strict=True)
    mean = round(seq_len * float(np.interp(seq_len, ends, values)))
    filled.take("mean sequence", as_=f"{mean} of {seq_len} tokens, {framework.padding}")
    return mean


def _recipe(
    run: PublishedRun,
    cluster: Cluster,
    model: ModelShape,
    policy: PrecisionPolicy,
    framework: Framework,
    seq_len: int,
    filled: Filled,
) -> Recipe:
    attention = attention_of(run, framework, model)
    if not run.attention and not model.has_network:
        filled.take("attention", as_=attention)
    stack = stack_of(run, framework)
    filled.take("stack", as_=stack)
    method = method_of(run)
    further = mtp_layers_of(run, model, method, stack)
    if further and run.mtp_layers is None:
        filled.take("mtp_layers", as_=str(further))
    loss = loss_of(run, framework)
    return Recipe(
        model=replace(model, mtp_layers=further).unrolled(),
        policy=policy,
        optimizer=_optimizer(run, model, framework),
        offload=run.offload or "none",
        chunked_loss=loss != LOSSES[0],
        fused_head=loss == "fused",
        update_in_backward=run.in_backward in YES,
        method=method.id,
        seq_len=seq_len,
        global_batch=1,
        stack=stack,
        attention=attention,
        sequence_parallel=framework.sequence_parallel,
        dropout=drops_out(framework, model),
        software_year=software_year(run.framework),
        tp_overlap=overlaps_tensor_parallel(stack, cluster.gpu) if framework.planned else framework.tp_overlap,
        moe_dispatcher=settled_dispatcher(None, stack, cluster.gpu, policy, software_year(run.framework)),
        channels_last=framework.channels_last,
        balances_stages=framework.balances_stages,
        lora_rank=run.lora_rank or LORA_RANK,
        lora_targets=_lora_targets(run, framework),
        trained_layers=run.trained_layers or TRAINED_LAYERS,
        lengths=_lengths(run, seq_len),
    )


def _lora_targets(run: PublishedRun, framework: Framework) -> str:
    targets = run.lora_targets or framework.lora_targets
    if targets not in LORA_TARGETS:
        raise CannotPredictError(f"lora_targets: unknown `{targets}`; known are {', '.join(LORA_TARGETS)}")
    return targets


def _lengths(run: PublishedRun, seq_len: int) -> Lengths | None:
    """Return the lengths of examples padded to the longest of their micro-batch; None where sequences are full."""
    if run.mean_tokens is None or run.mean_tokens == seq_len:
        return None
    if not 1 <= run.mean_tokens < seq_len:
        raise CannotPredictError(f"mean_tokens: {run.mean_tokens:g} is not between 1 and seq_len {seq_len}")
    return Lengths.around(run.mean_tokens, seq_len)


def _optimizer(run: PublishedRun, model: ModelShape, framework: Framework) -> Optimizer:
    if run.optimizer:
        return find_optimizer(run.optimizer)
    return framework.optimizer if model.network is None else find_optimizer(model.network.usual_optimizer)


def _batch(
    run: PublishedRun, recipe: Recipe, gpus: int, framework: Framework, filled: Filled
) -> tuple[Recipe, PartialLayout]:
    """Return the recipe with its global batch, and the known part of the layout."""
    sharding = parse_sharding(run.zero_or_fsdp_stage)
    zero = sharding.stage if sharding else framework.zero
    if sharding is None and gpus > 1:
        filled.take("zero", as_=str(zero))
    ckpt = parse_ckpt(run.act_ckpt) or framework.act_ckpt
    if recipe.model.has_network:
        ckpt = "none"
    elif not run.act_ckpt:
        filled.take("act_ckpt", as_=ckpt or "the least that fits")
    partial = partial_layout(run, gpus, zero, ckpt, splits=framework.pipeline_splits_batch)
    if partial.micro_batch != run.micro_batch:
        taken = f"{partial.micro_batch}, the pipeline splits the local batch of {run.micro_batch}"
        filled.take("micro_batch", as_=taken)
    alone = gpus == 1 or recipe.model.has_network
    splits_nothing = not recipe.fused or (sharding is not None and sharding.stage == 3)  # FSDP, no stated tp or pp
    if alone or (splits_nothing and run.tp is None and run.pp is None):
        partial = replace(partial, tp=partial.tp or 1, pp=partial.pp or 1)
    batch = run.global_batch_seqs
    if batch is None and run.micro_batch:
        dp = gpus // ((partial.tp or 1) * (partial.pp or 1) * (partial.cp or 1))
        batch = float(max(1, dp) * run.micro_batch * (run.grad_accum or 1))
        if not run.grad_accum:
            filled.take("grad_accum", as_="1")
    if batch is None:
        raise CannotPredictError("batch: neither global_batch_seqs nor micro_batch is given")
    return replace(recipe, global_batch=max(1, round(batch))), partial


def _choose(
    recipe: Recipe,
    cluster: Cluster,
    partial: PartialLayout,
    filled: Filled,
    parameters: Parameters,
    *,
    open_ckpt: bool,
) -> Layouts:
    """Return the one layout that is evaluated: the fastest that fits of those that the row allows.

    Layouts with few layer chunks per stage are preferred. Where the row leaves checkpointing open and nothing fits with
    the framework's default, full checkpointing is assumed. Where the row leaves sharding open, the lowest ZeRO stage
    that fits is assumed.
    """
    rates = resolve_rates(cluster, recipe, None, parameters).sample()
    weaker = open_ckpt and not recipe.model.has_network and partial.act_ckpt not in (None, "full")
    if partial.tp is None or partial.pp is None:
        layouts = searched_layouts(recipe, cluster, partial, filled)
    else:
        if partial.sharding is None and not weaker:
            partial = _sharded_to_fit(recipe, cluster, partial, filled, rates)
        layouts = stated_layouts(recipe, partial, filled)
    if len(layouts) == 1 and not weaker:
        return layouts
    memory_bytes = np.asarray(memory_of(recipe, layouts, rates).total)
    fits = np.flatnonzero(memory_bytes <= RAN_RATIO * cluster.gpu.memory_bytes)
    if weaker and not len(fits):
        filled.take("act_ckpt", as_="full, for the framework's default does not fit")
        return _choose(recipe, cluster, replace(partial, act_ckpt="full"), filled, parameters, open_ckpt=False)
    if not len(fits):
        best = int(np.argmin(memory_bytes))
        return layouts.take(slice(best, best + 1))
    fitting = layouts.take(fits)
    if len(fitting) == 1:
        return fitting
    scores = score(recipe, cluster, fitting, rates, NO_PRICES, recipe.tokens_per_step)
    speed = scores.step_s * recipe.global_batch / (fitting.dp * fitting.micro_batch * fitting.grad_accum)
    chunks = np.where(speed <= WORTH_CHUNKS * speed.min(), fitting.vp, np.iinfo(np.int64).max)
    best = int(np.lexsort((speed, chunks))[0])
    return fitting.take(slice(best, best + 1))


WORTH_CHUNKS = 1.02
"""Step time over the fastest up to which a layout with fewer layer chunks is preferred: chunks hold more activations,
so nobody uses them for a smaller gain."""


def _sharded_to_fit(
    recipe: Recipe, cluster: Cluster, partial: PartialLayout, filled: Filled, rates: Rates
) -> PartialLayout:
    """Return the layout with the lowest ZeRO stage that fits, from the framework's default upwards.

    A published run did fit.

    Where none fits, the layout is returned unchanged.
    """
    only_optimizer = (partial.pp or 1) > 1 or _before_megatron_fsdp(recipe)
    most = partial.zero if data_parallel(partial) == 1 else MOST_ZERO_OF_STAGES if only_optimizer else MOST_ZERO
    for zero in range(partial.zero, most + 1):
        sharded = replace(partial, zero=zero)
        least_bytes = np.min(memory_of(recipe, stated_layouts(recipe, sharded, Filled()), rates).total)
        if least_bytes <= cluster.gpu.memory_bytes:
            if zero > partial.zero:
                filled.take("zero", as_=f"{zero}, the least that fits")
            return sharded
    return partial


def _before_megatron_fsdp(recipe: Recipe) -> bool:
    """Whether a tuned stack is of a release that shards optimizer states only (Megatron-Core's FSDP came in 2025)."""
    return recipe.stack == "tuned" and recipe.software_year is not None and recipe.software_year < MEGATRON_FSDP_YEAR


MEGATRON_FSDP_YEAR = 2025.0
"""Decimal year before which no release of Megatron-Core shards gradients or weights: of its wheels on PyPI, that of
0.10 (February 2025) is the first with `megatron/core/distributed/torch_fully_sharded_data_parallel.py`."""
MOST_ZERO = 3
MOST_ZERO_OF_STAGES = 1
"""Highest ZeRO stage under a pipeline, which needs whole gradients until its end: only optimizer states are sharded."""

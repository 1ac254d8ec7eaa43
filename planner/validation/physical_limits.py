"""Detect values that no hardware can give: FLOP/s above a card's peak, memory above its size, power above its limit."""

from __future__ import annotations

from planner.errors import Message
from planner.performance.evaluation import flop_of
from planner.units import GIB, HOUR_S, MINUTE_S, TERA
from planner.validation.flop_convention import counted_flop_per_token, counts_recompute, peak_of_convention
from planner.validation.predict import counted_tokens_ratio
from planner.validation.runs import PublishedResult, Rejected
from planner.validation.setup import Prepared

WINOGRAD_RATIO = 4.0
"""Multiplications of a 3 x 3 convolution over those of its fastest algorithm (Lavin & Gray, arXiv 1509.09308)."""
MEMORY_MARGIN_RATIO = 1.02
"""Tolerance of peak memory: cards of one name differ by this much in the memory that they report."""

HARDWARE = "hardware FLOP (recomputation counted), attention halved"
"""Convention that counts the FLOP which a card computes."""
POWER_MARGIN_RATIO = 1.05
"""Tolerance of a card's mean power over the limit that it is sold with, or a higher limit that was set: the error of
power meters."""
LOWERED_MARGIN_RATIO = 1.25
"""Tolerance over a lower limit that was set: near the lowest power of a card it is kept only roughly (an A40 limited to
100 W takes 119 W, `zeus-0038`)."""

SAME_BATCH_RATIO = 1e-6
"""Tolerance within which two batches are equal: it covers floating-point error only."""


def model_flop_per_s(prepared: Prepared, value: float) -> float | None:
    """Return the model FLOP/s per GPU that a value implies, without recomputation; None for a metric other than speed.

    Args:
        prepared: the run, set up.
        value: value in the unit of the run's metric; above 0.
    """
    run, recipe, layout = prepared.run, prepared.recipe, prepared.layouts.at(0)
    flop, gpus = flop_of(recipe), float(prepared.layouts.gpus[0])
    step_flop = flop * recipe.tokens_per_step / gpus
    run_flop = flop * prepared.tokens / counted_tokens_ratio(prepared) / gpus
    if run.metric in ("tflops_per_gpu", "mfu"):
        unit = TERA if run.metric == "tflops_per_gpu" else peak_of_convention(
            run.flops_convention, recipe, prepared.cluster.gpu
        )  # fmt: skip
        return value * unit * flop / counted_flop_per_token(run.flops_convention, recipe, layout.act_ckpt)
    return {
        "tokens_per_s_per_gpu": value * flop / counted_tokens_ratio(prepared),
        "samples_per_s": value * step_flop / recipe.global_batch,
        "step_time_s": step_flop * prepared.batch_scale / value,
        "gpu_hours": run_flop * gpus / (value * HOUR_S),
        "time_to_train_min": run_flop / (value * MINUTE_S),
    }.get(run.metric)


def why_impossible(prepared: Prepared, value: float) -> Message | None:
    """Return why no run of this configuration can have measured a value; None where it is possible.

    A speed is refused above the dense peak of the run's precision. Recomputation is counted where the run states how
    much it recomputes; otherwise only model FLOP are counted. Peak memory is refused above the card's memory, and the
    mean power of a GPU above its limit.

    Args:
        prepared: the run, set up.
        value: value in the unit of the run's metric; above 0.
    """
    gpu, recipe = prepared.cluster.gpu, prepared.recipe
    if prepared.run.metric == "peak_mem_gib":
        has_gib = gpu.memory_bytes / GIB
        if value <= MEMORY_MARGIN_RATIO * has_gib:
            return None
        return Message.of("skipped.above_memory", value=value, gpu=gpu.id, has_gib=has_gib)
    if prepared.run.metric == "avg_gpu_power_w":
        return _above_limit(prepared, value)
    needed, compute = model_flop_per_s(prepared, value), recipe.policy.linear_compute
    peak = gpu.reachable_flop_per_s[compute]
    hardware_ratio = _recomputed_ratio(prepared)
    if needed is None or needed * hardware_ratio <= peak * (WINOGRAD_RATIO if recipe.model.has_network else 1.0):
        return None
    key = "skipped.above_peak" if hardware_ratio == 1.0 else "skipped.above_peak_recomputed"
    return Message.of(
        key, value=value, metric=prepared.run.metric, needed_tflops=needed * hardware_ratio / TERA, gpu=gpu.id,
        peak_tflops=peak / TERA, compute=compute.upper(),
    )  # fmt: skip


def why_no_such_batch(prepared: Prepared) -> Message | None:
    """Return why the row's batch is impossible on its GPUs; None where it is possible.

    It is impossible with fewer sequences than one micro-batch on each rank. Two published rows state such a batch
    (NeMo's long sequences), so only a user's own rows are checked.
    """
    run, layout = prepared.run, prepared.layouts.at(0)
    least = layout.dp * (run.micro_batch or 1)
    if run.global_batch_seqs is None or run.global_batch_seqs >= least:
        return None
    key = "skipped.batch_of_ranks" if run.micro_batch is None else "skipped.batch_of_micro_batches"
    return Message.of(key, ranks=layout.dp, micro_batch=run.micro_batch or 1, least=least, batch=run.global_batch_seqs)


def why_uneven_batch(prepared: Prepared) -> Message | None:
    """Return that the batch does not divide over the GPUs, with the batch predicted instead; None where it divides."""
    run, layout = prepared.run, prepared.layouts.at(0)
    taken = layout.dp * layout.micro_batch * layout.grad_accum
    if run.global_batch_seqs is None or abs(run.global_batch_seqs / taken - 1.0) < SAME_BATCH_RATIO:
        return None
    return Message.of("skipped.batch_uneven", ranks=layout.dp, batch=run.global_batch_seqs, taken=taken)


def _recomputed_ratio(prepared: Prepared) -> float:
    """Return hardware FLOP over model FLOP; 1 where the run does not state what it recomputes."""
    run, recipe = prepared.run, prepared.recipe
    if recipe.model.has_network or not (run.act_ckpt or counts_recompute(run.flops_convention)):
        return 1.0
    model, hardware = (
        counted_flop_per_token(convention, recipe, prepared.layouts.at(0).act_ckpt) for convention in ("", HARDWARE)
    )
    return hardware / model


def _above_limit(prepared: Prepared, value_w: float) -> Message | None:
    gpu, given_w = prepared.cluster.gpu, prepared.cluster.power_limit_w
    limit_w = given_w or gpu.tdp_w
    most_w = POWER_MARGIN_RATIO * max(limit_w, gpu.tdp_w)
    if given_w is not None:
        most_w = min(most_w, LOWERED_MARGIN_RATIO * given_w)
    if value_w <= most_w:
        return None
    return Message.of("skipped.above_power", value=value_w, gpu=gpu.id, limit_w=limit_w)


def checked(prepared: Prepared | Rejected, result: PublishedResult | Rejected) -> PublishedResult | Rejected:
    """Return the result of a row, or a rejection where it is impossible; flagged rows, never scored, are unchanged."""
    if isinstance(prepared, Rejected) or isinstance(result, Rejected) or not result.value or prepared.run.flag:
        return result
    reason = why_impossible(prepared, result.value)
    return result if reason is None else Rejected(id=result.id, reason=reason, metric=prepared.run.metric)

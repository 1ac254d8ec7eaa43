"""The basis for a log's figures: model, GPU, batch and precision, from flags, the log or the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from planner.comparison.planned import Planned
from planner.hardware.catalogue import find_gpu
from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.models.shape import ModelShape
from planner.runlog.log import RunLog
from planner.training.lengths import Lengths
from planner.training.method import PRETRAIN, Method, find_method
from planner.training.optimizers import find_optimizer
from planner.training.policies import default_policy
from planner.training.recipe import Recipe
from planner.validation.defaults import Filled
from planner.validation.model import CannotPredictError, model_of
from planner.validation.runs import PublishedRun

T = TypeVar("T")

MFU_INPUTS = ("model", "gpu", "gpus", "seq_len", "global_batch", "precision")
"""Names of the inputs from which an MFU is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Values that the user gives; None where they do not."""

    model: ModelShape | None = None
    gpu: Gpu | None = None
    gpus: int | None = None
    seq_len: int | None = None
    global_batch: int | None = None
    precision: str | None = None
    price_usd_per_gpu_h: float | None = None
    method: str | None = None
    """Id of a training method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Settled inputs of a comparison; None where no source has a value."""

    model: ModelShape | None
    gpu: Gpu | None
    gpus: int | None
    seq_len: int | None
    global_batch: int | None
    """Sequences per step: the log's median. Both sequences of a pair of answers count."""
    precision: str | None
    act_ckpt: str | None
    method: str
    """Id of the training method; pre-training where no source has one."""
    recipe: Recipe | None
    """The trained recipe with its sequence lengths; None without a model or a sequence length."""
    sources: dict[str, str]
    """Source (`flag`, `log` or `plan`) of each known input, by name."""
    differs: tuple[str, ...]
    """Names of the inputs for which the log, or the user, differs from the plan."""

    tokens_per_sequence: float | None
    """Mean tokens of a sequence without padding; None where its length is unknown."""

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens per step over all GPUs, without padding."""
        if self.tokens_per_sequence is None or self.global_batch is None:
            return None
        return self.tokens_per_sequence * self.global_batch

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the inputs that an MFU lacks."""
        return tuple(name for name in MFU_INPUTS if getattr(self, name) is None)


def precision_of(log: RunLog) -> str | None:
    """Return the precision that the log's settings name; `--fp8-format` beside `--bf16` is FP8."""
    if "fp8" in log.facts:
        return "fp8"
    stated = log.facts.get("precision")
    return stated if isinstance(stated, str) else None


def settle(log: RunLog, planned: Planned | None, given: Given) -> Basis:
    """Settle each input: the user's value before the log's, and the log's before the plan's."""
    sources: dict[str, str] = {}
    differs: list[str] = []

    def first(name: str, flagged: T | None, logged: T | None, plan: Callable[[Planned], T | None]) -> T | None:
        expected = None if planned is None else plan(planned)
        for source, value in (("flag", flagged), ("log", logged), ("plan", expected)):
            if value is not None:
                sources[name] = source
                if source != "plan" and expected is not None and value != expected:
                    differs.append(name)
                return value
        return None

    logged = _whole(log, "seq_len")
    act_ckpt = log.facts.get("act_ckpt")
    method = first("method", given.method, None, lambda p: p.recipe.method) or PRETRAIN
    model = _model(log, planned, given, sources)
    seq_len = first("seq_len", given.seq_len, logged, lambda p: p.recipe.seq_len)
    batch = batch_of(log, logged, find_method(method))
    global_batch = first("global_batch", given.global_batch, batch, lambda p: p.recipe.global_batch)
    precision = first("precision", given.precision, precision_of(log), lambda p: str(p.plan["precision"]))
    other = ("model",) if given.model is None and planned is not None and _is_other_model(log, planned) else ()
    recipe = None
    if model is not None and seq_len is not None:
        recipe = _recipe(planned, model.unrolled(), method, precision, seq_len, global_batch or 1)
    return Basis(
        model=model,
        gpu=first("gpu", given.gpu, None, lambda p: find_gpu(p.plan["gpu"])),
        gpus=first("gpus", given.gpus, gpus_of(log), lambda p: int(p.plan["gpus"])),
        seq_len=seq_len,
        global_batch=global_batch,
        precision=precision,
        act_ckpt=first(
            "act_ckpt", None, act_ckpt if isinstance(act_ckpt, str) else None,
            lambda p: str((p.plan.get("layout") or {}).get("act_ckpt") or "") or None,
        ),
        method=method,
        recipe=recipe,
        tokens_per_sequence=recipe.mean_len if recipe is not None else None if seq_len is None else float(seq_len),
        sources=sources,
        differs=(*other, *(name for name in differs if name != "act_ckpt")),
    )  # fmt: skip


def _recipe(
    planned: Planned | None, model: ModelShape, method: str, precision: str | None, seq_len: int, global_batch: int
) -> Recipe:
    """Return the recipe of the run: the plan's, except where the run differs; without a plan, with full sequences.

    Padding is a property of the data: sequences cut at another length than planned keep the plan's mean length where it
    fits.
    """
    if planned is None:
        return Recipe(
            model=model, policy=default_policy(precision or "bf16"), optimizer=find_optimizer("adamw"), method=method,
            seq_len=seq_len, global_batch=global_batch,
        )  # fmt: skip
    plan = planned.recipe
    lengths = plan.lengths
    if lengths is not None and seq_len != plan.seq_len:
        lengths = Lengths.around(plan.mean_len, seq_len) if plan.mean_len < seq_len else None
    return replace(plan, model=model, method=method, seq_len=seq_len, global_batch=global_batch, lengths=lengths)


def batch_of(log: RunLog, seq_len: int | None, method: Method) -> int | None:
    """Return the sequences per step: the median over the lines, or the value that the log states.

    Args:
        log: the run; its batches count examples.
        seq_len: as the log states it.
        method: an example of pairs of answers has two sequences.
    """
    sequences = log.steps.sequences
    known = sequences[~np.isnan(sequences)]
    if len(known):
        return max(round(float(np.median(known))), 1) * method.sequences_per_example
    stated, tokens = log.facts.get("global_batch_seqs"), log.facts.get("tokens_per_step")
    if isinstance(stated, float):
        return int(stated) * method.sequences_per_example
    if isinstance(tokens, float) and seq_len:
        return max(round(tokens / seq_len), 1)
    return None


def gpus_of(log: RunLog) -> int | None:
    """Return the GPUs of a run: as stated, or derived from the batch sizes that Hugging Face's Trainer prints."""
    stated = _whole(log, "n_gpus")
    if stated is not None or log.framework != "Hugging Face":
        return stated
    batch, micro, accum = (_whole(log, name) for name in ("global_batch_seqs", "micro_batch", "grad_accum"))
    if batch is None or micro is None or accum is None or batch % (micro * accum):
        return None
    return batch // (micro * accum)


def _whole(log: RunLog, key: str) -> int | None:
    value = log.facts.get(key)
    return int(value) if isinstance(value, float) and 1 <= value < 1e12 else None


def _model(log: RunLog, planned: Planned | None, given: Given, sources: dict[str, str]) -> ModelShape | None:
    """Return the user's model, else the plan's, else the model that the log's settings describe.

    Its modules of multi-token prediction are those that the log states, else the plan's, else none: the name of a model
    does not imply that a run trains them.
    """
    planned_model = None if planned is None else planned.model
    for source, model in (("flag", given.model), ("plan", planned_model), ("log", model_of_settings(log))):
        if model is not None:
            sources["model"] = source
            modules = log.facts.get("mtp_layers", planned_model.mtp_layers if planned_model else 0)
            return replace(model, mtp_layers=int(modules))
    return None


OTHER_MODEL_RATIO = 0.05
"""Difference in parameters beyond which models are different ones; padded vocabularies and task heads differ less."""


def _is_other_model(log: RunLog, planned: Planned) -> bool:
    """Return whether the log states a model of another size than the plan's."""
    shape, stated = model_of_settings(log), log.facts.get("params_total")
    params = float(shape.params_total) if shape is not None else stated
    if not isinstance(params, float):
        return False
    return abs(params / planned.model.params_total - 1.0) > OTHER_MODEL_RATIO


SHAPE = ("n_layers", "hidden", "n_heads", "ffn_hidden", "vocab", "n_experts", "top_k", "expert_ffn", "seq_len")


def model_of_settings(log: RunLog) -> ModelShape | None:
    """Return the shape that Megatron-LM's arguments describe; None where they are missing or do not define it."""
    if "other_shape" in log.facts:  # its numbers would also describe a plain model, of another size
        return None
    whole = {name: _whole(log, name) for name in SHAPE}
    if None in (whole["n_layers"], whole["hidden"], whole["n_heads"], whole["vocab"]):
        return None
    kv_heads = _whole(log, "query_groups") if "grouped" in log.facts else whole["n_heads"]
    run = PublishedRun(id="", metric="step_time_s", gpu="", model="", n_kv_heads=kv_heads, **whole)  # type: ignore[arg-type]
    try:
        shape = model_of(run, Filled())
    except CannotPredictError:
        return None
    return _with_experts(
        log,
        replace(
            shape,
            name="the log's settings",
            head_dim=_whole(log, "head_dim") or shape.head_dim,
            gated_mlp="gated_mlp" in log.facts,
            tied_embeddings="tied_embeddings" not in log.facts,
        ),
    )


def _with_experts(log: RunLog, shape: ModelShape) -> ModelShape | None:
    """Add the layers with experts and the shared experts to a shape; None where their sizes do not match.

    Which layers have no experts makes no difference to their cost, so these are placed first.
    """
    if not shape.experts:
        return shape
    shared, remainder = divmod(_whole(log, "shared_ffn") or 0, shape.expert_ffn or 1)
    dense = _whole(log, "dense_layers") or 0
    if remainder or dense > shape.layers:
        return None
    return replace(shape, shared_experts=shared, dense_layers=dense, moe_every=_whole(log, "moe_every") or 1)

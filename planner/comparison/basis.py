"""What a log's figures are held against: model, GPU, batch and precision, from flags, the log, or the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from planner.answer.document import Document
from planner.errors import UsageError
from planner.evidence import Estimate
from planner.hardware.catalogue import find_gpu
from planner.hardware.gpu import Gpu
from planner.models.shape import ModelShape
from planner.runlog.log import RunLog
from planner.validation.model import CannotPredictError, model_of
from planner.validation.runs import PublishedRun

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the user says; None where they do not."""

    model: ModelShape | None = None
    gpu: Gpu | None = None
    gpus: int | None = None
    seq_len: int | None = None
    global_batch: int | None = None
    precision: str | None = None
    price_usd_per_gpu_h: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The plan that a log is compared with: one of an answer's."""

    plan: Mapping[str, Any]
    """As in the document, with figures."""
    model: ModelShape
    seq_len: int
    global_batch: int
    tokens: float

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return max(round(self.tokens / (self.seq_len * self.global_batch)), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What figures are held against; None where nothing says."""

    model: ModelShape | None
    gpu: Gpu | None
    gpus: int | None
    seq_len: int | None
    global_batch: int | None
    """Sequences per step: the log's median."""
    precision: str | None
    act_ckpt: str | None
    sources: dict[str, str]
    """`flag`, `log` or `plan`, by name, of those that are known."""
    differs: tuple[str, ...]
    """Names of what the log says otherwise than the plan."""

    @property
    def tokens_per_step(self) -> float | None:
        """Of all GPUs."""
        return None if self.seq_len is None or self.global_batch is None else float(self.seq_len * self.global_batch)

    @property
    def missing(self) -> tuple[str, ...]:
        """What an MFU lacks, as names of inputs."""
        names = ("model", "gpu", "gpus", "seq_len", "global_batch", "precision")
        return tuple(name for name in names if getattr(self, name) is None)


def planned_of(document: Document, precision: str | None, gpu: str | None) -> Planned:
    """The plan of an answer that a run belongs to: of its precision and GPU, where the log or the user names them.

    Args:
        document: checked against its schema.
        precision: None: the asked one.
        gpu: catalogue id; None: the first plan's.

    Raises:
        UsageError: the answer has no such plan that fits.
    """
    question = document["question"]
    wanted = precision or question.get("precision", {}).get("value")
    usable = [plan for plan in document["plans"] if plan["fits"] and plan.get("step_s")]
    of_gpu = [plan for plan in usable if gpu is None or plan["gpu"] == gpu]
    chosen = next((plan for plan in of_gpu if plan["precision"] == wanted), None)
    if chosen is None:
        known = ", ".join(f"{plan['precision']} on {plan['gpu']}" for plan in usable) or "none that fits"
        raise UsageError(
            f"--plan: the answer has no plan in {wanted}{f' on {gpu}' if gpu else ''}",
            hint=f"its plans are {known}; `--precision` and `--gpu` choose one",
        )
    names = {field.name for field in fields(ModelShape)} - {"evidence"}
    shape = ModelShape(**{name: value for name, value in document["model"].items() if name in names})
    whole = {name: question.get(name, {}).get("value") for name in ("seq_len", "global_batch", "tokens")}
    if not all(isinstance(value, int | float) and value > 0 for value in whole.values()):
        raise UsageError("--plan: the answer does not say tokens, batch and sequence", hint="pass one of a transformer")
    return Planned(
        plan=chosen, model=shape, seq_len=int(whole["seq_len"]), global_batch=int(whole["global_batch"]),
        tokens=float(whole["tokens"]),
    )  # fmt: skip


def precision_of(log: RunLog) -> str | None:
    """The precision that the log's settings name: `--fp8-format` beside `--bf16` is FP8."""
    if "fp8" in log.facts:
        return "fp8"
    stated = log.facts.get("precision")
    return stated if isinstance(stated, str) else None


def settle(log: RunLog, planned: Planned | None, given: Given) -> Basis:
    """What is known, the user's word before the log's and the log's before the plan's."""
    sources: dict[str, str] = {}
    differs: list[str] = []

    def first(name: str, said: T | None, logged: T | None, plan: Callable[[Planned], T | None]) -> T | None:
        expected = None if planned is None else plan(planned)
        for source, value in (("flag", said), ("log", logged), ("plan", expected)):
            if value is not None:
                sources[name] = source
                if source != "plan" and expected is not None and value != expected:
                    differs.append(name)
                return value
        return None

    gpus, seq_len = _whole(log, "n_gpus"), _whole(log, "seq_len")
    act_ckpt = log.facts.get("act_ckpt")
    return Basis(
        model=_model(log, planned, given, sources),
        gpu=first("gpu", given.gpu, None, lambda p: find_gpu(p.plan["gpu"])),
        gpus=first("gpus", given.gpus, gpus, lambda p: int(p.plan["gpus"])),
        seq_len=first("seq_len", given.seq_len, seq_len, lambda p: p.seq_len),
        global_batch=first("global_batch", given.global_batch, batch_of(log, seq_len), lambda p: p.global_batch),
        precision=first("precision", given.precision, precision_of(log), lambda p: str(p.plan["precision"])),
        act_ckpt=first(
            "act_ckpt", None, act_ckpt if isinstance(act_ckpt, str) else None,
            lambda p: str((p.plan.get("layout") or {}).get("act_ckpt") or "") or None,
        ),
        sources=sources,
        differs=tuple(name for name in differs if name != "act_ckpt"),
    )  # fmt: skip


def batch_of(log: RunLog, seq_len: int | None) -> int | None:
    """Sequences per step: the median of the lines, or what the log states."""
    sequences = log.steps.sequences
    known = sequences[~np.isnan(sequences)]
    if len(known):
        return max(round(float(np.median(known))), 1)
    stated, tokens = log.facts.get("global_batch_seqs"), log.facts.get("tokens_per_step")
    if isinstance(stated, float):
        return int(stated)
    if isinstance(tokens, float) and seq_len:
        return max(round(tokens / seq_len), 1)
    return None


def _whole(log: RunLog, key: str) -> int | None:
    value = log.facts.get(key)
    return int(value) if isinstance(value, float) and 1 <= value < 1e12 else None


def _model(log: RunLog, planned: Planned | None, given: Given, sources: dict[str, str]) -> ModelShape | None:
    """The user's model, else the plan's, else the one that the log's settings describe."""
    if given.model is not None:
        sources["model"] = "flag"
        return given.model
    if planned is not None:
        sources["model"] = "plan"
        return planned.model
    shape = model_of_settings(log)
    if shape is not None:
        sources["model"] = "log"
    return shape


SHAPE = ("n_layers", "hidden", "n_heads", "ffn_hidden", "vocab", "n_experts", "top_k", "expert_ffn", "seq_len")


def model_of_settings(log: RunLog) -> ModelShape | None:
    """The shape that Megatron-LM's arguments describe; None where the log has none of them."""
    whole = {name: _whole(log, name) for name in SHAPE}
    if None in (whole["n_layers"], whole["hidden"], whole["n_heads"], whole["vocab"]):
        return None
    kv_heads = _whole(log, "query_groups") if "grouped" in log.facts else whole["n_heads"]
    run = PublishedRun(id="", metric="step_time_s", gpu="", model="", n_kv_heads=kv_heads, **whole)  # type: ignore[arg-type]
    try:
        shape = model_of(run, [])
    except CannotPredictError:
        return None
    return replace(
        shape,
        name="the log's settings",
        gated_mlp="gated_mlp" in log.facts,
        tied_embeddings="tied_embeddings" not in log.facts,
    )


def unit_price(planned: Planned | None, given: Given) -> Estimate | None:
    """USD of a GPU-hour: the user's, else what the plan's hours cost on average; None where neither has a price."""
    if given.price_usd_per_gpu_h is not None:
        return Estimate.exactly(given.price_usd_per_gpu_h)
    if planned is None or planned.plan.get("cost_usd") is None or planned.plan.get("gpu_hours") is None:
        return None
    cost, hours = planned.plan["cost_usd"], planned.plan["gpu_hours"]
    if cost.get("at_least") or not hours["mid"] > 0:
        return None
    mid = cost["mid"] / hours["mid"]
    lines = planned.plan.get("cost_lines") or []
    rental = lines[0].get("unit_price_usd") if len(lines) == 1 else None
    if not rental or not rental["low"] <= mid <= rental["high"]:
        return Estimate.exactly(mid)
    return Estimate(low=rental["low"], mid=mid, high=rental["high"])

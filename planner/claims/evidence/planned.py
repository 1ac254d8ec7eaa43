"""The planner's answers as evidence, each with its range: savings, memory, checkpointing, what fits."""

from __future__ import annotations

from planner.answer.plan import Plan
from planner.claims.case import Case
from planner.claims.evidence.known import AS_OF, Known, command_of
from planner.claims.evidence.published import arrow
from planner.errors import NoPlanError
from planner.evidence import Estimate
from planner.units import GIGA

BERT: dict[str, object] = {"model": "bert-large", "gpus": 1, "tokens": "1e9"}
RESNET: dict[str, object] = {"model": "resnet-50", "gpus": 1, "samples": "1.15e8"}
GPT3: dict[str, object] = {"model": "gpt-3-175b", "gpus": 1024}
LLAMA: dict[str, object] = {"model": "llama-2-70b", "gpus": 1024}
DEEPSEEK: dict[str, object] = {"model": "deepseek-v3", "gpu": "h800-sxm5-80gb", "gpus": 2048}
V100, A100, H100 = "v100-sxm2-32gb", "a100-sxm4-80gb", "h100-sxm5-80gb"

HALVINGS = 10
"""Times that the size of the largest model that fits is narrowed: it is found to within one per cent."""
SHOWN = {"micro_batch": "micro-batch", "attention": "attention"}
"""Inputs that tell two questions of one model apart."""


def name(question: dict[str, object], gpu: str = "") -> str:
    """A question by its model and GPU, and by what of a layout it fixes."""
    layout = [f"{label} {question[key]}" for key, label in SHOWN.items() if key in question]
    return ", ".join([str(question.get("model") or question.get("params")), gpu or str(question["gpu"]), *layout])


def saved(known: Known, metric: str, frm: str, to: str, question: dict[str, object], **more: object) -> Case:
    """The share that one precision saves on the same GPUs: `duration_days`, `energy_mwh`, `cost_usd`, `gpu_hours`."""
    inputs = {**question, **more}
    saving = known.saving(metric, frm, to, **inputs)
    return Case(
        what=f"{name(inputs)}, {arrow(frm, to)}", basis="planner", low=saving.low, mid=saving.mid, high=saving.high,
        source=command_of(**inputs, precision=to) + (f" --as-of {AS_OF}" if metric == "cost_usd" else ""),
    )  # fmt: skip


def faster(known: Known, frm: str, to: str, question: dict[str, object], **more: object) -> Case:
    """How many times as fast one precision is on the same GPUs."""
    inputs = {**question, **more}
    saving = known.saving("duration_days", frm, to, **inputs)
    low, mid, high = (1.0 / (1.0 - share) for share in (saving.low, saving.mid, saving.high))
    what, source = f"{name(inputs)}, {arrow(frm, to)}", command_of(**inputs, precision=to)
    return Case(what=what, basis="planner", low=low, mid=mid, high=high, source=source)


def product_speeds(known: Known, frm: str, to: str, question: dict[str, object], **more: object) -> Case:
    """How many times as fast the matrix products of a plan's layers are, the range being that over their shapes."""
    inputs = {**question, **more}
    plans = [known.plan(precision, **inputs) for precision in (frm, to)]
    rates = [{(use.where, use.m, use.n, use.k): use.tflops for use in plan.products} for plan in plans]
    ratios = [rates[1][shape] / rates[0][shape] for shape in rates[0] if shape in rates[1]]
    what = f"{name(inputs)}, {arrow(frm, to)}, {len(ratios)} products"
    return Case.of(ratios, what=what, basis="planner", source=command_of(**inputs, precision=to))


def memory_saved(known: Known, frm: str, to: str, question: dict[str, object], **more: object) -> Case:
    """The share of the peak per GPU that one precision saves in the same layout."""
    inputs = {**question, **more}
    before, after = (_total(known.plan(precision, **inputs)) for precision in (frm, to))
    ends = sorted(1.0 - after_gib / before_gib for before_gib, after_gib in zip(before, after, strict=True))
    what, source = f"{name(inputs)}, {arrow(frm, to)}", command_of(**inputs, precision=to)
    return Case(what=what, basis="planner", low=ends[0], mid=1.0 - after[1] / before[1], high=ends[-1], source=source)


def _total(plan: Plan) -> tuple[float, float, float]:
    span = plan.memory_range_gib
    assert span is not None, f"{plan.precision} does not fit"
    return span.low, span.mid, span.high


def checkpointing(known: Known, question: dict[str, object], mode: str, **more: object) -> tuple[Case, Case]:
    """What recomputing activations saves of their memory, and what it adds to the time of a step."""
    inputs = {**question, **more}
    plain = known.plan("bf16", **inputs, act_ckpt="none")
    kept = known.plan("bf16", **inputs, act_ckpt=mode)
    assert plain.memory_gib
    assert kept.memory_gib
    assert plain.step_s
    assert kept.step_s
    what, source = f"{name(inputs)}, {mode}", command_of(**inputs, precision="bf16", act_ckpt=mode)
    memory = 1.0 - kept.memory_gib["activations"] / plain.memory_gib["activations"]
    time = kept.step_s["total"] / plain.step_s["total"] - 1.0
    first = Case.exactly(memory, what=what, basis="planner", source=source)
    return first, Case.exactly(time, what=what, basis="planner", source=source)


def sharded(known: Known, question: dict[str, object], gpus: int) -> Case:
    """The share of the whole peak per GPU that ZeRO-3 saves in BF16 with full recomputation, one micro-batch."""
    inputs: dict[str, object] = {
        **question, "gpus": gpus, "tp": 1, "pp": 1, "micro_batch": 1, "act_ckpt": "full", "global_batch": 64,
    }  # fmt: skip
    whole, parts = (_total(known.plan("bf16", **inputs, zero=stage)) for stage in (0, 3))
    ends = sorted(1.0 - part / all_of_it for part, all_of_it in zip(parts, whole, strict=True))
    what, source = f"{name(inputs)} × {gpus}, peak", command_of(**inputs, precision="bf16", zero=3)
    return Case(what=what, basis="planner", low=ends[0], mid=1.0 - parts[1] / whole[1], high=ends[-1], source=source)


def memory_use(known: Known, precision: str, question: dict[str, object], **more: object) -> Case | None:
    """The share of a GPU's memory that a plan takes; None where it does not fit."""
    inputs = {**question, **more}
    try:
        plan = known.plan(precision, **inputs)
    except NoPlanError:
        return None
    if not plan.fits or plan.memory_range_gib is None:
        return None
    span, layout = plan.memory_range_gib, plan.layout
    assert layout is not None
    low, mid, high = (gib / plan.memory_capacity_gib for gib in (span.low, span.mid, span.high))
    what = f"{precision.upper()}, tp {layout.tp}, pp {layout.pp}, ZeRO-{layout.zero}, {layout.act_ckpt}"
    source = command_of(**inputs, precision=precision)
    return Case(what=what, basis="planner", low=low, mid=mid, high=high, source=source)


def largest(known: Known, precision: str, gpu: str, **more: object) -> Case:
    """The parameters of the largest decoder that trains on one GPU, found by halving."""
    question = {"gpu": gpu, "gpus": 1, "precision": precision, "tokens": "1e9", "global_batch": 32, **more}
    fits, too_large = 0.1 * GIGA, 40.0 * GIGA
    for _ in range(HALVINGS):
        middle = float(f"{(fits * too_large) ** 0.5:.3g}")
        if _fits(known, precision, {**question, "params": f"{middle / GIGA:.4g}B"}):
            fits = middle
        else:
            too_large = middle
    source = command_of(params=f"{fits / GIGA:.3g}B", **question)
    what = f"{gpu}, {precision.upper()}, act_ckpt {more.get('act_ckpt')}"
    return Case(what=what, basis="planner", low=fits, mid=fits, high=too_large, source=source)


def _fits(known: Known, precision: str, question: dict[str, object]) -> bool:
    asked = {key: value for key, value in question.items() if key != "precision"}
    try:
        return known.plan(precision, **asked).fits
    except NoPlanError:
        return False


def usd_per_gpu_hour(known: Known, gpu: str) -> Estimate:
    """What a GPU costs an hour in the shipped price book on the ledger's day."""
    plan = known.plan("bf16", gpu=gpu, gpus=8, params="7B", tokens="1e9")
    assert plan.cost_usd is not None
    assert plan.gpu_hours is not None
    lines = [line for line in plan.cost_lines if line.unit_price_usd is not None]
    price = lines[0].unit_price_usd if lines else None
    assert price is not None
    return price

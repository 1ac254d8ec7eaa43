"""The planner's answers as evidence, each with its range: savings, memory, checkpointing, what fits."""

from __future__ import annotations

from dataclasses import replace

from planner.answer.plan import Plan
from planner.claims.case import Case, left_out
from planner.claims.evidence.known import AS_OF, Known, command_of, unanswered
from planner.claims.evidence.published import arrow
from planner.errors import Message, NoPlanError
from planner.evidence import Estimate
from planner.units import GIGA

BERT: dict[str, object] = {"model": "bert-large", "gpus": 1, "tokens": "1e9"}
RESNET: dict[str, object] = {"model": "resnet-50", "gpus": 1, "samples": "1.15e8"}
GPT3: dict[str, object] = {"model": "gpt-3-175b", "gpus": 1024}
LLAMA: dict[str, object] = {"model": "llama-2-70b", "gpus": 1024}
DEEPSEEK: dict[str, object] = {"model": "deepseek-v3", "gpu": "h800-sxm5-80gb", "gpus": 2048, "tokens": "14.8e12"}
"""DeepSeek-V3's set-up: GPUs and tokens (technical report, arXiv 2412.19437, abstract and section 3.1)."""
V100, A100, H100 = "v100-sxm2-32gb", "a100-sxm4-80gb", "h100-sxm5-80gb"

HALVINGS = 10
"""Bisection steps for the largest model that fits, which determine its size to within one per cent."""
UNMOVED = 0.005
"""Smallest share of memory that counts as saved; a smaller one would print as 0 %."""
SHOWN = {"micro_batch": "micro-batch", "attention": "attention"}
"""Inputs that distinguish two questions about one model."""


def name(question: dict[str, object], gpu: str = "") -> str:
    """Return the name of a question: its model, its GPU and the part of a layout that it fixes."""
    layout = [f"{label} {question[key]}" for key, label in SHOWN.items() if key in question]
    return ", ".join([str(question.get("model") or question.get("params")), gpu or str(question["gpu"]), *layout])


def saved(known: Known, metric: str, frm: str, to: str, question: dict[str, object], **more: object) -> Case:
    """Return the share that one precision saves on the same GPUs.

    The metric is `duration_days`, `energy_mwh`, `cost_usd` or `gpu_hours`.
    """
    inputs = {**question, **more}
    saving = known.saving(metric, frm, to, **inputs)
    return Case(
        what=f"{name(inputs)}, {arrow(frm, to)}", basis="planner", low=saving.low, mid=saving.mid, high=saving.high,
        source=command_of(**inputs, precision=to) + (f" --as-of {AS_OF}" if metric == "cost_usd" else ""),
    )  # fmt: skip


def faster(known: Known, frm: str, to: str, question: dict[str, object], **more: object) -> Case:
    """Return the speed-up of one precision over another on the same GPUs."""
    inputs = {**question, **more}
    saving = known.saving("duration_days", frm, to, **inputs)
    low, mid, high = (1.0 / (1.0 - share) for share in (saving.low, saving.mid, saving.high))
    what, source = f"{name(inputs)}, {arrow(frm, to)}", command_of(**inputs, precision=to)
    return Case(what=what, basis="planner", low=low, mid=mid, high=high, source=source)


def product_speeds(known: Known, frm: str, to: str, question: dict[str, object], **more: object) -> Case:
    """Return the speed-up of the matrix products of a plan's layers; the range is over their shapes."""
    inputs = {**question, **more}
    plans = [known.whole_plan(precision, **inputs) for precision in (frm, to)]
    rates = [{(use.where, use.m, use.n, use.k): use.tflops for use in plan.products} for plan in plans]
    ratios = [rates[1][shape] / rates[0][shape] for shape in rates[0] if shape in rates[1]]
    what = f"{name(inputs)}, {arrow(frm, to)}, {len(ratios)} products"
    return Case.of(ratios, what=what, basis="planner", source=command_of(**inputs, precision=to))


def memory_saved(known: Known, frm: str, to: str, question: dict[str, object], **more: object) -> Case:
    """Return the share of the peak memory per GPU that one precision saves in the same layout."""
    inputs = {**question, **more}
    before, after = (_total(known, precision, inputs) for precision in (frm, to))
    ends = sorted(1.0 - after_gib / before_gib for before_gib, after_gib in zip(before, after, strict=True))
    what, source = f"{name(inputs)}, {arrow(frm, to)}", command_of(**inputs, precision=to)
    return Case(what=what, basis="planner", low=ends[0], mid=1.0 - after[1] / before[1], high=ends[-1], source=source)


def _total(known: Known, precision: str, inputs: dict[str, object]) -> tuple[float, float, float]:
    span = known.plan(precision, **inputs).memory_range_gib
    if span is None:
        raise unanswered("a plan that does not fit", precision=precision, **inputs)
    return span.low, span.mid, span.high


def checkpointing(known: Known, question: dict[str, object], mode: str, **more: object) -> tuple[Case, Case]:
    """Return the share of activation memory that recomputation saves, and the share of step time that it adds.

    The ends of the time compare the low ends of both plans, and the high ends, since the same terms move both. For the
    memory, the uncertainty of the peak without recomputation is attributed to the activations that it then stores.
    Where nothing can be saved, a case without a value says so.
    """
    inputs = {**question, **more}
    plain, kept = (known.plan("bf16", **inputs, act_ckpt=kind) for kind in ("none", mode))
    what, source = f"{name(inputs)}, {mode}", command_of(**inputs, precision="bf16", act_ckpt=mode)
    if plain.step_range_s is None or kept.step_range_s is None or plain.memory_gib is None or kept.memory_gib is None:
        raise unanswered("a plan that does not fit", **inputs)
    spans = [(span.low, span.mid, span.high) for span in (plain.step_range_s, kept.step_range_s)]
    slower = [after / before - 1.0 for before, after in zip(*spans, strict=True)]
    time = Case(what=what, basis="planner", low=min(slower), mid=slower[1], high=max(slower), source=source)
    left_gib = kept.memory_gib["activations"]
    less = [1.0 - min(left_gib / stored_gib, 1.0) for stored_gib in _activations(plain, left_gib)]
    if less[1] < UNMOVED:
        why = Message.of("claim.why.nothing_saved", what=what)
        return left_out(what, basis="planner", source=source, why=why), time
    return Case(what=what, basis="planner", low=less[0], mid=less[1], high=less[2], source=source), time


def _activations(plan: Plan, least_gib: float) -> tuple[float, ...]:
    """Return the activations in GiB at the ends of the peak's range and at mid, at least what recomputation keeps."""
    assert plan.memory_gib is not None
    stored_gib, span = plan.memory_gib["activations"], plan.memory_range_gib
    shifts = (0.0, 0.0, 0.0) if span is None else (span.low - span.mid, 0.0, span.high - span.mid)
    return tuple(max(stored_gib + shift_gib, least_gib) for shift_gib in shifts)


def total(known: Known, metric: str, precision: str, question: dict[str, object], **more: object) -> Case:
    """Return the `duration_days` or `energy_mwh` of a whole run, with its range."""
    inputs = {**question, **more}
    plan = known.plan(precision, **inputs)
    span = plan.duration_days if metric == "duration_days" else plan.energy_mwh
    if span is None:
        raise unanswered(f"a plan without {metric}", precision=precision, **inputs)
    what = f"{name(inputs)} × {plan.gpus:,}, {precision.upper()}"
    unit = {"duration_days": "days", "energy_mwh": "mwh"}[metric]
    source = command_of(**inputs, precision=precision)
    return Case(what=what, basis="planner", low=span.low, mid=span.mid, high=span.high, source=source, unit=unit)


def energy_of_gpus(known: Known, precision: str, question: dict[str, object], **more: object) -> Case:
    """Return the energy of a run's GPUs only: their share of the total at mid, with the range of the total."""
    whole = total(known, "energy_mwh", precision, question, **more)
    items = known.plan(precision, **question, **more).energy_items_mwh
    if items is None or whole.low is None or whole.mid is None or whole.high is None:
        raise unanswered("a plan without energy", precision=precision, **question, **more)
    share = items["gpu"] / items["total"]
    low, mid, high = (end * share for end in (whole.low, whole.mid, whole.high))
    return replace(whole, what=f"{whole.what}, GPUs", low=low, mid=mid, high=high)


def sharded(known: Known, question: dict[str, object], gpus: int) -> Case:
    """Return the share of the whole peak per GPU that ZeRO-3 saves.

    The plans are in BF16 with full recomputation and micro-batch 1.
    """
    inputs: dict[str, object] = {
        **question, "gpus": gpus, "tp": 1, "pp": 1, "micro_batch": 1, "act_ckpt": "full", "global_batch": 64,
    }  # fmt: skip
    whole, parts = (_total(known, "bf16", {**inputs, "zero": stage}) for stage in (0, 3))
    ends = sorted(1.0 - part / all_of_it for part, all_of_it in zip(parts, whole, strict=True))
    what, source = f"{name(inputs)} × {gpus}, peak", command_of(**inputs, precision="bf16", zero=3)
    return Case(what=what, basis="planner", low=ends[0], mid=1.0 - parts[1] / whole[1], high=ends[-1], source=source)


def memory_use(known: Known, precision: str, question: dict[str, object], **more: object) -> Case:
    """Return the share of a GPU's memory that a plan takes; a case without a value where it does not fit."""
    inputs = {**question, **more}
    source = command_of(**inputs, precision=precision)
    plan: Plan | None
    try:
        plan = known.plan(precision, **inputs)
    except NoPlanError:
        plan = None
    if plan is None or not plan.fits or plan.memory_range_gib is None or plan.layout is None:
        asked = ", ".join(f"{key} {value}" for key, value in more.items() if key != "gpus")
        what = f"{precision.upper()}, {asked}"
        why = Message.of("claim.why.does_not_fit", what=what)
        return left_out(what, basis="planner", source=source, why=why)
    span, layout = plan.memory_range_gib, plan.layout
    low, mid, high = (gib / plan.memory_capacity_gib for gib in (span.low, span.mid, span.high))
    what = f"{precision.upper()}, tp {layout.tp}, pp {layout.pp}, ZeRO-{layout.zero}, {layout.act_ckpt}"
    return Case(what=what, basis="planner", low=low, mid=mid, high=high, source=source)


def largest(known: Known, precision: str, gpu: str, **more: object) -> Case:
    """Return the parameters of the largest decoder that trains on one GPU, found by bisection."""
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
    """Return the price of a GPU-hour in the shipped price book on the day of the ledger."""
    question: dict[str, object] = {"gpu": gpu, "gpus": 8, "params": "7B", "tokens": "1e9"}
    lines = known.plan("bf16", **question).cost_lines
    price = next((line.unit_price_usd for line in lines if line.unit_price_usd is not None), None)
    if price is None:
        raise unanswered(f"no price of {gpu}", precision="bf16", **question)
    return price

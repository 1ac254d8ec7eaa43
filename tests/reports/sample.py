"""A made-up answer for tests of the report: round numbers that fit together, no prediction of anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from typing import Any

from mpplan.api.document import to_document
from planner.answer.plan import (
    Answer,
    Contribution,
    CurvePoint,
    LostLayout,
    Plan,
    Probability,
    Saving,
    Unsupported,
)
from planner.answer.run_totals import RunTotals
from planner.costs.prices import CostLine
from planner.errors import Message
from planner.evidence import Assumption, Estimate, Evidence, EvidenceKind, Gap
from planner.models.shape import ModelShape
from planner.parallelism.layout import Layout
from planner.question.asked import InputValue

SPEED = {"fp32": 0.06, "tf32": 0.38, "fp16": 0.96, "bf16": 1.0, "fp8": 1.45}
"""Made-up speeds against BF16."""
GPUS = 512
GPU = "h100-sxm5-80gb"
PRICE = 2.5
SHORT_RUN, PROBE = Message.of("narrow.run_on_one_node"), Message.of("narrow.probe")


def spread(mid: float, low_ratio: float = 0.86, high_ratio: float = 1.17) -> Estimate:
    """A range around a middle."""
    return Estimate(low=mid * low_ratio, mid=mid, high=mid * high_ratio)


def layout(**changes: Any) -> Layout:
    """A layout of 512 GPUs."""
    base: dict[str, Any] = {
        "tp": 8,
        "pp": 4,
        "vp": 1,
        "cp": 1,
        "ep": 1,
        "dp": 16,
        "zero": 1,
        "micro_batch": 1,
        "grad_accum": 64,
        "act_ckpt": "selective",
    }
    return Layout(**(base | changes))


def _energy(hours: float) -> tuple[float, dict[str, float]]:
    gpu = hours * 600 / 1e6
    items = {"gpu": gpu, "host": gpu * 0.5, "network": gpu * 0.05}
    items["pue_overhead"] = sum(items.values()) * 0.25
    return sum(items.values()), items


def plan(precision: str, gpu: str = GPU, gpus: int = GPUS, speed: float = 1.0, price: float = PRICE) -> Plan:
    """A plan whose cost is GPU-hours times price and whose hours follow from its step time."""
    step = 10.0 / (SPEED[precision] * speed) * GPUS / gpus
    days = step * 333_786 / 0.95 / 86_400
    hours = days * 24 * gpus
    energy, items = _energy(hours)
    parts = {"matmul": 0.62, "attention": 0.1, "memory_bound": 0.09, "recompute": 0.03, "launch": 0.005}
    parts |= {"tp_comm": 0.05, "pp_comm": 0.01, "bubble": 0.05, "dp_comm": 0.02, "optimizer": 0.015, "jitter": 0.01}
    rent = CostLine(
        id="gpu_rental",
        label=Message.of("cost.gpu_rental"),
        usd=spread(hours * price),
        quantity=hours,
        unit="GPU-hour",
        unit_price_usd=Estimate(low=price * 0.8, mid=price, high=price * 1.2),
        evidence_ids=("price:test-1",),
    )
    weights = {"weights": 10.0, "gradients": 10.0, "master_weights": 10.0, "optimizer_states": 8.0, "activations": 16.0}
    weights |= {"logits": 2.0, "fp8_copies": 1.0 if precision == "fp8" else 0.0, "framework": 3.0, "fragmentation": 2.0}
    return Plan(
        precision=precision,
        policy=precision,
        gpu=gpu,
        gpus=gpus,
        nodes=gpus // 8,
        layout=layout() if gpus == GPUS else layout(pp=1, dp=gpus // 8, grad_accum=max(1, round(1024 * 8 / gpus))),
        fits=True,
        why_not=None,
        memory_gib=weights | {"total": sum(weights.values())},
        memory_capacity_gib=79.6,
        step_s={name: share * step for name, share in parts.items()} | {"total": step},
        step_range_s=spread(step),
        tokens_per_s_per_gpu=spread(4_194_304 / step / gpus, 0.85, 1.16),
        tflops_per_gpu=spread(400.0 * SPEED[precision]),
        mfu=spread(0.42),
        mfu_full_attention=0.43,
        hfu=0.46,
        goodput_ratio=Estimate(low=0.92, mid=0.95, high=0.98),
        duration_days=spread(days),
        gpu_hours=spread(hours),
        energy_mwh=spread(energy, 0.8, 1.25),
        energy_items_mwh=items,
        gpu_power_w=spread(600),
        peak_power_mw=gpus * 1.35e-3,
        cost_usd=spread(hours * price, 0.75, 1.3),
        cost_lines=(rent,),
        carbon_tco2e=spread(energy * 0.38, 0.7, 1.3),
        uncertainty=(
            Contribution(term="price", label="price spread", share_ratio=0.5, measure_with=SHORT_RUN),
            Contribution(term="matmul", label="matrix efficiency", share_ratio=0.4, measure_with=PROBE),
            Contribution(term="goodput", label="goodput", share_ratio=0.1),
        ),
        lost_layouts=(
            LostLayout(
                layout=layout(tp=4, dp=32, grad_accum=32),
                step_s=step * 1.06,
                memory_gib=77.0,
                why=Message.of("why.slower", slower_ratio=0.06),
            ),
            LostLayout(
                layout=layout(tp=2, dp=64, grad_accum=16),
                step_s=step * 0.9,
                memory_gib=104,
                why=Message.of("why.too_big", over_gib=24.4),
            ),
        ),
        layouts_evaluated=12_345,
    )


def savings(plans: tuple[Plan, ...], view: str = "same_gpus") -> tuple[Saving, ...]:
    """Savings of each plan against each other one."""
    rows = []
    for base in plans:
        for to in plans:
            if base is to or not (base.fits and to.fits) or base.gpu != to.gpu:
                continue
            for metric in ("cost_usd", "duration_days", "gpu_hours", "energy_mwh", "carbon_tco2e"):
                before, after = getattr(base, metric), getattr(to, metric)
                if before is None or after is None:
                    continue
                mid, less = 1 - after.mid / before.mid, before.mid - after.mid
                wide = 0.1 * abs(less)
                amount = Estimate(low=less - wide, mid=less, high=less + wide)
                rows.append(
                    Saving(
                        view=view, gpu=to.gpu, metric=metric, from_=base.precision, to=to.precision,
                        low=mid - 0.03, mid=mid, high=mid + 0.03,
                        amount=amount if metric in ("cost_usd", "gpu_hours") else None,
                    )
                )  # fmt: skip
    return tuple(rows)


EVIDENCE = (
    Evidence(
        id="gpu:h100-sxm5-80gb",
        kind=EvidenceKind.DATASHEET,
        gpu=GPU,
        what="dense BF16 peak 989 TFLOP/s (test row)",
        source="https://example.org/h100.pdf",
        date="2023",
        used_in=("mfu", "step_s.matmul"),
    ),
    Evidence(
        id="rate:h100",
        kind=EvidenceKind.PUBLISHED,
        gpu=GPU,
        what="best measured matrix rate (test row)",
        source="example/repo: README.md",
        date="2025-03-01",
        used_in=("step_s.matmul", "tokens_per_s_per_gpu"),
        terms=("linear_flop_per_s",),
    ),
    Evidence(
        id="price:test-1",
        kind=EvidenceKind.PUBLISHED,
        what="2.50 USD per GPU-hour, on demand (test row)",
        source="example provider",
        date="2026-08-28",
        used_in=("cost_usd", "cost_usd.gpu_hour"),
    ),
    Evidence(
        id="power:assumed",
        kind=EvidenceKind.ASSUMED,
        what="a GPU draws 600 W (test row)",
        source="assumption of the test",
        used_in=("energy_mwh", "gpu_power_w"),
    ),
)


def answer(**changes: Any) -> Answer:
    """A whole answer; keyword arguments replace its fields."""
    plans = tuple(plan(name) for name in SPEED)
    later = tuple(plan(name, gpus=int(512 / SPEED[name] * 1.45 // 8 * 8)) for name in SPEED)
    model = ModelShape(
        name="dense-70b", kind="decoder", layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128,
        ffn_hidden=28672, gated_mlp=True, vocab=128256, context=4096,
    )  # fmt: skip
    base: dict[str, Any] = {
        "question": {
            "params": InputValue(value=70e9, source="flag"),
            "precision": InputValue(value="fp8", source="flag"),
            "tokens": InputValue(value=1.4e12, source="default", note=Message.of("note.tokens_per_param", tokens=20.0)),
            "seq_len": InputValue(value=4096, source="default"),
            "global_batch": InputValue(value=1024, source="default"),
            "method": InputValue(value="pretrain", source="default"),
            "gpu": InputValue(value=GPU, source="default"),
            "pue": InputValue(value=1.25, source="default"),
        },
        "model": model,
        "plans": plans,
        "same_deadline": later,
        "deadline_days": plans[-1].duration_days.mid if plans[-1].duration_days else 30.0,
        "savings": savings(plans) + savings(later, "same_deadline"),
        "unsupported": (),
        "assumptions": (
            Assumption(id="tokens", message=Message.of("assumption.tokens", value=1.4e12, note=""), input="tokens"),
            Assumption(id="seq_len", message=Message.of("assumption.seq_len", value=4096, note=""), input="seq_len"),
        ),
        "gaps": (),
        "warnings": (),
        "evidence": EVIDENCE,
        "created_at": "2026-11-20T12:00:00Z",
        "version": "0.1.0",
        "command": ("mpplan", "estimate", "--params", "70B", "--precision", "fp8"),
    }
    return Answer(**(base | changes))


def document(**changes: Any) -> dict[str, Any]:
    """The answer as its JSON document."""
    return to_document(answer(**changes)) if changes else _plain_document()


def made_once(make: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """A document that is made once, of which each caller has a copy to change: hundreds of tests ask for it."""
    written = cache(lambda: json.dumps(make()))
    return wraps(make)(lambda: json.loads(written()))


@made_once
def _plain_document() -> dict[str, Any]:
    return to_document(answer())


NO_FP8 = Message.of("why.no_matrix_path", gpu="NVIDIA A100 SXM4 80GB", arch="Ampere", compute="FP8")


@made_once
def unsupported_document() -> dict[str, Any]:
    """An A100: no FP8; FP32 does not fit."""
    gpu = "a100-sxm4-80gb"
    does_not_fit = Plan(
        precision="fp32", policy="fp32", gpu=gpu, gpus=8, nodes=1, layout=None, fits=False,
        why_not=Message.of(
            "why.does_not_fit", layouts=120, needed_gib=150.6, short_gib=71.4, capacity_gib=79.2, gpu=gpu
        ), memory_gib=None,
        memory_capacity_gib=79.2, step_s=None,
    )  # fmt: skip
    plans = (does_not_fit, *(plan(name, gpu=gpu) for name in ("tf32", "fp16", "bf16")))
    return document(
        plans=plans,
        same_deadline=plans[1:],
        savings=savings(plans),
        unsupported=(Unsupported(precision="fp8", gpu=gpu, reason=NO_FP8),),
        question=answer().question | {"precision": InputValue(value="bf16", source="flag")},
    )


@made_once
def several_gpus_document() -> dict[str, Any]:
    """Three GPUs side by side."""
    kinds = {GPU: (1.0, 2.5), "h200-sxm-141gb": (1.05, 3.2), "b200-sxm-180gb": (2.1, 4.6)}
    plans = tuple(plan(name, gpu, GPUS, speed, price) for gpu, (speed, price) in kinds.items() for name in SPEED)
    return document(plans=plans, same_deadline=plans, savings=savings(plans) + savings(plans, "same_deadline"))


BUDGET_USD = 1_000_000.0
DEADLINE_DAYS = 30.0


def curve() -> tuple[CurvePoint, ...]:
    """FP8 from 128 to 2,048 GPUs, the plan at 512 and the knee at 1,024: what doubling gains shrinks with the count."""
    points = []
    for gpus, days, usd in ((128, 105, 810e3), (256, 53, 820e3), (512, 27, 850e3), (1024, 15, 940e3), (2048, 9, 1.2e6)):
        points.append(
            CurvePoint(
                gpu=GPU, gpus=gpus, global_batch=1024 if gpus < 2048 else 2048, duration_days=spread(days),
                cost_usd=spread(usd), energy_mwh=spread(usd / 2500), chosen=gpus == GPUS, knee=gpus == 1024,
                in_time=days < DEADLINE_DAYS, in_budget=usd < 1e6,
            )
        )  # fmt: skip
    return tuple(points)


@made_once
def targets_document() -> dict[str, Any]:
    """A deadline and a budget with their probabilities, the counts around the plan, the memory with its range."""
    plans = tuple(
        replace(
            of_it, probability=Probability(deadline=0.83, budget=0.996), memory_risk=0.021,
            memory_range_gib=Estimate(low=48.0, mid=(of_it.memory_gib or {})["total"], high=71.0),
        )
        for of_it in map(plan, SPEED)
    )  # fmt: skip
    return document(
        plans=plans,
        savings=savings(plans),
        deadline_days=DEADLINE_DAYS,
        curve=curve(),
        run_totals=RunTotals(runs=19, lineages=7, below_high=18, date="2026-11-22", asked_runs=39, asked_below_high=37),
        question=answer().question | {"budget": InputValue(value=BUDGET_USD, source="flag")},
    )


GAP = Gap.of("price.missing", why=Message.of("price.no_row", gpu=GPU))

"""Causal attention with grouped queries, forward and backward, by sequence length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from planner.records.work import RunSetup, WorkShape
from probes.device.clock import Mark
from probes.device.device import Device
from probes.models.flop import ForwardFlop
from probes.precisions.interface import PrecisionRecipe
from probes.timing.trial import Point, PointGroup, ProbePlan, TrialOutcome
from probes.workloads.expected import group_s

GPU_LENGTHS = {"quick": (8192,), "default": (2048, 8192, 16384), "thorough": (1024, 2048, 4096, 8192, 16384, 32768)}
CPU_LENGTHS = {"quick": (512,), "default": (256, 512, 1024), "thorough": (256, 512, 1024, 2048)}
TOKENS = 16384
"""Tokens per iteration on a GPU; shorter sequences are batched up to it."""
SHORT_LENGTH = 2048
"""Length of a single sequence, as a small model trains on it: few tokens show a kernel's cost beyond its work."""
Heads = tuple[int, int, int]
GPU_HEADS: Heads = (32, 8, 128)
"""Query heads, key and value heads, and head size of an 8B model."""
SMALL_HEADS: Heads = (32, 8, 64)
"""The same sizes of a 1B model: kernels with smaller heads run at a lower rate."""
SMALL_HEADS_LENGTH = 8192
CPU_HEADS: Heads = (8, 4, 64)
METERED_LENGTH = 8192
"""Sequence length at which power is measured, for each head size."""
ENERGY_S = 3.0
METERED = ("bf16-autocast", "fp16")
"""Power is measured for the first of these that the plan has; the thorough suite measures all recipes."""
SHARED = ("tf32", "fp16")
"""Recipes with the kernel of FP32 or the rates of BF16, for which fewer points suffice."""


class AttentionWorkload:
    """Rates of fused attention."""

    name = "attention"
    summary = "causal attention forward and backward by length"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one group per length, with all types side by side."""
        lengths = (GPU_LENGTHS if plan.on_gpu else CPU_LENGTHS)[plan.suite]
        recipes = [recipe for recipe in plan.kernel_recipes if _has_own_kernel(recipe)]
        few = [r for r in recipes if r.id not in SHARED] or recipes
        groups = []
        for length in lengths:
            batch = max(TOKENS // length, 1) if plan.on_gpu else 1
            chosen = few if plan.on_gpu and plan.suite == "default" and length > METERED_LENGTH else recipes
            groups.append(_group(plan, f"attention {length}", [_point(plan, r, length, batch) for r in chosen]))
        if plan.on_gpu and plan.suite != "quick":
            chosen = few if plan.suite == "default" else recipes
            short = [_point(plan, r, SHORT_LENGTH, 1) for r in chosen if r.operand != "float32"]
            groups.append(_group(plan, f"attention {SHORT_LENGTH}, one sequence", short))
            length = SMALL_HEADS_LENGTH
            small = [_point(plan, r, length, TOKENS // length, SMALL_HEADS) for r in recipes]
            groups.append(_group(plan, f"attention {length}, heads of {SMALL_HEADS[2]}", small))
        return [group for group in groups if group.points]


def _group(plan: ProbePlan, name: str, points: list[Point]) -> PointGroup:
    estimate_s = group_s(plan, points) if plan.on_gpu else 0.8 * len(points)
    return PointGroup(name=name, points=points, estimate_s=estimate_s)


def _has_own_kernel(recipe: PrecisionRecipe) -> bool:
    """Return whether a recipe has its own attention: FP8 recipes use BF16's. FP32 and TF32 count separately."""
    return not recipe.operand.startswith("float8")


def attention_flop(batch: int, heads: int, head_dim: int, length: int) -> float:
    """Return forward FLOP with half of the scores: `2 · 2 · S²/2 · d` per head, as FlashAttention's benchmark does."""
    return 2.0 * batch * heads * head_dim * float(length) ** 2


def _point(plan: ProbePlan, recipe: PrecisionRecipe, length: int, batch: int, heads: Heads | None = None) -> Point:
    head_tag = f"d{heads[2]}" if heads else ""
    heads = heads or (GPU_HEADS if plan.on_gpu else CPU_HEADS)
    batch_tag = "b1" if plan.on_gpu and batch * length < TOKENS else ""
    forward = attention_flop(batch, heads[0], heads[2], length)
    element = 4 if recipe.operand == "float32" else 2
    moved = batch * length * heads[2] * element * (2 * heads[0] + 2 * heads[1])
    return Point(
        probe_id=f"attention/s{length}{batch_tag}{head_tag}/{recipe.id}",
        kind="attention",
        workload="attention",
        recipe=recipe,
        setup=RunSetup(data_distribution="normal"),
        shape=WorkShape(
            seq_len=length,
            micro_batch=batch,
            tokens=batch * length,
            heads=heads[0],
            kv_heads=heads[1],
            head_dim=heads[2],
        ),
        counts=replace(ForwardFlop(linear=0.0, attention=forward).of_training(recompute=False), bytes_min=3.0 * moved),
        build=partial(_AttentionTrial, recipe, heads, batch, length),
        memory=True,
        energy_s=ENERGY_S if _is_metered(plan, recipe, length) else 0.0,
    )


def _is_metered(plan: ProbePlan, recipe: PrecisionRecipe, length: int) -> bool:
    """Return whether a point's power is measured; attention draws less than products do."""
    if not (plan.on_gpu and plan.has_sensor) or plan.suite == "quick" or length != METERED_LENGTH:
        return False
    measured = {recipe.id for recipe in plan.kernel_recipes}
    return plan.suite == "thorough" or recipe.id == next((name for name in METERED if name in measured), None)


class _AttentionTrial:
    """A forward pass, then a backward pass with a fixed random gradient."""

    flags: tuple[str, ...] = ()
    steps = 1

    def __init__(self, recipe: PrecisionRecipe, heads: Heads, batch: int, length: int, device: Device) -> None:
        import torch

        n_q, n_kv, d = heads
        dtype = getattr(torch, recipe.operand)

        def random(count: int, *, grad: bool) -> Any:
            values = torch.randn(batch, count, length, d, device=device.torch, dtype=torch.float32).to(dtype)
            return values.requires_grad_(grad)

        self.q, self.k, self.v = random(n_q, grad=True), random(n_kv, grad=True), random(n_kv, grad=True)
        self.gradient = random(n_q, grad=False)
        self.held_bytes = float(sum(tensor.nbytes for tensor in (self.q, self.k, self.v, self.gradient)))

    def step(self, mark: Mark) -> None:
        """See `Trial.step`."""
        import torch

        from probes.models.transformer import causal_attention

        out = causal_attention(self.q, self.k, self.v)
        mark("forward")
        torch.autograd.grad(out, (self.q, self.k, self.v), self.gradient)
        mark("backward")

    def outcome(self) -> TrialOutcome:
        """Return the family of attention kernels that ran."""
        from probes.models.transformer import attention_backend

        return TrialOutcome(attention_backend=attention_backend(self.q, self.k, self.v))

"""Shards of transformer layers, forward and backward: the unit from which plans are composed.

A sum of matrix products explains only half to two thirds of a layer's time. Layers are therefore measured whole, at the
exact shapes of their shard and at depths 1, 4 and 8; the slope over depth is the cost of a layer without the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from planner.lazy import dataclass
from planner.records.work import RunSetup, WorkCounts, WorkShape
from probes.device.clock import Mark
from probes.device.device import Device
from probes.models import shapes
from probes.models.flop import ForwardFlop
from probes.models.shapes import LayerShape
from probes.precisions import recipe_by_id
from probes.precisions.interface import PrecisionRecipe
from probes.timing.trial import Point, PointGroup, ProbePlan, Trial, TrialOutcome
from probes.workloads.expected import group_s
from probes.workloads.metered import metered

ENERGY_S = 3.0
CPU_STEPS, CPU_FLOP_PER_S = 12.0, 5e10
"""Steps of a point including warm-up, and approximate FLOP per second of one thread; for the time budget only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCase:
    """One stack of layers."""

    shape: LayerShape
    layers: int
    seq_len: int
    micro_batch: int = 1
    recompute: bool = False
    compiled: bool = False
    energy: bool = False

    @property
    def rows(self) -> int:
        """Tokens per iteration."""
        return self.seq_len * self.micro_batch

    def probe_id(self, recipe: PrecisionRecipe) -> str:
        """Return the stable id of a point of this case."""
        extra = ("/recompute" if self.recompute else "") + ("/compiled" if self.compiled else "")
        return f"block/{self.shape.name}/L{self.layers}/s{self.seq_len}b{self.micro_batch}/{recipe.id}{extra}"


class Block:
    """Layer shards by depth, precision, recomputation and compilation."""

    name = "block"
    summary = "transformer layer shards, forward and backward, at depths 1, 4 and 8"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one group per case of the suite, with all its precisions side by side."""
        groups = []
        for case, recipes in (_gpu_cases if plan.on_gpu else _cpu_cases)(plan):
            with_energy = metered(recipes, plan.suite)
            points = [
                block_point(replace(case, energy=case.energy and recipe.id in with_energy), recipe)
                for recipe in recipes
            ]
            if points:
                groups.append(PointGroup(name=_label(case), points=points, estimate_s=_estimate_s(plan, case, points)))
        return groups


def _label(case: BlockCase) -> str:
    extra = (", recomputed" if case.recompute else "") + (", compiled" if case.compiled else "")
    return f"{case.layers} × {case.shape.name}, {case.seq_len} tokens{extra}"


def _estimate_s(plan: ProbePlan, case: BlockCase, points: Sequence[Point]) -> float:
    if plan.on_gpu:
        return group_s(plan, points)
    return len(points) * (0.5 + CPU_STEPS * (block_counts(case).flop_hardware or 0.0) / CPU_FLOP_PER_S)


Cases = list[tuple[BlockCase, list[PrecisionRecipe]]]


def _gpu_cases(plan: ProbePlan) -> Cases:
    """List the cases, most valuable first: those that plans for 8B and 70B models need."""
    chosen = list(plan.recipes)
    quick = [recipe for recipe in chosen if recipe.id != "fp32"]
    base = BlockCase(shape=shapes.LLAMA_70B_TP8, layers=4, seq_len=8192, energy=plan.has_sensor)
    small = replace(base, shape=shapes.LLAMA_8B)
    mixed = [recipe for recipe in quick if recipe.id in ("bf16-fsdp", "fp8")]
    sharded = mixed or [recipe for recipe in quick if recipe.id == "fp16"]  # GPUs before Ampere
    dense = [recipe for recipe in quick if recipe.id in ("tf32", "fp16", "bf16-autocast", "bf16-fsdp", "fp8", "mxfp8")]
    cases: Cases = [(small, dense)]
    if plan.suite == "quick":
        return [(small, sharded), (replace(small, layers=1, energy=False), sharded)]
    bf16 = [recipe for recipe in mixed if recipe.id == "bf16-fsdp"]
    plain = [recipe for recipe in chosen if recipe.id in ("fp32", "tf32", "bf16-fsdp")]
    cases += [
        (replace(small, compiled=True), mixed),
        (base, sharded),
        (replace(base, layers=1, energy=False), sharded),
        (replace(base, layers=8, energy=False), sharded),
        (replace(small, layers=1, energy=False), [r for r in quick if r.id not in ("fp16", "bf16-autocast")]),
        (replace(small, recompute=True, energy=False), bf16),
        (replace(small, seq_len=2048, energy=False), plain),
        (replace(small, shape=shapes.QWEN3_0_6B, seq_len=2048, energy=False), plain),
        (replace(small, layers=8, energy=False), bf16),
        (replace(base, shape=shapes.QWEN3_30B_EP8, energy=False), bf16),
        (replace(base, shape=shapes.LLAMA_405B_TP8, energy=False), bf16),
    ]
    if plan.suite == "thorough":
        cases += (
            [(replace(base, shape=shapes.LLAMA_70B, layers=2, energy=False), mixed)]
            + [(replace(case, micro_batch=2, energy=False), mixed) for case in (base, small)]
            + [(replace(small, seq_len=length, energy=False), mixed) for length in (4096, 16384)]
            + [(replace(base, compiled=True), mixed), (replace(small, layers=8, recompute=True), mixed)]
        )
    return cases


def _cpu_cases(plan: ProbePlan) -> Cases:
    chosen = list(plan.recipes)
    main = [recipe for recipe in chosen if recipe.id in ("fp32", "bf16-autocast")] or chosen[:2]
    base = BlockCase(shape=shapes.TINY, layers=4, seq_len=256)
    if plan.suite == "quick":
        return [(replace(base, layers=1), main), (base, main)]
    cases: Cases = [
        (replace(base, layers=1), main),
        (base, main),
        (replace(base, shape=shapes.SMALL, layers=1), main),
        (replace(base, layers=2, recompute=True), main),
        (replace(base, layers=1, seq_len=1024), main[:1]),
        (replace(base, layers=8), main[:1]),
    ]
    if plan.suite == "thorough":
        others = [recipe for recipe in chosen if recipe not in main]
        cases += [
            (replace(base, shape=shapes.TINY_TP2), main),
            (replace(base, shape=shapes.TINY_MOE), main),
            (base, others),
            (replace(base, compiled=True), main[-1:]),
        ]
    return cases


def block_point(case: BlockCase, recipe: PrecisionRecipe) -> Point:
    """Return the point of a case in one precision."""
    shape = case.shape
    low = recipe.precision in ("fp8", "mxfp8")
    odd = low and any(size % 16 for pair in shape.products for size in pair)
    return Point(
        probe_id=case.probe_id(recipe),
        kind="block",
        workload="block",
        recipe=recipe,
        setup=_setup(case),
        shape=_shape(case),
        counts=block_counts(case),
        build=partial(_build, case, recipe.id),
        memory=True,
        energy_s=ENERGY_S if case.energy else 0.0,
        unsupported="FP8 needs sizes that are multiples of 16" if odd else None,
    )


def _setup(case: BlockCase) -> RunSetup:
    return RunSetup(
        recompute="full" if case.recompute else "none",
        compiled=case.compiled,
        grad_accumulation=True,
        data_distribution="normal",
    )


def _shape(case: BlockCase) -> WorkShape:
    shape = case.shape
    return WorkShape(
        model=shape.model,
        layers=case.layers,
        hidden=shape.hidden,
        heads=shape.local_heads,
        kv_heads=shape.local_kv_heads,
        head_dim=shape.head_dim,
        ffn_hidden=shape.local_ffn,
        experts=shape.local_experts or None,
        top_k=shape.top_k or None,
        seq_len=case.seq_len,
        micro_batch=case.micro_batch,
        tokens=case.rows,
        tp=shape.tp,
        ep=shape.ep,
    )


def block_counts(case: BlockCase) -> WorkCounts:
    """Return parameters, and FLOP of forward and backward; forward is `2·params·tokens` plus causal attention."""
    shape, rows = case.shape, float(case.rows)
    qkv, out, up, down = (2.0 * rows * k * n for k, n in shape.products)
    linear = qkv + out + (up + down) * (shape.top_k or 1)
    attention = 2.0 * case.micro_batch * shape.local_heads * shape.head_dim * float(case.seq_len) ** 2
    forward = ForwardFlop(linear=case.layers * linear, attention=case.layers * attention)
    return forward.of_training(recompute=case.recompute, params=shape.params * case.layers)


class _BlockTrial:
    """A stack of layers with a random input, and a random gradient at its output in place of the loss."""

    steps = 1

    def __init__(self, case: BlockCase, recipe: PrecisionRecipe, device: Device) -> None:
        import torch

        from probes.models.stack import build_stack
        from probes.precisions.training import Training

        module = build_stack(case.shape, case.layers, case.seq_len, recompute=case.recompute, device=device.torch)
        self.module = module
        self.case = case
        self.training = Training(module, recipe, device.kind)
        self.flags = self.training.flags
        if case.compiled:
            for layer in module.layers:
                layer.compile(dynamic=False)  # else a second shape in one process would get kernels for dynamic shapes
        dtype = getattr(torch, recipe.held)
        size = (case.micro_batch, case.seq_len // case.shape.tp, case.shape.hidden)
        generator = torch.Generator(device=device.torch).manual_seed(1)
        self.x = torch.randn(size, device=device.torch, generator=generator).to(dtype).requires_grad_()
        self.gradient = torch.randn(size, device=device.torch, generator=generator).mul_(1e-3).to(dtype)
        held = [*module.parameters(), *self.training.updated, *module.buffers(), self.x, self.gradient]
        self._held = {id(tensor): tensor for tensor in held}

    @property
    def held_bytes(self) -> float:
        """Bytes of weights, master weights, inputs, and their gradients."""
        grads = [tensor.grad for tensor in self._held.values() if tensor.grad is not None]
        return float(sum(tensor.nbytes for tensor in [*self._held.values(), *grads]))

    def step(self, mark: Mark) -> None:
        """See `Trial.step`. Gradients accumulate, as in every micro-batch but the first."""
        with self.training.region():
            y = self.training.module(self.x)
        mark("forward")
        self.training.backward(y, self.gradient.to(y.dtype))
        mark("backward")

    def outcome(self) -> TrialOutcome:
        """Return the family of attention kernels that ran."""
        from probes.models.transformer import backend_of_heads

        shape, recipe = self.case.shape, self.training.recipe
        dtype = recipe.autocast or recipe.held
        heads = (shape.local_heads, shape.local_kv_heads, shape.head_dim)
        return TrialOutcome(
            attention_backend=backend_of_heads(*heads, self.case.seq_len, dtype=dtype, device=self.x.device)
        )


def _build(case: BlockCase, recipe_id: str, device: Device) -> Trial:
    return _BlockTrial(case, recipe_by_id(recipe_id), device)

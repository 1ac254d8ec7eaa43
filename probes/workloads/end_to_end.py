"""Whole training steps of models from `transformers`, built from configurations with random weights.

A step is forward, loss, backward, gradient clipping and optimizer. Every precision starts from the same weights and
data, so that loss traces can be compared. Two depths separate the cost of a layer from the cost of the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from planner.records.figures import Numerics
from planner.records.work import RunSetup
from probes.device.clock import Mark
from probes.device.device import Device
from probes.models.cases import ModelCase, counts_of, params_of, shape_of
from probes.precisions import recipe_by_id
from probes.precisions.interface import PrecisionRecipe
from probes.timing.trial import Point, PointGroup, ProbePlan, Trial, TrialOutcome
from probes.workloads.expected import group_s
from probes.workloads.metered import metered

LOSS_STEPS = 12
"""Number of steps whose loss is recorded."""
ENERGY_S = 3.0


class EndToEnd:
    """Real training steps of real models, which validate all smaller workloads."""

    name = "end-to-end"
    summary = "training steps of Llama, BERT-Large and ResNet-50"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one group per case of the suite, with all its precisions side by side."""
        groups = []
        for case, recipes in _cases(plan):
            with_energy = metered(recipes, plan.suite)
            points = [
                model_point(plan, replace(case, energy=case.energy and recipe.id in with_energy), recipe)
                for recipe in recipes
            ]
            if points:
                estimate_s = group_s(plan, points) if plan.on_gpu else 1.2 * len(points)
                late = plan.on_gpu and case.compiled
                groups.append(PointGroup(name=case.name, points=points, estimate_s=estimate_s, late=late))
        return groups


def _claimed_cases(plan: ProbePlan) -> list[tuple[ModelCase, list[PrecisionRecipe]]]:
    """List the models that claims in the literature name, with and without recomputation; on a CPU with few layers."""
    named = ("fp32", "tf32", "fp16", "bf16-autocast", "fp8")
    recipes = [recipe for recipe in plan.recipes if recipe.id in named]
    bf16 = [recipe for recipe in recipes if recipe.id == "bf16-autocast"]
    large, energy = plan.on_gpu, plan.has_sensor
    bert = ModelCase(
        family="bert", size="bert-large", layers=24 if large else 2, batch=16 if large else 2,
        seq_len=512 if large else 128, energy=energy,
    )  # fmt: skip
    resnet = ModelCase(
        family="resnet", size="resnet-50", layers=50, batch=64 if large else 4, seq_len=224 if large else 128,
        energy=energy,
    )  # fmt: skip
    llama = ModelCase(
        family="llama", size="llama-3.2-1b" if large else "tiny", layers=4, batch=1, seq_len=4096 if large else 1024
    )
    plain = [recipe for recipe in recipes if recipe.id != "fp8"]
    recomputed = [(replace(case, recompute=True, energy=False), bf16) for case in (bert, llama)]
    return [(resnet, plain), (bert, plain), (llama, recipes), *recomputed]


def _cases(plan: ProbePlan) -> list[tuple[ModelCase, list[PrecisionRecipe]]]:
    if plan.suite == "claims":
        return _claimed_cases(plan)
    if not plan.on_gpu:
        return _cpu_cases(plan)
    energy = plan.has_sensor
    llama = ModelCase(family="llama", size="llama-3.2-1b", layers=4, batch=1, seq_len=4096, energy=energy)
    bert = ModelCase(family="bert", size="bert-large", layers=24, batch=16, seq_len=512, energy=energy)
    resnet = ModelCase(family="resnet", size="resnet-50", layers=50, batch=128, seq_len=224, energy=energy)
    named = ("fp32", "tf32", "fp16", "bf16-autocast", "bf16-fsdp", "fp8")
    chosen = [recipe for recipe in plan.recipes if recipe.id in named]
    short = [recipe for recipe in chosen if recipe.id in ("tf32", "fp16", "bf16-autocast")]
    if plan.suite == "quick":
        main = [recipe for recipe in chosen if recipe.id in ("tf32", "bf16-fsdp", "fp8")]
        return [(llama, main or [recipe for recipe in chosen if recipe.id == "fp16"])]  # FP16 before Ampere
    return [
        (llama, chosen),
        (replace(llama, layers=2, energy=False), [recipe for recipe in chosen if recipe.id != "bf16-autocast"]),
        (bert, [recipe for recipe in short if recipe.id != "tf32"]),
        (
            replace(resnet, energy=energy and plan.suite == "thorough"),
            [recipe for recipe in short if recipe.id != "fp16"],
        ),
        (replace(llama, compiled=True), [recipe for recipe in chosen if recipe.id == "fp8"]),
    ]


def _cpu_cases(plan: ProbePlan) -> list[tuple[ModelCase, list[PrecisionRecipe]]]:
    chosen = list(plan.recipes)
    main = [recipe for recipe in chosen if recipe.id in ("fp32", "bf16-autocast")] or chosen[:2]
    llama = ModelCase(family="llama", size="tiny", layers=4, batch=1, seq_len=256)
    if plan.suite == "quick":
        return [(replace(llama, layers=1), main)]
    cases = [(replace(llama, layers=1), main), (llama, main)]
    if plan.suite == "thorough":
        bert = ModelCase(family="bert", size="tiny", layers=2, batch=2, seq_len=128)
        resnet = ModelCase(family="resnet", size="resnet-50", layers=50, batch=2, seq_len=96)
        cases += [(bert, main), (resnet, main), (llama, [recipe for recipe in chosen if recipe not in main])]
    return cases


def model_point(plan: ProbePlan, case: ModelCase, recipe: PrecisionRecipe) -> Point:
    """Return the point of a whole model in one precision."""
    return Point(
        probe_id=f"end_to_end/{case.name}/{recipe.id}",
        kind="end_to_end",
        workload="end-to-end",
        recipe=recipe,
        setup=RunSetup(
            optimizer="adamw",
            recompute="full" if case.recompute else "none",
            compiled=case.compiled,
            grad_accumulation=False,
            data_distribution="normal",
        ),
        shape=shape_of(case),
        counts=counts_of(case),
        build=partial(build_model_trial, case, recipe.id, plan.seed),
        memory=True,
        energy_s=ENERGY_S if case.energy else 0.0,
        needs="transformers",
    )


class _ModelTrial:
    """One training step per call, on fixed data."""

    steps = 1

    def __init__(self, case: ModelCase, recipe: PrecisionRecipe, seed: int, device: Device) -> None:
        from probes.models.transformers_models import build_model, make_batch
        from probes.precisions.training import Training, fused_adamw

        self.case = case
        self.module = build_model(case, seed, device.torch)
        self.training = Training(self.module, recipe, device.kind)
        self.flags = self.training.flags
        self.optimizer = fused_adamw(self.training.updated)
        self.batch = make_batch(case, seed + 1, device.torch, recipe.held)
        self.losses: list[Any] = []

    @property
    def held_bytes(self) -> float:
        """Bytes of weights, master weights, optimizer states and data; gradients are freed after each step."""
        states = [v for s in self.optimizer.state.values() for v in s.values() if hasattr(v, "nbytes")]
        copies = self.training.updated if self.training.recipe.master_weights else []
        held = [*self.module.parameters(), *copies, *self.module.buffers(), *states, *self.batch.values()]
        return float(sum(tensor.nbytes for tensor in held))

    def step(self, mark: Mark) -> None:
        """See `Trial.step`."""
        with self.training.region():
            loss = self.module(**self.batch).loss
        if len(self.losses) < LOSS_STEPS:
            self.losses.append(loss.detach())
        mark("forward")
        self.training.backward(loss)
        mark("backward")
        self.training.update(self.optimizer)
        mark("optimizer")

    def outcome(self) -> TrialOutcome:
        """Return the loss by step if it stayed finite, the parameter count, and the family of attention kernels."""
        import math

        trace = tuple(float(loss) for loss in self.losses)
        finite = all(math.isfinite(loss) for loss in trace)
        return TrialOutcome(
            reason=None if finite else "the loss left the finite range within the first steps",
            params=params_of(self.module),
            attention_backend=self._attention_backend(),
            numerics=Numerics(loss_trace=trace if finite else (), loss_scale=self.training.loss_scale),
        )

    def _attention_backend(self) -> str | None:
        """Return the backend of models that use our causal attention; None for those that use their library's."""
        from probes.models.transformer import backend_of_heads

        sizes = shape_of(self.case)
        if self.case.family != "llama" or sizes.heads is None or sizes.kv_heads is None or sizes.head_dim is None:
            return None
        recipe, device = self.training.recipe, self.batch["input_ids"].device
        dtype = recipe.autocast or recipe.held
        return backend_of_heads(
            sizes.heads, sizes.kv_heads, sizes.head_dim, self.case.seq_len, dtype=dtype, device=device
        )


def build_model_trial(case: ModelCase, recipe_id: str, seed: int, device: Device) -> Trial:
    """Make the trial of a whole model."""
    return _ModelTrial(case, recipe_by_id(recipe_id), seed, device)

"""What is measured to predict from (anchors: shallow, narrow or short) and what is predicted (targets: never run
before).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from probes.models.cases import ModelCase
from probes.precisions.interface import PrecisionRecipe
from probes.timing.trial import ProbePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCase:
    """A model in a precision."""

    model: ModelCase
    recipe: PrecisionRecipe
    estimate_s: float

    @property
    def family(self) -> tuple[str, str, bool]:
        """Predictions rest on anchors of the same implementation, recipe and compilation."""
        return (self.model.family, self.recipe.id, self.model.compiled)


def anchors(plan: ProbePlan) -> list[VerifyCase]:
    """Small runs of the families that targets need; those of the suite are named alike and not run twice."""
    cases = _gpu_anchors(plan) if plan.on_gpu else _cpu_anchors()
    return _kept(plan, cases, 3.0 if plan.on_gpu else 1.3)


def targets(plan: ProbePlan) -> list[VerifyCase]:
    """What is predicted, balanced over precisions, so that any beginning of the list is a fair sample."""
    cases = _gpu_targets(plan) if plan.on_gpu else _cpu_targets()
    return _kept(plan, cases, 8.0 if plan.on_gpu else 2.2)


Named = list[tuple[ModelCase, str]]


def _kept(plan: ProbePlan, named: Named, each_s: float) -> list[VerifyCase]:
    recipes = {recipe.id: recipe for recipe in plan.recipes}
    return [
        VerifyCase(model=model, recipe=recipes[name], estimate_s=each_s + (25.0 if model.compiled else 0.0))
        for model, name in named
        if name in recipes
    ]


GPU_RECIPES = ("bf16-fsdp", "fp8", "tf32", "fp16", "fp32")


def _gpu_anchors(plan: ProbePlan) -> Named:
    small_1b = ModelCase(family="llama", size="llama-3.2-1b", layers=4, batch=1, seq_len=4096, energy=plan.has_sensor)
    small = replace(small_1b, layers=2, energy=False)
    llama_3b = replace(small, size="llama-3.2-3b")
    bert = ModelCase(family="bert", size="bert-large", layers=6, batch=16, seq_len=512, energy=plan.has_sensor)
    resnet = ModelCase(family="resnet", size="resnet-50", layers=50, batch=128, seq_len=224, energy=plan.has_sensor)
    cases: Named = []
    for name in GPU_RECIPES:
        long = () if name == "fp32" else (replace(small, seq_len=8192),)
        models = (small, small_1b, replace(small, seq_len=2048), *long, replace(small, recompute=True), llama_3b)
        cases += [(model, name) for model in models]
    for name in ("bf16-autocast", "fp16"):
        cases += [(replace(bert, layers=2, energy=False), name), (bert, name)]
        cases.append((replace(bert, layers=2, batch=32, seq_len=256, energy=False), name))
    for name in ("bf16-autocast", "tf32"):
        cases += [(resnet, name), (replace(resnet, batch=64, energy=False), name)]
    return cases + [
        (replace(model, compiled=True), name) for name in ("bf16-fsdp", "fp8") for model in (small, small_1b)
    ]


def _gpu_targets(plan: ProbePlan) -> Named:
    energy = plan.has_sensor
    llama_1b = ModelCase(family="llama", size="llama-3.2-1b", layers=16, batch=1, seq_len=2048, energy=energy)
    llama_3b = replace(llama_1b, size="llama-3.2-3b", layers=28)
    bert = ModelCase(family="bert", size="bert-large", layers=24, batch=32, seq_len=512, energy=energy)
    resnet = ModelCase(family="resnet", size="resnet-50", layers=50, batch=256, seq_len=224, energy=energy)
    long = replace(llama_1b, seq_len=16384, recompute=True)
    return [
        (llama_1b, "bf16-fsdp"),
        (llama_1b, "fp8"),
        (llama_1b, "tf32"),
        (llama_3b, "bf16-fsdp"),
        (bert, "bf16-autocast"),
        (llama_1b, "fp16"),
        (llama_1b, "fp32"),
        (resnet, "bf16-autocast"),
        (replace(llama_1b, seq_len=8192), "bf16-fsdp"),
        (replace(llama_1b, seq_len=8192), "fp8"),
        (replace(llama_1b, seq_len=4096, compiled=True), "bf16-fsdp"),
        (long, "bf16-fsdp"),
        (llama_3b, "fp8"),
        (llama_3b, "tf32"),
        (replace(llama_1b, seq_len=4096, recompute=True), "tf32"),
        (replace(llama_1b, seq_len=8192), "tf32"),
        (long, "fp8"),
        (llama_3b, "fp16"),
        (llama_3b, "fp32"),
        (replace(llama_1b, seq_len=4096, recompute=True), "fp32"),
        (replace(llama_1b, seq_len=8192), "fp16"),
        (replace(llama_3b, seq_len=8192, recompute=True), "bf16-fsdp"),
        (replace(llama_1b, seq_len=4096, compiled=True), "fp8"),
        (replace(bert, seq_len=384), "fp16"),
        (replace(resnet, batch=192), "tf32"),
        (replace(long, recompute=False), "fp8"),
    ]


_TINY = ModelCase(family="llama", size="tiny", layers=4, batch=1, seq_len=256)
_CPU_RECIPES = ("fp32", "bf16-autocast", "bf16-pure")


def _cpu_anchors() -> Named:
    """The corners of what is predicted: shallow and deep, short and long, narrow and wide, recomputed."""
    models = (
        replace(_TINY, layers=1),
        replace(_TINY, layers=6),
        replace(_TINY, layers=2, seq_len=512),
        replace(_TINY, layers=1, seq_len=1024),
        replace(_TINY, layers=1, size="tiny-wider"),
        replace(_TINY, layers=2, seq_len=512, recompute=True),
    )
    return [(model, name) for name in _CPU_RECIPES for model in models]


def _cpu_targets() -> Named:
    """Inside those corners: an extrapolation on a machine that shakes tests the machine."""
    models = (
        replace(_TINY, layers=3),
        replace(_TINY, layers=3, size="tiny-wide"),
        replace(_TINY, layers=2, seq_len=768),
        replace(_TINY, layers=4, seq_len=512, recompute=True),
        replace(_TINY, layers=2, batch=2),
        replace(_TINY, layers=2, size="tiny-wider"),
        replace(_TINY, layers=4, seq_len=512),
        replace(_TINY, layers=1, size="tiny-wide", seq_len=512),
    )
    return [(model, name) for name in _CPU_RECIPES for model in models]

"""The runs from which predictions are made (anchors), and the runs that are predicted (targets).

Anchors are shallow, narrow or short. Targets were never run before.
"""

from __future__ import annotations

from dataclasses import replace

from planner.lazy import dataclass
from probes.models.cases import ModelCase
from probes.precisions.interface import PrecisionRecipe
from probes.timing.trial import ProbePlan
from probes.workloads.end_to_end import model_point
from probes.workloads.expected import point_s


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCase:
    """A model in one precision."""

    model: ModelCase
    recipe: PrecisionRecipe
    estimate_s: float

    @property
    def family(self) -> tuple[str, str, bool]:
        """Implementation, recipe and compilation, which predictions and their anchors must share."""
        return (self.model.family, self.recipe.id, self.model.compiled)


def anchors(plan: ProbePlan) -> list[VerifyCase]:
    """Return small runs of the families that targets need; those that the suite also has are not run twice."""
    return _kept(plan, _gpu_anchors(plan) if plan.on_gpu else _cpu_anchors(), 1.3)


def targets(plan: ProbePlan) -> list[VerifyCase]:
    """Return the runs to predict, balanced over precisions, so that any first part of the list is a fair sample."""
    return _kept(plan, _gpu_targets(plan) if plan.on_gpu else _cpu_targets(), 2.2)


Named = list[tuple[ModelCase, str]]


def _kept(plan: ProbePlan, named: Named, cpu_s: float) -> list[VerifyCase]:
    """Return the cases whose recipe the device supports; on a CPU, all are expected to take the same time."""
    recipes = {recipe.id: recipe for recipe in plan.recipes}
    return [
        VerifyCase(
            model=model,
            recipe=recipes[name],
            estimate_s=point_s(plan, model_point(plan, model, recipes[name])) if plan.on_gpu else cpu_s,
        )
        for model, name in named
        if name in recipes
    ]


GPU_RECIPES = ("bf16-fsdp", "fp8", "tf32", "fp16", "fp32")


def _gpu_anchors(plan: ProbePlan) -> Named:
    """Return, per recipe, two depths (the suite's), other lengths, recomputed, wider; short steps of seconds each."""
    small_1b = ModelCase(family="llama", size="llama-3.2-1b", layers=4, batch=1, seq_len=4096, energy=plan.has_sensor)
    small = replace(small_1b, layers=2, energy=False)
    cases: Named = []
    for name in GPU_RECIPES:
        models = [small, small_1b, replace(small, seq_len=2048)]
        if name in ("bf16-fsdp", "fp8"):
            models.append(replace(small, seq_len=8192))
        if name in ("bf16-fsdp", "fp8", "tf32"):
            models += [replace(small, recompute=True), replace(small, size="llama-3.2-3b")]
        cases += [(model, name) for model in models]
    bert = ModelCase(family="bert", size="bert-large", layers=6, batch=16, seq_len=512)
    resnet = ModelCase(family="resnet", size="resnet-50", layers=50, batch=128, seq_len=224, energy=plan.has_sensor)
    others = (bert, replace(bert, layers=2), resnet, replace(resnet, batch=64, energy=False))
    cases += [(model, "bf16-autocast") for model in others]
    return cases + [(replace(model, compiled=True), "fp8") for model in (small, small_1b)]


def _gpu_targets(plan: ProbePlan) -> Named:
    """Return a dozen, balanced over precision, model, length and checkpointing, as is any first part of the list."""
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
        (bert, "bf16-autocast"),
        (replace(llama_1b, energy=False), "fp16"),  # the suite measures no power in FP16
        (llama_1b, "fp32"),
        (resnet, "bf16-autocast"),
        (replace(llama_1b, seq_len=8192), "bf16-fsdp"),
        (replace(llama_1b, seq_len=4096, compiled=True), "fp8"),
        (llama_3b, "bf16-fsdp"),
        (long, "fp8"),
        (replace(llama_3b, seq_len=4096, recompute=True), "tf32"),
        (replace(llama_3b, seq_len=8192, recompute=True), "bf16-fsdp"),
    ]


_TINY_LLAMA = ModelCase(family="llama", size="tiny", layers=4, batch=1, seq_len=256)
_CPU_RECIPES = ("fp32", "bf16-autocast", "bf16-pure")


def _cpu_anchors() -> Named:
    """Return the corners of the predicted range: shallow and deep, short and long, narrow and wide, recomputed."""
    models = (
        replace(_TINY_LLAMA, layers=1),
        replace(_TINY_LLAMA, layers=6),
        replace(_TINY_LLAMA, layers=2, seq_len=512),
        replace(_TINY_LLAMA, layers=1, seq_len=1024),
        replace(_TINY_LLAMA, layers=1, size="tiny-wider"),
        replace(_TINY_LLAMA, layers=2, seq_len=512, recompute=True),
    )
    return [(model, name) for name in _CPU_RECIPES for model in models]


def _cpu_targets() -> Named:
    """Return cases within those corners: extrapolating on a machine with unsteady speed would test the machine."""
    models = (
        replace(_TINY_LLAMA, layers=3),
        replace(_TINY_LLAMA, layers=3, size="tiny-wide"),
        replace(_TINY_LLAMA, layers=2, seq_len=768),
        replace(_TINY_LLAMA, layers=4, seq_len=512, recompute=True),
        replace(_TINY_LLAMA, layers=2, batch=2),
        replace(_TINY_LLAMA, layers=2, size="tiny-wider"),
        replace(_TINY_LLAMA, layers=4, seq_len=512),
        replace(_TINY_LLAMA, layers=1, size="tiny-wide", seq_len=512),
    )
    return [(model, name) for name in _CPU_RECIPES for model in models]

"""A model shape for a bare parameter count (`--params 70B`), derived from the shapes of published families."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from planner.errors import Message, UsageError
from planner.evidence import Evidence, EvidenceKind
from planner.lazy import dataclass
from planner.models.catalogue import find_model
from planner.models.shape import ModelShape

FAMILY = (
    "pythia-160m",
    "pythia-410m",
    "tinyllama-1.1b",
    "llama-3.2-3b",
    "llama-3-8b",
    "llama-3-70b",
    "llama-3.1-405b",
    "megatron-1t",
)
"""Published shapes, from small to large, between which depth, width and feed-forward size are interpolated."""
SNAP_RATIO = 0.02
"""Relative difference to a Llama 3 model's size up to which that model's shape is used as it is."""
MATCH_RATIO = 0.02
"""Relative difference allowed between the derived model's parameter count and the requested one."""

HEAD_DIM = 128
KV_HEADS = 8
VOCAB = 128_256
"""The vocabulary of Llama 3."""
SMALL_VOCAB = 32_000
"""The vocabulary of Llama 2; with the larger one, a model of less than 1B would consist mostly of its embedding."""
LARGE_VOCAB_FROM_PARAMS = 1e9
UNTIED_FROM_PARAMS = 6e9
"""Parameter count from which input and output embedding are separate: Llama 3.2 1B and 3B share them, Llama 3 8B does
not."""
CONTEXT = 4096
LOWEST, HIGHEST = 10e6, 10e12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Depth, width and feed-forward size of the published families, interpolated at a size and not yet rounded."""

    layers: float
    hidden: float
    ffn_per_hidden: float
    """Inner over outer size of a gated feed-forward block with the same number of parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A shape of about the requested size."""

    shape: ModelShape
    deviation: float
    """Deviation from the target: sum of the absolute log ratios of depth, width, feed-forward size and KV heads."""


def shape_from_params(params: float) -> ModelShape:
    """A dense decoder like Llama 3 with this many parameters: grouped queries over 8 key/value heads, heads of 128.

    A size within 2 % of a Llama 3 model gives exactly its shape (70B: 80 layers, hidden 8192, feed-forward 28672).
    Otherwise depth and width are interpolated in the logarithm of the size and rounded so that tensor and pipeline
    parallelism find divisors; the feed-forward size follows from the parameter count, which is met within 2 %.

    Raises:
        UsageError: there are fewer than 10M or more than 10T parameters.
    """
    if not LOWEST <= params <= HIGHEST:
        raise UsageError(Message.of("error.no_shape", params=params), hint=Message.of("hint.describe_model"))
    anchors = [find_model(name) for name in FAMILY]
    llamas = [shape for shape in anchors if shape.name.startswith("llama-3")]
    snapped = [shape for shape in llamas if _near(shape.params_total, params, SNAP_RATIO)]
    if snapped:
        return _named(snapped[0], params, f"the shape of {snapped[0].name}")
    below = [shape.name for shape in anchors if shape.params_total < params][-1:]
    above = [shape.name for shape in anchors if shape.params_total > params][:1]
    between = " and ".join(below + above)
    return _named(_derived(params, anchors), params, f"depth and width from the published shapes of {between}")


def _near(value: float, target: float, ratio: float) -> bool:
    return abs(value / target - 1) <= ratio


def _named(shape: ModelShape, params: float, how: str) -> ModelShape:
    unit, letter = next((u, s) for u, s in ((1e12, "t"), (1e9, "b"), (1e6, "m")) if params >= u)
    name = f"derived-{params / unit:.4g}{letter}"
    evidence = Evidence(
        id=f"model:{name}",
        kind=EvidenceKind.ASSUMED,
        what=f"a dense decoder of {params / unit:.4g}{letter.upper()} parameters: {how}",
        source="derived from published model families; name a model or a config.json to replace it",
        public=True,
    )
    return replace(
        shape, name=name, context=CONTEXT, params_published=None, global_batch_tokens=None, evidence=evidence
    )


def _interpolate(params: float, anchors: list[ModelShape]) -> _Target:
    """Interpolate depth, width and feed-forward size between the anchors in logarithms.

    Beyond the ends, they are extrapolated from the nearest two anchors.
    """
    x = np.log([shape.params_total for shape in anchors])
    y = np.log([[shape.layers, shape.hidden, shape.dense_mlp_params / (3 * shape.hidden**2)] for shape in anchors])
    at = math.log(params)
    i = int(np.clip(np.searchsorted(x, at), 1, len(x) - 1))
    layers, hidden, ratio = np.exp(y[i - 1] + (at - x[i - 1]) / (x[i] - x[i - 1]) * (y[i] - y[i - 1]))
    return _Target(layers=float(layers), hidden=float(hidden), ffn_per_hidden=float(np.clip(ratio, 2.5, 3.5)))


def _steps(around: float, step: int, least: int, count: int = 3) -> list[int]:
    """The nearest multiple of a step to a value, with `count` further multiples on each side, at least `least`."""
    middle = round(around / step)
    return sorted({max(least, (middle + offset) * step) for offset in range(-count, count + 1)})


def _derived(params: float, anchors: list[ModelShape]) -> ModelShape:
    target = _interpolate(params, anchors)
    width_step = 1024 if target.hidden >= 4096 else 256 if target.hidden >= 1024 else HEAD_DIM
    layer_step = 4 if target.layers >= 28 else 2 if target.layers >= 12 else 1
    candidates = [
        candidate
        for hidden in _steps(target.hidden, width_step, HEAD_DIM)
        for layers in _steps(target.layers, layer_step, 1)
        if (candidate := _fill(params, layers, hidden, target)) is not None
    ]
    if not candidates:
        raise AssertionError(f"no shape for {params}")  # a test walks the whole range
    return min(candidates, key=lambda candidate: candidate.deviation).shape


def _fill(params: float, layers: int, hidden: int, target: _Target) -> _Candidate | None:
    """The shape of this depth and width whose feed-forward size gives the parameter count; None if there is none."""
    heads = hidden // HEAD_DIM
    large = params >= LARGE_VOCAB_FROM_PARAMS
    shape = ModelShape(
        name="derived",
        kind="decoder",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=math.gcd(heads, KV_HEADS),
        head_dim=HEAD_DIM,
        ffn_hidden=0,
        gated_mlp=True,
        vocab=VOCAB if large else SMALL_VOCAB,
        context=CONTEXT,
        tied_embeddings=params < UNTIED_FROM_PARAMS,
    )
    step = 256 if hidden >= 2048 else 64
    ffn = round((params - shape.params_total) / (3 * hidden * layers) / step) * step
    if ffn < hidden:
        return None
    shape = replace(shape, ffn_hidden=ffn)
    if not _near(shape.params_total, params, MATCH_RATIO):
        return None
    ratios = (
        layers / target.layers,
        hidden / target.hidden,
        ffn / hidden / target.ffn_per_hidden,
        (shape.kv_heads / min(KV_HEADS, heads)) ** 0.25,  # fewer key/value heads allow less tensor parallelism
    )
    return _Candidate(shape=shape, deviation=sum(abs(math.log(ratio)) for ratio in ratios))

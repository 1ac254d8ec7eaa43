"""A small network trained here in NumPy, its arithmetic rounded as FP16 and BF16 round: what a loss scale mends.

Three dense layers learn the labels that a random network of the same kind gives. Operands, activations and gradients
are rounded to the format after each product, products are summed in FP32 as tensor cores do, and the weights that the
optimizer updates stay FP32: mixed precision as in Micikevicius et al., Mixed Precision Training (arXiv 1710.03740),
sections 3.1 to 3.3. It is far smaller than what the claims are about, so that it only stands in for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

SIZES = (32, 64, 64, 10)
BATCH, STEPS, HELD_OUT = 64, 400, 20_000
LEARNING_RATE, MOMENTUM = 0.02, 0.9
SEEDS = (0, 1, 2)
SCALES = (8.0, 1024.0, 32_000.0)
"""Fixed loss scales: the ends of the claim's range and one between."""
SMALL = 1e-5
"""A factor of the loss that makes the gradients as small as those of a mean over many tokens in a deep network: about a
fifth of them are then below what FP16 can hold."""


def fp16(values: Array) -> Array:
    """Values rounded to IEEE 754 binary16; too large ones become infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def bf16(values: Array) -> Array:
    """Values rounded to bfloat16, to the nearest, ties to even."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


def fp32(values: Array) -> Array:
    """Values as they are."""
    return values


FORMATS: dict[str, Callable[[Array], Array]] = {"fp32": fp32, "fp16": fp16, "bf16": bf16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one training run gave."""

    accuracy: float
    """Share of held-out samples that are classified right."""
    overflows: int
    """Steps whose gradients were not finite; they were left out."""
    zeroed: float
    """Share of the gradients of the first step that are zero though FP32 has a value."""
    scale: float
    """The loss scale at the end."""


@dataclass(slots=True, kw_only=True)
class _Scaler:
    """A loss scale that doubles after an interval of steps without overflow, and halves on one; fixed without one."""

    scale: float
    interval_steps: int
    clean_steps: int = 0

    def update(self, *, overflowed: bool) -> None:
        """Take note of a step."""
        self.clean_steps = 0 if overflowed else self.clean_steps + 1
        if not self.interval_steps:
            return
        if overflowed:
            self.scale /= 2.0
        elif self.clean_steps == self.interval_steps:
            self.scale, self.clean_steps = self.scale * 2.0, 0


def train(name: str, *, seed: int, scale: float = 1.0, loss_factor: float = 1.0, interval_steps: int = 0) -> Trial:
    """Train once.

    Args:
        name: one of `FORMATS`.
        seed: of the labels, the start and the samples.
        scale: the loss scale at the start.
        loss_factor: a factor of the loss that the learning rate makes up for, so that gradients are as small as in a
            large model and every step is the same in exact arithmetic.
        interval_steps: steps without overflow after which a dynamic scale doubles; 0: it is fixed.
    """
    scaler = _Scaler(scale=scale, interval_steps=interval_steps)
    rng = np.random.default_rng(seed)
    to, teacher, weights = FORMATS[name], _network(rng), _network(rng)
    momentum = [np.zeros_like(weight) for weight in weights]
    overflows, zeroed = 0, 0.0
    for step in range(STEPS):
        samples = rng.standard_normal((BATCH, SIZES[0]), dtype=np.float32)
        labels = _scores(teacher, samples, fp32)[-1].argmax(axis=1)
        gradients = _gradients(weights, samples, labels, to, scaler.scale * loss_factor)
        used = scaler.scale * loss_factor
        if step == 0:
            zeroed = _zeroed(gradients, _gradients(weights, samples, labels, fp32, 1.0))
        overflowed = not all(np.isfinite(gradient).all() for gradient in gradients)
        scaler.update(overflowed=overflowed)
        if overflowed:
            overflows += 1
            continue
        for weight, velocity, gradient in zip(weights, momentum, gradients, strict=True):
            velocity *= MOMENTUM
            velocity += gradient / np.float32(used)
            weight -= np.float32(LEARNING_RATE) * velocity
    samples = rng.standard_normal((HELD_OUT, SIZES[0]), dtype=np.float32)
    right = _scores(weights, samples, to)[-1].argmax(axis=1) == _scores(teacher, samples, fp32)[-1].argmax(axis=1)
    return Trial(accuracy=float(right.mean()), overflows=overflows, zeroed=zeroed, scale=scaler.scale)


def _network(rng: np.random.Generator) -> list[Array]:
    shapes = pairwise(SIZES)
    return [rng.standard_normal(shape, dtype=np.float32) * np.float32((2.0 / shape[0]) ** 0.5) for shape in shapes]


def _scores(weights: list[Array], samples: Array, to: Callable[[Array], Array]) -> list[Array]:
    """The samples and what each layer makes of them."""
    values = [to(samples)]
    for number, weight in enumerate(weights):
        product = to(values[-1] @ to(weight))
        values.append(product if number == len(weights) - 1 else np.maximum(product, np.float32(0.0)))
    return values


def _gradients(
    weights: list[Array], samples: Array, labels: npt.NDArray[np.intp], to: Callable[[Array], Array], scale: float
) -> list[Array]:
    """Gradients of the mean cross-entropy times the scale, layer by layer, in the format."""
    values = _scores(weights, samples, to)
    shifted = values[-1] - values[-1].max(axis=1, keepdims=True)
    shares = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= np.float32(1.0)
    upstream = to(shares * np.float32(scale / len(labels)))
    gradients: list[Array] = []
    with np.errstate(invalid="ignore", over="ignore"):
        for number in range(len(weights) - 1, -1, -1):
            gradients.insert(0, to(values[number].T @ upstream))
            upstream = to((upstream @ to(weights[number]).T) * (values[number] > 0))
    return gradients


def _zeroed(low: list[Array], full: list[Array]) -> float:
    """The share of values that FP32 has and the format does not."""
    there = sum(int(np.count_nonzero(gradient)) for gradient in full)
    lost = sum(int(np.count_nonzero((gradient == 0) & (exact != 0))) for gradient, exact in zip(low, full, strict=True))
    return lost / there


@cache
def trial(name: str, seed: int, scale: float = 1.0, interval_steps: int = 0) -> Trial:
    """`train`, run once for each question."""
    return train(name, seed=seed, scale=scale, interval_steps=interval_steps)


def zeroed_at(name: str, seed: int, scale: float, loss_factor: float) -> float:
    """The share of the first step's gradients that a format loses, without training on."""
    rng = np.random.default_rng(seed)
    teacher, weights = _network(rng), _network(rng)
    samples = rng.standard_normal((BATCH, SIZES[0]), dtype=np.float32)
    labels = _scores(teacher, samples, fp32)[-1].argmax(axis=1)
    low = _gradients(weights, samples, labels, FORMATS[name], scale * loss_factor)
    return _zeroed(low, _gradients(weights, samples, labels, fp32, 1.0))

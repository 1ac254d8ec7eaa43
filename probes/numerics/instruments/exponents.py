"""Exponents of weights, activations and gradients, layer by layer, while a model trains in FP32.

The histograms give, for any format and scale, the share of values that would be flushed to zero and that would
saturate; the updates give the share that weights held in a format would swallow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

import torch

from planner.lazy import dataclass
from probes.numerics.formats.elements import FORMATS, ElementFormat, find_format
from probes.numerics.formats.histogram import Magnitudes, empty_histogram, magnitudes, swallowed_counts
from probes.numerics.instruments.time import Keep, OutOfTimeError, Plain, TimeBudget, missing
from probes.numerics.lowering.switches import kinds_of
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run

TENSORS = ("weights", "activations", "gradients", "weight_gradients")
"""`gradients` are the gradients of a layer's output, which its backward products read."""
SWALLOWING = ("bf16", "fp16")
"""Formats that some training recipes hold weights in."""
OBSERVED_STEPS = 5
"""Number of steps that are examined, evenly spread over the run."""
MOST_STEPS, LEAST_STEPS = 100, 5
HEADROOM_OCTAVES = 2
"""Octaves that a recommended scale leaves free above the largest gradient seen, as only some steps were examined."""
LIMIT_OCTAVES = 1
"""Octaves that it leaves free below the largest scale at which training did not overflow."""
LOSS_SCALES = range(0, 41, 2)
"""Log2 of the loss scales at which the gradients are judged in every format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerMagnitudes:
    """Observations of one layer; its tables grow while it is watched."""

    kind: str
    histograms: dict[str, Magnitudes] = field(default_factory=lambda: {name: empty_histogram() for name in TENSORS})
    """Magnitudes by tensor."""
    swallowed: dict[str, list[int]] = field(default_factory=lambda: {name: [0, 0] for name in SWALLOWING})
    """By format, over all examined steps: updates that leave the weight unchanged, and updates that are not zero."""

    def add(self, tensor: str, values: torch.Tensor) -> None:
        """Add the values of a tensor to its histogram."""
        self.histograms[tensor] = self.histograms[tensor] + magnitudes(values)


class LayerObserver:
    """Observes the layers of a run in some of its steps."""

    def __init__(self, run: Run) -> None:
        self._run = run
        kinds = kinds_of(run.switches.layers)
        self.layers = {name: LayerMagnitudes(kind=kind) for name, kind in kinds.items()}
        self._observing = False
        self._handles = [
            layer.register_forward_hook(partial(self._observe_output, name))
            for name, layer in run.switches.layers.items()
        ]

    def step(self) -> float:
        """Take one step, count all values in it, and return its loss."""
        before = {name: self._weights(name) for name in self.layers}
        self._observing = True
        loss, _ = self._run.one_step(self._observe_gradients)
        self._observing = False
        for name, tensors in before.items():
            now = self._weights(name)
            for element in SWALLOWING:
                counted = self.layers[name].swallowed[element]
                for old, new in zip(tensors, now, strict=True):
                    kept, asked = swallowed_counts(old, new - old, find_format(element))
                    counted[0] += kept
                    counted[1] += asked
            for tensor in now:
                self.layers[name].add("weights", tensor)
        return loss

    def close(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()

    def _weights(self, name: str) -> list[torch.Tensor]:
        parameters = self._run.switches.layers[name].parameters(recurse=False)
        return [parameter.detach().clone() for parameter in parameters]

    def _observe_output(self, name: str, _layer: Any, _arguments: Any, output: Any) -> None:
        if not self._observing or not isinstance(output, torch.Tensor) or not output.is_floating_point():
            return
        self.layers[name].add("activations", output)
        if output.requires_grad:
            output.register_hook(partial(self.layers[name].add, "gradients"))

    def _observe_gradients(self) -> None:
        for name, layer in self._run.switches.layers.items():
            for parameter in layer.parameters(recurse=False):
                if parameter.grad is not None:
                    self.layers[name].add("weight_gradients", parameter.grad)


def described(histogram: Magnitudes, scales: Mapping[str, int | None] | None = None) -> Plain:
    """Describe a histogram as a document: counts by exponent, and the effect of each format on the values.

    Args:
        histogram: the histogram.
        scales: by format, log2 of the recommended scale, where that is not the best one for these values alone.
    """
    octaves = histogram.octaves()
    low, high = (min(octaves), max(octaves)) if octaves else (0, -1)
    formats = {}
    for element in FORMATS:
        best = (scales or {}).get(element.id, histogram.best_scale_log2(element))
        formats[element.id] = {
            "flushed_ratio": histogram.flushed_ratio(element),
            "saturated_ratio": histogram.saturated_ratio(element),
            "best_scale_log2": best,
            "flushed_at_best_ratio": None if best is None else histogram.flushed_ratio(element, best),
        }
    return {
        "values": histogram.total, "zeros_ratio": histogram.zeros / histogram.total if histogram.total else 0.0,
        "not_finite": histogram.not_finite, "least_exponent": low if octaves else None,
        "counts": [octaves.get(exponent, 0) for exponent in range(low, high + 1)], "formats": formats,
    }  # fmt: skip


def observe(run: Run, steps: int, budget: TimeBudget) -> tuple[LayerObserver, int]:
    """Train for some steps and examine some of them; return the observations and the number of steps taken."""
    observer = LayerObserver(run)
    interval = max(steps // OBSERVED_STEPS, 1)
    taken = 0
    try:
        for number in range(steps):
            if number > 0 and budget.left_s < 0:
                break
            if number % interval == 0 or number == steps - 1:
                observer.step()
            else:
                run.one_step()
            taken += 1
    finally:
        observer.close()
    return observer, taken


def histograms(task: Task, place: Place, budget: TimeBudget, keep: Keep, limit_log2: int | None = None) -> Plain:
    """Return histograms of a task in FP32, as a plain document.

    Args:
        task: what is trained.
        place: device and size.
        budget: time for the run.
        keep: stores the answer.
        limit_log2: log2 of the largest loss scale at which FP16 training of the task did not overflow; None: unknown.
    """

    def measure() -> Plain:
        budget.require()
        run = Run(task, 0, place)
        timed = run.train(2)
        each_s = max(timed.wall_s / 2.0, 1e-4)
        steps = int(min(max(0.5 * budget.left_s / each_s, LEAST_STEPS), MOST_STEPS))
        observer, taken = observe(run, steps, budget)
        layers = [_layer(name, layer) for name, layer in observer.layers.items()]
        return {
            "precision": "fp32", "mode": "real", "steps": taken, "layers": layers,
            "overall": _overall(observer, limit_log2),
            "cut_short": [missing(steps - taken, steps, "steps")] if taken < steps else [],
        }  # fmt: skip

    try:
        return keep("fp32", measure)
    except OutOfTimeError:
        return {"precision": "fp32", "mode": "real", "steps": 0, "layers": [], "overall": {},
                "cut_short": ["no time was left"]}  # fmt: skip


def _layer(name: str, layer: LayerMagnitudes) -> Plain:
    return {
        "layer": name,
        "kind": layer.kind,
        "tensors": {tensor: described(histogram) for tensor, histogram in layer.histograms.items()},
        "swallowed_ratio": {element: _share([counted]) for element, counted in layer.swallowed.items()},
    }


def _overall(observer: LayerObserver, limit_log2: int | None) -> Plain:
    """Combine all layers by tensor, with the loss scale for FP16 and the share of swallowed updates by format."""
    layers = list(observer.layers.values())
    total = {name: sum((layer.histograms[name] for layer in layers), empty_histogram()) for name in TENSORS}
    scale = loss_scale(total["gradients"] + total["weight_gradients"], limit_log2)
    scaled = {name: {"fp16": scale["scale_log2"]} if "gradients" in name else {} for name in TENSORS}
    return {
        "tensors": {name: described(value, scaled[name]) for name, value in total.items()},
        "loss_scale": scale,
        "swallowed_ratio": {name: _share(layer.swallowed[name] for layer in layers) for name in SWALLOWING},
        "gradients_by_scale": {element.id: _by_scale(total["gradients"], element) for element in FORMATS},
    }


def loss_scale(gradients: Magnitudes, limit_log2: int | None) -> Plain:
    """Recommend the loss scale for FP16 that flushes the fewest values and leaves headroom.

    Args:
        gradients: gradients of layer outputs and of weights together, since one scale multiplies both.
        limit_log2: log2 of the largest scale at which training did not overflow. It accounts for values that no
            histogram sees, such as gradients inside attention. None: unknown.
    """
    fp16 = find_format("fp16")
    best = gradients.best_scale_log2(fp16, HEADROOM_OCTAVES)
    if best is not None and limit_log2 is not None:
        best = min(best, limit_log2 - LIMIT_OCTAVES)
    return {
        "format": fp16.id, "scale_log2": best, "limit_log2": limit_log2, "headroom_octaves": HEADROOM_OCTAVES,
        "flushed_ratio": None if best is None else gradients.flushed_ratio(fp16, best),
    }  # fmt: skip


def _by_scale(histogram: Magnitudes, element: ElementFormat) -> list[Plain]:
    """Return the effect of a format on the gradients at each loss scale."""
    return [
        {
            "scale_log2": power,
            "flushed_ratio": histogram.flushed_ratio(element, power),
            "saturated_ratio": histogram.saturated_ratio(element, power),
        }
        for power in LOSS_SCALES
    ]


def _share(counts: Iterable[list[int]]) -> float | None:
    """Return swallowed updates as a share of all non-zero updates; None if there were none."""
    listed = list(counts)
    asked = sum(row[1] for row in listed)
    return sum(row[0] for row in listed) / asked if asked else None

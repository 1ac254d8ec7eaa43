"""Accuracy of the planner on timed training steps of vision models: `make images`.

Families of models (`resnet*`, `vit*`, ...) are left out of the fit in turn and predicted from what the others teach.
The batch of each timed step is the largest of a series that fitted on the GPU; the predicted memory is compared with
that.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from planner.hardware.catalogue import find_gpu
from planner.hardware.cluster import make_cluster
from planner.performance.images.step import image_memory
from planner.performance.memory import usable_bytes
from planner.rates.ladder import resolve_rates
from planner.rates.terms import Draws
from tools.images.fit import (
    BENCHMARK_OVERHEAD_S,
    TimedStep,
    alone,
    errors_of,
    fit,
    recipe_of,
    summary,
    timed_steps,
)

Floats = npt.NDArray[np.float64]

FOLDS = 8
"""Number of folds into which the families are dealt, largest families first."""
FEW_ITERATIONS = 4
"""Iterations of a fold's fit, which starts from the fit to all steps."""
BATCHES = tuple(sorted({2**power for power in range(10)} | {3 * 2**power for power in range(8)}))
"""Batches that the timing tried, from the largest down, until one fitted: 512, 384, 256, 192 ..."""


def left_out_errors(steps: Sequence[TimedStep]) -> Floats:
    """Return prediction over measurement, less 1, of each step without its family, `[step]`."""
    start = fit(steps).log_values
    members: dict[str, list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        members[step.family].append(number)
    errors = np.zeros(len(steps))
    by_size = sorted(members, key=lambda family: -len(members[family]))
    for fold in range(FOLDS):
        out = {number for family in by_size[fold::FOLDS] for number in members[family]}
        teaching = [step for number, step in enumerate(steps) if number not in out]
        fitted = fit(teaching, start, FEW_ITERATIONS)
        index = sorted(out)
        errors[index] = errors_of([steps[number] for number in index], fitted.log_values)
    return errors


def kind_of(step: TimedStep) -> str:
    """Return what takes most of a model's time: wide convolutions, depthwise convolutions, or linear layers."""
    network = step.network
    if not network.is_convolutional:
        return "transformers and mixers"
    depthwise = any(layer.depthwise for layer in network.convolutions)
    return "mobile networks (depthwise)" if depthwise else "convolutional networks"


def memory_agreement(steps: Sequence[TimedStep]) -> Mapping[str, float]:
    """Compare the predicted peak with the GPU: the share of batches that fit, and of next larger ones that do not."""
    cluster = make_cluster(find_gpu("rtx-3090"))
    rates = resolve_rates(cluster, recipe_of(True)).sample()
    room, fits, larger = usable_bytes(cluster.gpu), [], []
    for step in steps:
        recipe = recipe_of(step.channels_last)

        def needs(batch: int, step: TimedStep = step) -> float:
            return float(np.ravel(image_memory(step.network, recipe, alone(batch), rates).total)[0])  # noqa: B023

        fits.append(needs(step.batch) / room)
        following = [batch for batch in BATCHES if batch > step.batch]
        if following:
            larger.append(needs(following[0]) / room)
    return {
        "fits": float(np.mean(np.array(fits) <= 1.0)), "peak over room at the batch": float(np.median(fits)),
        "next does not fit": float(np.mean(np.array(larger) > 1.0)),
        "peak over room at the next": float(np.median(larger)), "batches with a next": float(len(larger)),
    }  # fmt: skip


def coverage(steps: Sequence[TimedStep]) -> float:
    """Return the share of the steps within the 5th to 95th percentile of the shipped parameters' draws."""
    cluster, draws, inside = make_cluster(find_gpu("rtx-3090")), Draws(count=201, seed=0), []
    from planner.performance.images.step import image_step

    drawn = {
        last: resolve_rates(cluster, recipe_of(last)).sample(draws).replaced(image_step_overhead_s=BENCHMARK_OVERHEAD_S)
        for last in (True, False)
    }
    for step in steps:
        rates = drawn[step.channels_last]
        total = np.asarray(
            image_step(step.network, recipe_of(step.channels_last), cluster, alone(step.batch), rates).total
        )
        low, high = np.quantile(total, (0.05, 0.95))
        inside.append(low <= step.seconds <= high)
    return float(np.mean(inside))


def main() -> int:
    """Leave families out and print how close the predictions are."""
    steps = timed_steps()
    errors = left_out_errors(steps)
    lines = [f"families left out: {summary(errors)}"]
    groups = {
        "channels last": [step.channels_last for step in steps],
        "channels first": [not step.channels_last for step in steps],
    } | {kind: [kind_of(step) == kind for step in steps] for kind in sorted({kind_of(step) for step in steps})}
    lines += [f"  {name}: {summary(errors[np.array(chosen)])}" for name, chosen in groups.items()]
    worst: dict[str, list[float]] = defaultdict(list)
    for step, error in zip(steps, errors, strict=True):
        worst[step.family].append(error)
    medians = sorted(((float(np.median(values)), family) for family, values in worst.items()), key=lambda m: -abs(m[0]))
    lines.append("  furthest: " + ", ".join(f"{family} {error:+.0%}" for error, family in medians[:8]))
    lines.append(f"within the range of the shipped parameters: {coverage(steps[::4]):.0%}")
    lines += [f"memory, {name}: {value:.3g}" for name, value in memory_agreement(steps).items()]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

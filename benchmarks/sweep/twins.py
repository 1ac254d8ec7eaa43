"""The unpredictable part of the sweep's speeds: layouts that differ only in the ZeRO stage, 0 or 1.

Stage 1 sends the same bytes as stage 0 and shards the update, so the two should run at nearly the same speed. Where
they were measured far apart, the cause was something else: the machines, the network, a job whose sends stall.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.sweep.questions import Question, Sweep, rank_correlation
from planner.parallelism.layout import Layout

Numbers = npt.NDArray[np.float64]

STAGES = (0, 1)
"""The two stages of a pair, in the order of the columns."""
ENOUGH = 8
"""Number of pairs below which the ranks of a question mean little."""
SLOW = 0.6
"""Measured over predicted speed below which a layout counts as slow for a reason outside the equations."""
HEADERS = (
    "model", "GPUs", "pairs", "rank correlation of the pairs: measured with measured", "predicted with measured",
    "lost by the choice: by the other's measurement", "by the prediction",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    """Pairs of layouts of one question, in tokens/s per GPU, `[pair, stage]` each."""

    question: Question
    measured: Numbers
    predicted: Numbers


def twins(sweep: Sweep) -> Twins:
    """Return the pairs among the measured layouts of a question."""
    speeds: dict[tuple[object, ...], dict[int, tuple[float, float]]] = {}
    for observation, predicted in zip(sweep.observations, sweep.predicted, strict=True):
        layout = observation.prepared.layouts.at(0)
        speeds.setdefault(_but_for_zero(layout), {})[layout.zero] = (observation.value, float(predicted))
    pairs = [
        [by_stage[stage] for stage in STAGES]
        for by_stage in speeds.values()
        if all(stage in by_stage for stage in STAGES)
    ]
    values = np.array(pairs, dtype=np.float64).reshape(-1, len(STAGES), 2)
    return Twins(question=sweep.question, measured=values[..., 0], predicted=values[..., 1])


def _but_for_zero(layout: Layout) -> tuple[object, ...]:
    split = (layout.tp, layout.pp, layout.vp, layout.cp, layout.ep, layout.dp)
    return (*split, layout.micro_batch, layout.grad_accum, layout.act_ckpt)


def times_apart(speeds: Numbers) -> Numbers:
    """Return the faster over the slower speed of each pair, `[pair]`."""
    return np.asarray(speeds.max(axis=1) / speeds.min(axis=1))


def lost(chosen_by: Numbers, measured: Numbers) -> float:
    """Return the share of the fastest measured speed that the layout with the highest value of `chosen_by` loses."""
    return float(1.0 - measured[chosen_by.argmax()] / measured.max())


def _both(first: float, second: float, as_text: str) -> str:
    return f"{format(first, as_text)} / {format(second, as_text)}"


def twin_rows(groups: Iterable[Twins]) -> list[tuple[str, ...]]:
    """Return one line per question with enough pairs; two figures in a cell are for stage 0 and stage 1."""
    rows: list[tuple[str, ...]] = []
    for pairs in groups:
        if len(pairs.measured) < ENOUGH:
            continue
        (first, second), (ours_first, ours_second) = pairs.measured.T, pairs.predicted.T
        ours = rank_correlation(ours_first, first), rank_correlation(ours_second, second)
        rows.append((
            pairs.question[0], str(pairs.question[1]), str(len(first)), f"{rank_correlation(first, second):.2f}",
            _both(*ours, ".2f"), _both(lost(second, first), lost(first, second), ".0%"),
            _both(lost(ours_first, first), lost(ours_second, second), ".0%"),
        ))  # fmt: skip
    return rows


def without_slow(sweep: Sweep) -> tuple[float, float]:
    """Return rank correlation and loss of a question without the layouts that ran far slower than predicted."""
    usual = sweep.measured > SLOW * sweep.predicted
    predicted, measured = sweep.predicted[usual], sweep.measured[usual]
    return rank_correlation(predicted, measured), lost(predicted, measured)


def _model_left(model: str, sweeps: Iterable[Sweep]) -> str:
    correlations, losses = zip(*(without_slow(sweep) for sweep in sweeps if sweep.question[0] == model), strict=True)
    return (
        f"{model} has a median rank correlation of {np.median(correlations):.2f}, and its choice loses "
        f"{np.mean(losses):.0%} on average"
    )


def sentences(sweeps: Sequence[Sweep], groups: Sequence[Twins]) -> str:
    """Return, in words, what the pairs show, and the results without the slow layouts."""
    measured, predicted = (
        times_apart(np.concatenate([getattr(pairs, name) for pairs in groups])) for name in ("measured", "predicted")
    )
    quarter, tenth = np.percentile(measured, (75, 90))
    enough = [pairs for pairs in groups if len(pairs.measured) >= ENOUGH]
    by_other = [lost(pairs.measured[:, 1 - stage], pairs.measured[:, stage]) for pairs in enough for stage in STAGES]
    by_ours = [lost(pairs.predicted[:, stage], pairs.measured[:, stage]) for pairs in enough for stage in STAGES]
    slow = sum(int((sweep.measured <= SLOW * sweep.predicted).sum()) for sweep in sweeps)
    layouts = sum(len(sweep.predicted) for sweep in sweeps)
    left = "; ".join(_model_left(model, sweeps) for model in sorted({sweep.question[0] for sweep in sweeps}))
    return (
        f"How much of this can be predicted at all? {len(measured)} pairs of these layouts differ only in the ZeRO "
        f"stage, 0 or 1. The two predictions of a pair differ by {np.median(predicted) - 1:.0%} at the median. As "
        f"measured, a quarter of the pairs is more than {quarter:.1f} times apart, and a tenth more than {tenth:.0f} "
        f"times. Choosing among the layouts of one stage by the *measured* speeds of the other loses "
        f"{np.mean(by_other):.0%} on average; choosing by the prediction loses {np.mean(by_ours):.0%}. (In the table, "
        f"two figures in a cell are for stage 0 / stage 1.) Without the {slow} of {layouts:,} layouts that ran at less "
        f"than {SLOW} of their predicted speed, {left}."
    )

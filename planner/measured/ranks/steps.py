"""A training step over several ranks from its parts: each rank's work, what is sent, and what runs beside what.

```
forward   work ▒▒▒▒▒▒▒▒▒▒▒▒                     hidden messages run beside the work of their phase, each slowing the
          sent   ░░░░  ░░░░                     other down as measured; the others stand between pieces of work
backward  work ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
          sent     ░░░░  ░░░░  ░░░░ ████        a pipeline adds the time in which its ranks wait for the first and
optimizer work ▒▒▒▒                             the last micro-batch
```

The work is that of ranks that train by themselves, all at once, so that it holds what ranks of a host contend for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.measured.layers.workloads import DescribedWork
from planner.measured.network.messages import StepMessage, bubble_ratio
from planner.measured.ranks.collectives import MeasuredCollectives
from planner.measured.ranks.overlap import slowdowns
from planner.records.figures import PredictedFigures
from planner.records.measurement import Measurement

ALONE, ALONE_FSDP2 = "alone", "alone-fsdp2"
"""`parallel` of steps without communication; the second with what FSDP does beside sending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds of a rank's own work."""

    forward_s: float
    backward_s: float
    optimizer_s: float


def predict_step(
    step: DescribedWork,
    messages: Sequence[StepMessage],
    recipe: str,
    known: Sequence[Measurement],
) -> PredictedFigures:
    """Seconds of a step over several ranks; empty where a part of it was not measured.

    Args:
        step: what is to be run.
        messages: what its ranks send.
        recipe: of its precision.
        known: points of the same record: steps of ranks alone, collectives, overlap.
    """
    base = _alone(step, recipe, known)
    if base is None:
        return PredictedFigures()
    collectives = MeasuredCollectives(known)
    work = _work(step, base)
    total_s, used = 0.0, [base.probe_id]
    for phase, work_s in (
        ("forward", work.forward_s), ("backward", work.backward_s), ("optimizer", work.optimizer_s),
    ):  # fmt: skip
        hidden_s, open_s, hidden_op = 0.0, 0.0, None
        for message in messages:
            if message.phase != phase:
                continue
            charge = collectives.charge(message)
            if charge is None:
                return PredictedFigures()
            used += charge.probe_ids
            if message.hidden:
                hidden_s, hidden_op = hidden_s + message.count * charge.seconds, message.op
            else:
                open_s += message.count * charge.seconds
        slower = slowdowns(known, hidden_op)
        used += slower.probe_ids if hidden_s else ()
        total_s += slower.both_s(work_s, hidden_s) + open_s
    return PredictedFigures(time_s=total_s, probe_ids=tuple(dict.fromkeys(used)))


def _alone(step: DescribedWork, recipe: str, known: Sequence[Measurement]) -> Measurement | None:
    """The step of ranks by themselves whose work is most like that of a rank here."""
    wanted = step.counts.flop_model
    candidates = [
        point
        for point in known
        if point.kind == "parallel_step" and point.setup.parallel in (ALONE, ALONE_FSDP2) and point.usable_time
        and point.setup.recipe == recipe and point.setup.recompute == "none" and point.counts.flop_model
        and point.shape.model == step.shape.model and point.time.backward_median_s is not None
    ]  # fmt: skip
    if not candidates or not wanted:
        return None
    by_fsdp = "fsdp2" in (step.setup.parallel or "")

    def distance(point: Measurement) -> tuple[bool, float]:
        return (point.setup.parallel == ALONE_FSDP2) != by_fsdp, abs(_flop_ratio(step, point) - 1.0)

    return min(candidates, key=distance)


def _flop_ratio(step: DescribedWork, base: Measurement) -> float:
    """Arithmetic of the step over that of the steps alone, on as many ranks."""
    return (step.counts.flop_model or 0.0) / (base.counts.flop_model or 1.0)


def _work(step: DescribedWork, base: Measurement) -> Work:
    """A rank's work: that of a rank alone by its arithmetic, the update by the parameters that it holds."""
    at, flop = step.shape, _flop_ratio(step, base)
    forward_s = flop * (base.time.forward_median_s or 0.0)
    backward_s = flop * (base.time.backward_median_s or 0.0)
    if step.setup.recompute == "full":
        backward_s += forward_s
    waiting = 1.0 + bubble_ratio(at.pp or 1, at.micro_batches or 1, at.vp or 1)
    return Work(
        forward_s=forward_s * waiting,
        backward_s=backward_s * waiting,
        optimizer_s=(base.time.optimizer_median_s or 0.0) / held_parts(step),
    )


def held_parts(step: DescribedWork) -> float:
    """Into how many parts the parameters are divided that ranks update."""
    at = step.shape
    sharded = (at.dp or 1) * (at.cp or 1) if "fsdp2" in (step.setup.parallel or "") else 1
    return float((at.tp or 1) * (at.pp or 1) * sharded)

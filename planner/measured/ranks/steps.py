"""Time of a training step over several ranks, from each rank's work, its messages, and the overlap between them.

```
forward   work ▒▒▒▒▒▒▒▒▒▒▒▒                     hidden messages overlap the work of their phase, each slowing the
          sent   ░░░░  ░░░░                     other down as measured; exposed messages run between pieces of work
backward  work ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
          sent     ░░░░  ░░░░  ░░░░ ████        a pipeline adds the time in which its ranks wait for the first and
optimizer work ▒▒▒▒                             the last micro-batch
```

The work is measured on ranks that train independently but all at once, so it includes contention between the ranks of
a host. A parallelism also has costs besides messages: the copies of FSDP, the host time of each operator on distributed
tensors, a schedule that takes one sequence at a time. They are measured in steps that apply the parallelism over groups
of one rank. The excess of these steps over plain steps is added to the predicted step.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.lazy import dataclass
from planner.measured.layers.workloads import DescribedWork
from planner.measured.network.messages import StepMessage, pipeline_ratio
from planner.measured.ranks.collectives import MeasuredCollectives
from planner.measured.ranks.overlap import slowdowns
from planner.records.figures import PredictedFigures
from planner.records.measurement import Measurement
from planner.records.work import WorkShape

ALONE = "alone"
"""Value of `parallel` for steps without communication."""
SILENT_STEPS = {"fsdp2": "alone-fsdp2", "tp": "alone-tp", "pp": "alone-pp"}
"""Map from the name of a parallelism in `parallel` to the value of `parallel` for steps that have its other costs but
send nothing."""


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
    """Predict the seconds of a step over several ranks; empty if a part of it was not measured.

    Args:
        step: the step to predict.
        messages: the messages of its ranks.
        recipe: recipe of its precision.
        known: points of the same record: steps of ranks alone, collectives, overlap.
    """
    plain = _nearest_base(step, recipe, known, ALONE)
    if plain is None:
        return PredictedFigures()
    silent_steps = [
        silent
        for silent in (_nearest_base(step, recipe, known, SILENT_STEPS[name]) for name in parallelisms_of(step))
        if silent is not None
    ]
    collectives = MeasuredCollectives(known)
    work = _work(step, plain, silent_steps)
    total_s, used = 0.0, [base.probe_id for base in (plain, *silent_steps)]
    for phase, work_s in (
        ("forward", work.forward_s), ("backward", work.backward_s), ("optimizer", work.optimizer_s),
    ):  # fmt: skip
        hidden_s, exposed_s, hidden_op = 0.0, 0.0, None
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
                exposed_s += message.count * charge.seconds
        overlap = slowdowns(known, hidden_op)
        used += overlap.probe_ids if hidden_s else ()
        total_s += overlap.overlapped_s(work_s, hidden_s) + exposed_s
    return PredictedFigures(time_s=total_s, probe_ids=tuple(dict.fromkeys(used)))


def parallelisms_of(step: DescribedWork) -> tuple[str, ...]:
    """Parallelisms of `SILENT_STEPS` that a step uses."""
    names = (step.setup.parallel or "").replace("+", "-").split("-")
    return tuple(parallelism for parallelism in SILENT_STEPS if parallelism in names)


def _nearest_base(step: DescribedWork, recipe: str, known: Sequence[Measurement], parallel: str) -> Measurement | None:
    """Measured step of independent ranks whose work per rank is most similar to that of `step`."""
    candidates = [
        point
        for point in known
        if point.kind == "parallel_step" and point.setup.parallel == parallel and point.usable_time
        and point.setup.recipe == recipe and point.setup.recompute == "none" and point.counts.flop_model
        and point.shape.model == step.shape.model and point.time.backward_median_s is not None
    ]  # fmt: skip
    if not candidates or not step.counts.flop_model:
        return None
    return min(candidates, key=lambda point: abs(_flop_ratio(step, point) - 1.0))


def _flop_ratio(step: DescribedWork, base: Measurement) -> float:
    """FLOP per rank of a step over the FLOP per rank of a measured step of independent ranks."""
    step_flop = (step.counts.flop_model or 0.0) / _degrees(step.shape)
    return step_flop / ((base.counts.flop_model or 1.0) / (base.communication.world or _degrees(base.shape)))


def _degrees(shape: WorkShape) -> int:
    """Number of ranks among which a step is divided."""
    return (shape.tp or 1) * (shape.pp or 1) * (shape.cp or 1) * (shape.dp or 1)


def _work(step: DescribedWork, plain: Measurement, silent_steps: Sequence[Measurement]) -> Work:
    """Work of a rank: the passes of an independent rank scaled by FLOP, the update by the parameters that it holds.

    A parallelism adds host time per parameter to the update. Every rank holds a part of each parameter, so this
    addition is not divided among the ranks.
    """
    shape, flop_ratio = step.shape, _flop_ratio(step, plain)
    forward_s, backward_s = plain.time.forward_median_s or 0.0, plain.time.backward_median_s or 0.0
    passes_s, update_s = forward_s + backward_s, plain.time.optimizer_median_s or 0.0
    optimizer_s = update_s / held_parts(step)
    for silent in silent_steps:
        own_forward_s, own_backward_s = silent.time.forward_median_s, silent.time.backward_median_s or 0.0
        if own_forward_s is None:  # the schedule interleaves the passes
            backward_s += own_backward_s - passes_s
        else:
            forward_s += own_forward_s - (plain.time.forward_median_s or 0.0)
            backward_s += own_backward_s - (plain.time.backward_median_s or 0.0)
        optimizer_s += max((silent.time.optimizer_median_s or 0.0) - update_s, 0.0)
    if step.setup.recompute == "full":
        backward_s += forward_s
    pipeline_factor = (
        pipeline_ratio(shape.pp or 1, shape.micro_batches or 1, shape.vp or 1, slowest_ratio(shape))
        if shape.pp
        else 1.0
    )
    params_ratio = (step.counts.params or 1.0) / (plain.counts.params or step.counts.params or 1.0)
    return Work(
        forward_s=flop_ratio * forward_s * pipeline_factor,
        backward_s=flop_ratio * backward_s * pipeline_factor,
        optimizer_s=params_ratio * optimizer_s,
    )


def slowest_ratio(shape: WorkShape) -> float:
    """FLOP of a pipeline's last rank, which also has the output layer, over the mean of its ranks; 1 if unknown."""
    q, kv = (shape.heads or 0) * (shape.head_dim or 0), (shape.kv_heads or 0) * (shape.head_dim or 0)
    hidden, ffn, pp = shape.hidden or 0, shape.ffn_hidden or 0, shape.pp or 1
    layer = hidden * (2 * q + 2 * kv + 3 * ffn) + q * (shape.seq_len or 0)  # per token; attention halved for causality
    layers, output = (shape.layers or 0) * layer, hidden * (shape.vocab or 0)
    return (layers / pp + output) / ((layers + output) / pp) if layers else 1.0


def held_parts(step: DescribedWork) -> float:
    """Number of parts into which the parameters are divided, each updated by one rank."""
    shape = step.shape
    sharded = (shape.dp or 1) * (shape.cp or 1) if "fsdp2" in (step.setup.parallel or "") else 1
    return float((shape.tp or 1) * (shape.pp or 1) * sharded)

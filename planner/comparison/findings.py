"""Messages about what a comparison found, and what its log does not show."""

from __future__ import annotations

from planner.comparison.basis import MFU_INPUTS
from planner.comparison.bill import OnceCost
from planner.comparison.compare import Comparison
from planner.comparison.conventions import Count, Peak, Reading, Revealed, peaks_of
from planner.comparison.gap import GapRow
from planner.errors import Message
from planner.training.method import PRETRAIN, find_method
from planner.units import TERA

SHOWN_READINGS = 3
"""Number of conventions named where several agree."""
SMALL_RATIO = 0.02
"""Fraction of a step below which a difference from the plan does not count."""
SAME_PEAK_RATIO = 0.01
"""Tolerance between a peak that a log states and a datasheet's, since they round differently."""
TIMERS = {
    "Megatron-LM": "compare.timers.megatron", "DeepSpeed": "compare.timers.deepspeed",
    "torchtitan": "compare.timers.torchtitan",
}  # fmt: skip
"""How to make a framework log the parts of a step."""


CLOCK_S = 2.0
"""Rounding of the clock: times of day have whole seconds in some logs, one at either end."""
ATTENTION = {
    "causal": "compare.attention.causal", "full": "compare.attention.full", "none": "compare.attention.none",
}  # fmt: skip
PARAMETERS = {
    "matrices": "compare.parameters.matrices", "layers": "compare.parameters.layers", "all": "compare.parameters.all",
}  # fmt: skip
VERDICTS = {
    ("named", "tflops_per_gpu"): "compare.named.tflops_per_gpu", ("named", "mfu"): "compare.named.mfu",
    ("several", "tflops_per_gpu"): "compare.several.tflops_per_gpu", ("several", "mfu"): "compare.several.mfu",
    ("none", "tflops_per_gpu"): "compare.none.tflops_per_gpu", ("none", "mfu"): "compare.none.mfu",
    ("unknown", "tflops_per_gpu"): "compare.unknown.tflops_per_gpu", ("unknown", "mfu"): "compare.unknown.mfu",
}  # fmt: skip
"""Message by verdict and figure."""
PACES = {
    "as_planned": "compare.step.as_planned", "slower": "compare.step.slower", "faster": "compare.step.faster",
}  # fmt: skip
PARTS = {
    "step": "compare.part.step", "data": "compare.part.data", "compute": "compare.part.compute",
    "communication": "compare.part.communication", "optimizer": "compare.part.optimizer", "rest": "compare.part.rest",
    "slow": "compare.part.slow", "replayed": "compare.part.replayed", "stops": "compare.part.stops",
    "checkpoint": "compare.part.checkpoint", "evaluation": "compare.part.evaluation", "start": "compare.part.start",
    "other": "compare.part.other", "steps": "compare.part.steps", "outside": "compare.part.outside",
    "untold": "compare.part.untold",
}  # fmt: skip
"""Names of the parts of a step and of the kinds of time outside them."""


def count_words(count: Count) -> Message:
    """Return the words for a count of FLOP."""
    passes = f"{count.flop_per_parameter:.3g}N"
    if count.method != PRETRAIN:
        key = "compare.count_again" if count.recompute else "compare.count_method"
        return Message.of(
            key, passes=passes, method=find_method(count.method).name, attention=Message.of(ATTENTION[count.attention]),
            parameters=Message.of(PARAMETERS[count.parameters]),
        )  # fmt: skip
    return Message.of(
        "compare.count",
        passes=passes,
        attention=Message.of(ATTENTION[count.attention]),
        parameters=Message.of(PARAMETERS[count.parameters]),
    )


def peak_words(peak: Peak) -> Message:
    """Return the words for a peak."""
    key = "compare.peak.sparse" if peak.sparse else "compare.peak.dense"
    return Message.of(key, compute=peak.compute.upper(), tflops=peak.flop_per_s / TERA)


def reading_words(reading: Reading) -> Message:
    """Return the words for a convention: what is counted, and over which peak."""
    if reading.count is None:
        assert reading.peak is not None
        return Message.of("compare.over", peak=peak_words(reading.peak))
    if reading.peak is None:
        return count_words(reading.count)
    return Message.of("compare.count_over", count=count_words(reading.count), peak=peak_words(reading.peak))


def reveal_words(revealed: Revealed) -> Message:
    """Return the message about the convention of a printed figure."""
    key = VERDICTS[revealed.verdict, revealed.figure]
    if revealed.verdict == "unknown":
        return Message.of(key, printed=revealed.printed, flags=_flags(revealed.lacks))
    if revealed.verdict == "none":
        nearest = revealed.readings[0]
        return Message.of(
            key, printed=revealed.printed, nearest=reading_words(nearest), off_ratio=abs(nearest.error_ratio)
        )
    if revealed.verdict == "several":
        names = tuple(reading_words(reading) for reading in revealed.readings[:SHOWN_READINGS])
        return Message.of(key, printed=revealed.printed, conventions=names, count=len(revealed.readings))
    return Message.of(key, printed=revealed.printed, convention=reading_words(revealed.readings[0]))


def once_words(cost: OnceCost) -> Message:
    """Return the message about a cost paid once."""
    return Message.of("compare.once", label=cost.label, usd=cost.usd)


def _flags(names: tuple[str, ...]) -> tuple[Message, ...] | Message:
    if not names:
        return Message.of("compare.steps_time")
    return tuple(Message.of("compare.flag", name=name) for name in names)


def findings(comparison: Comparison) -> tuple[Message, ...]:
    """Return the findings from the log, those about the printed rate first."""
    messages = _printed_rate(comparison)
    messages += [reveal_words(revealed) for revealed in comparison.revealed]
    messages += _beyond(comparison)
    messages += _gap(comparison)
    log, use = comparison.log, comparison.use
    replayed, stops, slow = use.of("replayed"), use.of("stops"), use.of("slow")
    if replayed is not None:
        messages.append(Message.of("compare.replayed", steps=replayed.count, seconds=replayed.seconds))
    if log.attempts > 1:
        seconds = 0.0 if stops is None else stops.seconds
        key = "compare.restarts" if stops is not None else "compare.restarts_untimed"
        messages.append(Message.of(key, restarts=log.attempts - 1, seconds=seconds))
    if slow is not None:
        messages.append(Message.of("compare.slow", lines=slow.count, seconds=slow.seconds))
    if comparison.basis.differs:
        names = tuple(Message.of("compare.flag", name=name) for name in comparison.basis.differs)
        messages.append(Message.of("compare.differs", names=names))
    return tuple(messages)


RATES = {
    "gpus": "compare.rate.gpus", "global_batch": "compare.rate.global_batch", "total": "compare.rate.total",
    "differs": "compare.rate.differs", "impossible": "compare.rate.impossible",
}  # fmt: skip
"""Message by the verdict on the printed tokens per second."""
SETTLE = ("gpus", "global_batch", "seq_len")
"""Inputs that would settle what the printed rate leaves open."""


def _printed_rate(comparison: Comparison) -> list[Message]:
    """Return the message where the printed tokens per second contradict GPUs and batch; none where they agree."""
    rate, basis = comparison.printed_rate, comparison.basis
    if rate is None or rate.verdict not in RATES or basis.gpus is None:
        return []
    names = ("model", *SETTLE) if rate.verdict == "impossible" else SETTLE
    return [
        Message.of(
            RATES[rate.verdict], printed=rate.printed, expected=rate.expected, all_gpus=rate.expected * basis.gpus,
            gpus=basis.gpus, batch=basis.global_batch or 0, planned=rate.planned or 0,
            used=comparison.tokens_per_s_per_gpu or 0.0,
            flags=tuple(Message.of("compare.flag", name=name) for name in names),
        )
    ]  # fmt: skip


def _beyond(comparison: Comparison) -> list[Message]:
    """Return messages about impossible figures: too many FLOP/s, a peak that the GPU lacks, more time than passed."""
    messages: list[Message] = []
    basis, use = comparison.basis, comparison.use
    mfu = comparison.utilisations[0].mfu_dense_ratio if comparison.utilisations else None
    if mfu is not None and mfu > 1.0 and basis.gpu is not None and basis.model is not None:
        names = tuple(Message.of("compare.flag", name=name) for name in MFU_INPUTS)  # one of them is wrong
        messages.append(Message.of("compare.beyond.mfu", mfu_ratio=mfu, gpu=basis.gpu.id, names=names))
    printed = next((revealed.printed for revealed in comparison.revealed if revealed.figure == "mfu"), None)
    if printed is not None and printed > 1.0:
        messages.append(Message.of("compare.beyond.printed", printed=printed))
    stated = comparison.log.facts.get("peak_flop_per_s")
    if isinstance(stated, float) and basis.gpu is not None and basis.precision is not None:
        peaks = peaks_of(basis.gpu, basis.precision)
        if all(abs(stated / peak.flop_per_s - 1.0) > SAME_PEAK_RATIO for peak in peaks):
            messages.append(Message.of("compare.beyond.peak", tflops=stated / TERA, gpu=basis.gpu.id))
    spent = sum(kind.seconds for kind in use.spent)
    if use.wall_s is not None and spent > (1.0 + SMALL_RATIO) * use.wall_s + _before_clock_s(comparison):
        messages.append(Message.of("compare.beyond.clock", spent_s=spent, wall_s=use.wall_s))
    return messages


def _before_clock_s(comparison: Comparison) -> float:
    """Return the time that steps may take beyond the clock: the clock starts at the end of the first line's steps."""
    steps, pace = comparison.log.steps, comparison.pace
    return CLOCK_S + (0.0 if pace is None or not len(steps) else pace.step_s.mid * float(steps.count[0]))


def _gap(comparison: Comparison) -> list[Message]:
    gap = comparison.gap
    if gap is None:
        data, pace = comparison.parts.get("data"), comparison.pace
        if data is None or pace is None:
            return []
        return [Message.of("compare.data", seconds=data, share_ratio=data / pace.step_s.mid)]
    key = "as_planned" if abs(gap.ratio) <= SMALL_RATIO else "slower" if gap.ratio > 0 else "faster"
    words = [
        Message.of(
            PACES[key], step_s=gap.step_s, plan_s=gap.plan_step_s.mid, ratio=abs(gap.ratio),
            inside=Message.of("compare.inside" if gap.inside else "compare.outside", low=gap.plan_step_s.low,
                              high=gap.plan_step_s.high),
        )
    ]  # fmt: skip
    main = gap.main
    if main is not None and main.excess_s > SMALL_RATIO * gap.plan_step_s.mid:
        words.append(_main(main))
    return words


def _main(row: GapRow) -> Message:
    part = Message.of(PARTS[row.part])
    return Message.of("compare.main", part=part, log_s=row.log_s, plan_s=row.plan_s or 0.0, excess_s=row.excess_s)


def cannot_tell(comparison: Comparison) -> tuple[Message, ...]:
    """Return what the log does not show, and what would make it show that."""
    log, basis = comparison.log, comparison.basis
    messages: list[Message] = []
    if comparison.pace is None:
        messages.append(Message.of("compare.lacks.time"))
    rate_known = comparison.tokens_per_s_per_gpu is not None
    missing = tuple(name for name in basis.missing if not (rate_known and name in ("gpus", "global_batch")))
    if missing:
        messages.append(Message.of("compare.lacks.mfu", flags=_flags(missing)))
    if not {"compute", "communication"} & set(comparison.parts):
        messages.append(Message.of(TIMERS.get(log.framework, "compare.timers.other")))
    if comparison.use.wall_s is None:
        messages.append(Message.of("compare.lacks.clock"))
    elif log.durations_from == "clock":
        messages.append(Message.of("compare.lacks.pauses"))
    messages += _end_and_bill(comparison)
    ahead = comparison.forecast
    if ahead is not None and log.attempts == 1 and comparison.remaining_steps:
        planned = ahead.stops_from == "plan"
        messages.append(Message.of("compare.lacks.stops_planned" if planned else "compare.lacks.stops"))
    return tuple(messages)


def _end_and_bill(comparison: Comparison) -> list[Message]:
    """Return what the end and the bill lack."""
    messages: list[Message] = []
    if not comparison.log.reached:
        messages.append(Message.of("compare.lacks.numbers"))
    elif comparison.last_step is None:
        messages.append(Message.of("compare.lacks.length"))
    if comparison.usd_per_gpu_h is None:
        messages.append(Message.of("compare.lacks.price"))
    elif comparison.basis.gpus is None:
        messages.append(Message.of("compare.lacks.gpus"))
    return messages


def notes(comparison: Comparison) -> tuple[Message, ...]:
    """Return notes on how the file was read: what was left out of it."""
    log = comparison.log
    messages: list[Message] = []
    if log.cut:
        messages.append(Message.of("compare.note.cut", line=log.lines))
    if log.damaged_count:
        messages.append(Message.of("compare.note.damaged", count=log.damaged_count, lines=tuple(log.damaged)))
    if log.dropped:
        messages.append(Message.of("compare.note.ranks", count=log.dropped))
    if "interleaved" in log.notes:
        messages.append(Message.of("compare.note.interleaved"))
    if log.durations_from == "timers":
        messages.append(Message.of("compare.note.timers"))
    return tuple(messages)

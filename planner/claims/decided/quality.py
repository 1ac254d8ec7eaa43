"""Claims about the effect of lower precision on training quality, judged by the results of `mpplan numerics`.

The trained models are far smaller than those of the claims, so that these cases can contradict but not settle them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from planner.claims.case import Case, left_out, looked_at
from planner.claims.claim import load_claims
from planner.claims.decided.decision import Decider, Decision, times
from planner.claims.evidence import planned, published
from planner.claims.evidence.known import Known
from planner.claims.evidence.published import SPEED, Asked
from planner.claims.evidence.trained import Flushing, Pairs, Scaling, Trained
from planner.errors import Message
from planner.evidence import Z90

SCALES_LOG2 = (3, 10, 15)
"""Fixed loss scales that are examined: 8 and 32 768, the ends of the claim's range, and 1024 between them."""
NOTICED = 0.001
"""Smallest share of gradients or steps that counts as a loss: a tenth of a percent, like the tenth of a point of c30;
smaller losses would not show in anything measured here."""
LEARNED = 0.92
"""Accuracy in FP32 from which a run counts, which is the claim's accuracy. Below it, accuracy rises so steeply that a
difference of a few steps decides, and a network that has learned little has little to lose."""
SAME = (0.95, 1.05)
"""Range that counts as the same speed or memory: the scatter of a timed step."""
Z_20 = 0.842
"""Quantile of the normal distribution for a test that succeeds in four of five attempts."""


def fixed_scale(known: Known) -> Decision:
    """c29: the share of gradients flushed to zero by FP16 that a fixed scale recovers.

    "Recovers" names no share; the claim's row takes it to mean most of them, that is more than half. A scale that
    overflows recovers nothing, since its step is not taken.
    """
    trained = known.training
    cases = [
        case for seen in trained.flushing
        for case in _recovered(seen, next((s for s in trained.scaling if s.task == seen.task), None), trained)
    ]  # fmt: skip
    lost = [
        Message.of("claim.note.flushed", task=seen.task, share=seen.fp16_flushed_ratio(0), values=seen.values)
        for seen in trained.flushing
    ]
    least = load_claims()["c29"].low or 0.0
    notes = [_note(trained), Message.of("claim.note.recovers", least=least), *lost]
    return Decision(cases=cases or [_untrained(trained)], notes=notes)


def _recovered(seen: Flushing, scaling: Scaling | None, trained: Trained) -> Iterator[Case]:
    lost = seen.fp16_flushed_ratio(0)
    if not lost:
        why = Message.of("claim.why.nothing_flushed", task=seen.task)
        yield left_out(f"{seen.task}, FP16", basis="trained", source=trained.source, why=why)
        return
    overflows_from = None if scaling is None else scaling.overflows_from_log2
    for scale in SCALES_LOG2:
        overflows = overflows_from is not None and scale >= overflows_from
        value = 0.0 if overflows else 1.0 - seen.fp16_flushed_ratio(scale) / lost
        what = f"{seen.task}, FP16, loss scale {2**scale:,}" + (", ∞" if overflows else "")
        yield Case.exactly(value, what=what, basis="trained", source=trained.source, stands_in=True)


def accuracy(known: Known) -> Decision:
    """c30: the accuracy that mixed precision loses; only a test with enough power counts.

    The runs in FP32 must have learned the task. A case then agrees where the upper end of the loss's 90 % interval is
    within the claim's tenth of a point, and disagrees where the whole interval is beyond it (a one-sided test at 5 %
    each). An interval across it is inconclusive, whatever its mean.
    """
    trained, most = known.training, load_claims()["c30"].high or 0.0
    cases: list[Case] = []
    for pair in trained.pairs:
        lost = _lost(pair, most, trained)
        cases.append(lost)
        if pair.metric == "accuracy" and lost.beside:
            cases.append(_cannot_tell(pair, most, trained))
    looked = looked_at("BERT-Large", basis="published", source=published.FILE, why=Message.of("claim.why.accuracy"))
    notes = [_note(trained), Message.of("claim.note.accuracy", least=LEARNED, most=most)]
    return Decision(cases=[*cases, looked], notes=notes)


def _lost(pair: Pairs, most: float, trained: Trained) -> Case:
    base = "" if pair.baseline is None or pair.metric != "accuracy" else f" {pair.baseline:.0%}"
    what = f"{pair.task}, FP32{base} → {pair.precision.upper()}, {pair.metric}, {pair.steps:,} steps"
    source = trained.source
    if pair.metric != "accuracy":
        return Case(
            what=what, basis="trained", source=source, low=pair.low, mid=pair.mid, high=pair.high, count=pair.pairs,
            unit="nats", stands_in=True, beside=True,
        )  # fmt: skip
    low, mid, high = -pair.high, -pair.mid, -pair.low
    across = low <= most < high or not _learned(pair)
    return Case(
        what=what, basis="trained", source=source, low=low, mid=mid, high=high,
        count=pair.pairs, stands_in=True, beside=across,
    )  # fmt: skip


def _learned(pair: Pairs) -> bool:
    return pair.baseline is None or pair.baseline >= LEARNED


def _cannot_tell(pair: Pairs, most: float, trained: Trained) -> Case:
    """Return why a pair of precisions does not decide, and how many pairs of runs would decide if nothing were lost."""
    what = f"{pair.task}, {pair.precision.upper()}"
    if not _learned(pair):
        why = Message.of(
            "claim.why.not_learned", task=pair.task, precision=pair.precision.upper(), low=-pair.high, mid=-pair.mid,
            high=-pair.low, accuracy=pair.baseline or 0.0, least=LEARNED,
        )  # fmt: skip
        return looked_at(what, basis="trained", source=trained.source, why=why)
    needed = ceil(((Z90 + Z_20) * min(pair.sd or 0.0, 1.0) / most) ** 2)
    why = Message.of(
        "claim.why.cannot_tell", task=pair.task, precision=pair.precision.upper(), pairs=pair.pairs,
        low=-pair.high, high=-pair.low, most=most, needed=max(needed, pair.pairs + 1),
    )  # fmt: skip
    return looked_at(what, basis="trained", source=trained.source, why=why)


def bf16_stability(known: Known) -> Decision:
    """c31: BF16 without a scaler beside FP16 with and without one, in stability, speed and memory."""
    trained = known.training
    question = {**planned.LLAMA, "gpu": planned.A100}
    speed = planned.faster(known, "fp16", "bf16", question)
    pairs = published.cases(Asked(metrics=SPEED, frm=("fp16",), to=("bf16",)), times)
    alike = [replace(case, claimed=SAME) for case in (speed, *pairs)]
    saved = planned.memory_saved(known, "fp16", "bf16", planned.BERT, gpu=planned.A100, micro_batch=32, act_ckpt="none")
    left = 1.0 - (saved.mid or 0.0)
    memory = Case.exactly(left, what=f"{saved.what}, GiB", basis="planner", source=saved.source, claimed=SAME)
    large = looked_at("FP16 : BF16", basis="published", source=published.FILE, why=Message.of("claim.why.stability"))
    notes = [_note(trained), Message.of("claim.note.stability", least=NOTICED)]
    return Decision(cases=[*_stability(trained), *alike, memory, large], notes=notes)


def _stability(trained: Trained) -> Iterator[Case]:
    """Return the losses that FP16 has and BF16 does not: flushed gradients without a scaler, skipped steps with one.

    BF16 runs that diverged are included.
    """
    case = Case(what="", basis="trained", source=trained.source, stands_in=True, unit="share_lost")
    for seen in trained.flushing:
        gap = seen.fp16_flushed_ratio(0) - seen.bf16_flushed_ratio
        what = f"{seen.task}, ∇ → 0, FP16 − BF16, loss scale 1"
        yield replace(case, what=what, low=gap, mid=gap, high=gap, claimed=(NOTICED, None))
    usual = [(part.task, run) for part in trained.scaling for run in part.runs if run.usual]
    for task, run in usual:
        observed, long_run = run.skipped / run.steps, run.long_run_skipped_ratio
        yield replace(
            case, what=f"{task}, FP16, GradScaler, skipped steps", low=min(observed, long_run), mid=long_run,
            high=max(observed, long_run), count=run.steps, claimed=(NOTICED, None),
        )  # fmt: skip
    for pair in trained.pairs:
        if pair.precision == "bf16":
            ratio = pair.diverged / max(pair.pairs + pair.diverged, 1)
            what = f"{pair.task}, BF16, no scaler, diverged runs"
            yield replace(case, what=what, low=ratio, mid=ratio, high=ratio, count=pair.pairs, claimed=(0.0, 0.0))


def _note(trained: Trained) -> Message:
    return Message.of("claim.note.trained", device=trained.device, torch=trained.torch)


def _untrained(trained: Trained) -> Case:
    """Return the case that the available training results do not decide."""
    why = Message.of("claim.why.untrained")
    return looked_at("mpplan numerics", basis="trained", source=trained.source, why=why)


DECIDERS: dict[str, Decider] = {"c29": fixed_scale, "c30": accuracy, "c31": bf16_stability}

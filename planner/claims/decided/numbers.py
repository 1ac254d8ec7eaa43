"""Claims about number formats: what FP16 holds, what a loss scale mends, and what that does to training."""

from __future__ import annotations

from statistics import fmean, stdev

from planner.claims.case import Case, looked_at
from planner.claims.claim import load_claims
from planner.claims.decided.decision import Decider, Decision, times
from planner.claims.evidence import planned, published
from planner.claims.evidence.formats import largest_fp16, smallest_normal_fp16
from planner.claims.evidence.known import Known
from planner.claims.evidence.published import SPEED
from planner.claims.evidence.trial import SCALES, SEEDS, SIZES, SMALL, STEPS, trial, zeroed_at
from planner.errors import Message
from planner.training.loss_scalers import load_loss_scalers

TRIAL = "planner/claims/evidence/trial.py"
INTERVAL_STEPS = 20
"""Steps without overflow after which the trial's scale doubles: a run of hundreds of steps sees some of them."""
MEGATRON = 2.0**32
"""A start far above what FP16 holds: that of Megatron-Core."""
POINT = 0.001
"""A tenth of a percentage point of accuracy."""


def largest(known: Known) -> Decision:
    """c26: the largest finite value of FP16 and where overflow starts."""
    figures = load_claims()["c26"].figures
    (top,), (rounded,), (overflows,) = (figures[name] for name in ("largest", "rounded", "overflows"))
    return Decision(cases=largest_fp16(top, rounded, overflows))


def smallest(known: Known) -> Decision:
    """c27: the smallest normal value of FP16."""
    return Decision(cases=[smallest_normal_fp16()])


def dynamic_scale(known: Known) -> Decision:
    """c28: where dynamic loss scalers start, grow and fall by default."""
    figures = load_claims()["c28"].figures
    cases = [
        Case.exactly(
            value, what=f"{scaler.name}, {what}", basis="published", source=scaler.source, unit=unit,
            claimed=(figures[what][0], figures[what][-1]),
        )
        for scaler in load_loss_scalers().values()
        for what, value, unit in (
            ("init_scale", scaler.initial_scale, "scale"),
            ("growth_factor", scaler.growth_factor, "ratio"),
            ("backoff_factor", scaler.backoff_factor, "ratio"),
            ("growth_interval", scaler.growth_interval_steps, "steps"),
        )
    ]  # fmt: skip
    return Decision(cases=[*cases, *_settled(figures["init_scale"][-1]), *_settled(MEGATRON)], notes=[_trial_note()])


def _settled(start: float) -> list[Case]:
    """Beside the defaults: where a dynamic scale goes from a start, and how many steps it skips on the way."""
    run = trial("fp16", SEEDS[0], start, INTERVAL_STEPS)
    what = f"FP16, {start:g}, interval {INTERVAL_STEPS}"
    return [
        Case.exactly(value, what=f"{what}, {name}", basis="trial", source=TRIAL, unit=unit, stands_in=True, beside=True)
        for name, value, unit in (("scale", run.scale, "scale"), ("overflows", float(run.overflows), "steps"))
    ]


def fixed_scale(known: Known) -> Decision:
    """c29: how much of the gradients that FP16 flushes to zero a fixed scale brings back."""
    lost = {scale: fmean(zeroed_at("fp16", seed, scale, SMALL) for seed in SEEDS) for scale in (1.0, *SCALES)}
    cases = [
        Case.exactly(
            1.0 - lost[scale] / lost[1.0],
            what=f"FP16, loss scale {scale:g}",
            basis="trial",
            source=TRIAL,
            stands_in=True,
        )
        for scale in SCALES
    ]
    return Decision(cases=cases, notes=[_trial_note(), Message.of("claim.note.zeroed", share=lost[1.0])])


def accuracy(known: Known) -> Decision:
    """c30: how much accuracy mixed precision loses, over several seeds."""
    cases = []
    for name in ("fp16", "bf16"):
        scale = 1024.0 if name == "fp16" else 1.0
        lost = [trial("fp32", seed).accuracy - trial(name, seed, scale).accuracy for seed in SEEDS]
        noise = stdev(lost) / len(lost) ** 0.5
        more: dict[str, object] = {"stands_in": True, "beside": noise > POINT}
        cases.append(Case.of([fmean(lost)], what=f"FP32 → {name.upper()}", basis="trial", source=TRIAL, **more))
    why = Message.of("claim.why.accuracy")
    looked = looked_at("BERT-Large", basis="published", source=published.FILE, why=why)
    return Decision(cases=[*cases, looked], notes=[_trial_note()])


def bf16_stability(known: Known) -> Decision:
    """c31: BF16 beside FP16: gradients lost without a loss scale, speed, and memory."""
    lost = [
        Case.of(
            [zeroed_at(name, seed, 1.0, SMALL) for seed in SEEDS], what=f"{name.upper()}, loss scale 1, ∇ → 0",
            basis="trial", source=TRIAL, unit="share_lost", stands_in=True,
            claimed=(0.0, 0.01) if name == "bf16" else (0.01, 1.0),
        )
        for name in ("bf16", "fp16")
    ]  # fmt: skip
    same = (0.95, 1.05)
    question = {**planned.LLAMA, "gpu": planned.A100}
    speed = planned.faster(known, "fp16", "bf16", question)
    pairs = published.cases(SPEED, times, frm=("fp16",), to=("bf16",))
    alike = [
        Case(what=case.what, basis=case.basis, source=case.source, low=case.low, mid=case.mid, high=case.high,
             count=case.count, claimed=same)
        for case in (speed, *pairs)
    ]  # fmt: skip
    saved = planned.memory_saved(known, "fp16", "bf16", planned.BERT, gpu=planned.A100, micro_batch=32, act_ckpt="none")
    left = 1.0 - (saved.mid or 0.0)
    memory = Case.exactly(left, what=f"{saved.what}, GiB", basis="planner", source=saved.source, claimed=same)
    return Decision(cases=[*lost, *alike, memory], notes=[_trial_note()])


def _trial_note() -> Message:
    sizes = " × ".join(str(size) for size in SIZES)
    return Message.of("claim.note.trial", sizes=sizes, steps=STEPS, seeds=len(SEEDS))


DECIDERS: dict[str, Decider] = {
    "c26": largest,
    "c27": smallest,
    "c28": dynamic_scale,
    "c29": fixed_scale,
    "c30": accuracy,
    "c31": bf16_stability,
}

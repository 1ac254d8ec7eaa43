"""Claims about speed: the speed-up of a precision, a format or another kind of software."""

from __future__ import annotations

from dataclasses import replace

from planner.claims.case import Case, looked_at
from planner.claims.claim import load_claims
from planner.claims.decided.decision import HALF, WIDE, Decider, Decision, saved, times
from planner.claims.evidence import measured, planned, published, software
from planner.claims.evidence.arithmetic import peak_ratio
from planner.claims.evidence.kernels import product_gain
from planner.claims.evidence.known import Known, published_runs
from planner.claims.evidence.published import FILE, SPEED, Asked
from planner.errors import Message
from planner.parallelism.slowest import expected_max

VOLTA_TO_AMPERE = ("v100-sxm2-32gb", "t4", "a100-sxm4-80gb")
HALVED = Asked(metrics=SPEED, frm=WIDE, to=HALF)
"""Pairs of FP32 or TF32 with FP16 or BF16."""
HALVED_RESNET, HALVED_BERT = replace(HALVED, model="ResNet-50"), replace(HALVED, model="BERT-Large")


def mixed_precision(known: Known) -> Decision:
    """c06: whole training steps in mixed precision against FP32 and TF32."""
    cases = [
        *published.cases(HALVED, times),
        *published.cases(HALVED_RESNET, times),
        planned.faster(known, "fp32", "fp16", planned.RESNET, gpu=planned.V100),
        planned.faster(known, "fp32", "fp16", planned.BERT, gpu=planned.V100),
        planned.faster(known, "tf32", "bf16", planned.LLAMA, gpu=planned.A100),
        planned.faster(known, "fp32", "bf16", planned.LLAMA, gpu=planned.A100),
        *measured.steps(known, measured.speed, frm=WIDE),
    ]
    return Decision(cases=cases, notes=published.contradictions(HALVED))


def bert_large(known: Known) -> Decision:
    """c07 and c08: the share of BERT-Large's training time that mixed precision saves."""
    cases = [
        *published.cases(HALVED_BERT, saved),
        planned.saved(known, "duration_days", "fp32", "fp16", planned.BERT, gpu=planned.V100),
        planned.saved(known, "duration_days", "tf32", "fp16", planned.BERT, gpu=planned.A100),
        *measured.steps(known, measured.time_saved, frm=WIDE, model="bert"),
    ]
    return Decision(cases=cases, notes=published.contradictions(HALVED_BERT))


def fp16_products(known: Known) -> Decision:
    """c09: matrix products in FP16 against FP32."""
    cases = [
        *(peak_ratio(gpu, "fp32", "fp16") for gpu in VOLTA_TO_AMPERE),
        *(
            planned.product_speeds(known, "fp32", "fp16", planned.BERT, gpu=gpu, micro_batch=2, act_ckpt="none")
            for gpu in VOLTA_TO_AMPERE
        ),
        *measured.products(known, frm=("fp32",), to=("fp16",)),
    ]
    return Decision(cases=cases, notes=[Message.of("claim.note.whole_step")])


def tf32(known: Known) -> Decision:
    """c10: TF32 against FP32, whole steps."""
    cases = [
        *published.cases(Asked(metrics=SPEED, frm=("fp32",), to=("tf32",)), times),
        planned.faster(known, "fp32", "tf32", planned.RESNET, gpu=planned.A100),
        planned.faster(known, "fp32", "tf32", planned.BERT, gpu=planned.A100),
        planned.faster(known, "fp32", "tf32", planned.LLAMA, gpu=planned.A100),
        *measured.steps(known, measured.speed, frm=("fp32",), to=("tf32",)),
    ]
    return Decision(cases=cases)


def fp8(known: Known) -> Decision:
    """c11: FP8 against BF16 in training and in its products; beside it a datasheet's peak, which no kernel reaches."""
    asked = Asked(metrics=SPEED, frm=("bf16",), to=("fp8", "mxfp8"))
    cases = [
        *(product_gain("h100-sxm5-80gb", size) for size in (2048, 4096, 8192)),
        *published.cases(asked, times),
        *published.cases(replace(asked, model="DeepSeek-V3"), times),
        planned.faster(known, "bf16", "fp8", planned.DEEPSEEK),
        *measured.steps(known, measured.speed, frm=("bf16-fsdp",), to=("fp8",)),
        *measured.products(known, frm=("bf16-autocast",), to=("fp8",)),
        replace(peak_ratio("h800-sxm5-80gb", "bf16", "fp8"), beside=True),
    ]
    return Decision(cases=cases, notes=[Message.of("claim.note.peak"), *published.contradictions(asked)])


def fp16_alone(known: Known) -> Decision:
    """c12: mixed precision against FP32 and TF32; no publication has FP16 without FP32 master weights."""
    low = load_claims()["c12"].low
    asked = Asked(metrics=SPEED, frm=WIDE, to=("fp16",))
    mixed = [
        *published.cases(asked, times),
        *measured.steps(known, measured.speed, frm=WIDE, to=("fp16",)),
    ]
    alone = looked_at("FP16, no FP32 weights", basis="published", source=FILE, why=Message.of("claim.why.fp16_alone"))
    cases = [*(replace(case, claimed=(low, low)) for case in mixed), alone]
    return Decision(cases=cases, notes=published.contradictions(asked))


def fsdp_and_deepspeed(known: Known) -> Decision:
    """c21: FSDP against DeepSpeed's ZeRO on the same workload."""
    return _software(software.FSDP, software.DEEPSPEED)


def yafsdp(known: Known) -> Decision:
    """c22: YaFSDP against FSDP on the same workload."""
    return _software(software.YAFSDP, software.FSDP)


def _software(first: str, second: str) -> Decision:
    """Let only runs that agree in everything decide; nearly alike runs are shown beside the verdict."""
    counts = [len(software.runs_with(name)) for name in (first, second)]
    cases = [*software.same_workloads(first, second), *software.nearest(first, second)]
    if not any(not case.beside for case in cases):
        key = "claim.why.no_pairs" if counts[0] else "claim.why.no_runs"
        why = Message.of(
            key, runs=len(published_runs()), first=first, n_first=counts[0], second=second, n_second=counts[1]
        )
        cases = [looked_at(f"{first} : {second}", basis="published", source=FILE, why=why), *cases]
    return Decision(cases=cases)


def up_to_six(known: Known) -> Decision:
    """c23: the largest speed-ups of mixed precision on one GPU."""
    cases = [
        *published.cases(HALVED, times),
        planned.faster(known, "fp32", "fp16", planned.RESNET, gpu=planned.A100),
        planned.faster(known, "fp32", "bf16", planned.BERT, gpu=planned.A100),
        planned.faster(known, "fp32", "bf16", planned.BERT, gpu=planned.H100),
        *measured.steps(known, measured.speed, frm=("fp32",)),
    ]
    return Decision(cases=cases, notes=published.contradictions(HALVED))


def asynchronous(known: Known) -> Decision:
    """c33: the cost of waiting for the slowest worker, and the staleness of gradients without waiting.

    That asynchronous workers do not wait is true by definition, so no measurement could contradict it, and the wait is
    only shown beside the verdict. Whether not waiting pays off depends on the accuracy, of which no run is available.
    """
    source = "planner/parallelism/slowest.py: expected largest of N normal draws"
    figures = load_claims()["c33"].figures
    (workers,), (jitter,) = figures["workers"], figures["jitter_ratio"]
    cases = [_waits(int(workers * more), jitter, source) for more in (0.125, 1, 8)]
    staleness = Message.of("claim.note.staleness", workers=int(workers), updates=int(workers) - 1)
    why = Message.of("claim.why.staleness")
    return Decision(
        cases=[looked_at("accuracy", basis="arithmetic", source=source, why=why), *cases], notes=[staleness]
    )


def _waits(workers: int, jitter: float, source: str) -> Case:
    """Return the time of a synchronous step over that of an asynchronous step: the slowest of N over the mean."""
    ratio = 1.0 + jitter * float(expected_max(float(workers)))
    what = f"N = {workers}, σ = {jitter:.0%}"
    return Case.exactly(ratio, what=what, basis="arithmetic", source=source, beside=True)


DECIDERS: dict[str, Decider] = {
    "c06": mixed_precision,
    "c07": bert_large,
    "c08": bert_large,
    "c09": fp16_products,
    "c10": tf32,
    "c11": fp8,
    "c12": fp16_alone,
    "c21": fsdp_and_deepspeed,
    "c22": yafsdp,
    "c23": up_to_six,
    "c33": asynchronous,
}

"""Claims about speed: how many times as fast a precision, a format or another kind of software is."""

from __future__ import annotations

from planner.claims.case import Case, looked_at
from planner.claims.claim import load_claims
from planner.claims.decided.decision import HALF, WIDE, Decider, Decision, saved, times
from planner.claims.evidence import measured, planned, published
from planner.claims.evidence.arithmetic import peak_ratio
from planner.claims.evidence.kernels import product_gain
from planner.claims.evidence.known import Known, published_runs
from planner.claims.evidence.published import FILE, SPEED
from planner.errors import Message
from planner.parallelism.slowest import expected_max

VOLTA_TO_AMPERE = ("v100-sxm2-32gb", "t4", "a100-sxm4-80gb")


def mixed_precision(known: Known) -> Decision:
    """c06: whole training steps in mixed precision against FP32 and TF32."""
    cases = [
        *published.cases(SPEED, times, frm=WIDE, to=HALF),
        *published.cases(SPEED, times, frm=WIDE, to=HALF, model="ResNet-50"),
        planned.faster(known, "fp32", "fp16", planned.RESNET, gpu=planned.V100),
        planned.faster(known, "fp32", "fp16", planned.BERT, gpu=planned.V100),
        planned.faster(known, "tf32", "bf16", planned.LLAMA, gpu=planned.A100),
        planned.faster(known, "fp32", "bf16", planned.LLAMA, gpu=planned.A100),
        *measured.steps(known, measured.speed, frm=WIDE),
    ]
    return Decision(cases=cases)


def bert_large(known: Known) -> Decision:
    """c07 and c08: the share of BERT-Large's training time that mixed precision saves."""
    cases = [
        *published.cases(SPEED, saved, frm=WIDE, to=HALF, model="BERT-Large"),
        planned.saved(known, "duration_days", "fp32", "fp16", planned.BERT, gpu=planned.V100),
        planned.saved(known, "duration_days", "tf32", "fp16", planned.BERT, gpu=planned.A100),
        *measured.steps(known, measured.time_saved, frm=WIDE, model="bert"),
    ]
    return Decision(cases=cases)


def fp16_products(known: Known) -> Decision:
    """c09: matrix products in FP16 against FP32."""
    cases = [
        *(peak_ratio(gpu, "fp32", "fp16") for gpu in VOLTA_TO_AMPERE),
        *(
            planned.product_speeds(known, "fp32", "fp16", planned.BERT, gpu=gpu, micro_batch=4, act_ckpt="none")
            for gpu in VOLTA_TO_AMPERE
        ),
        *measured.products(known, frm=("fp32",), to=("fp16",)),
    ]
    return Decision(cases=cases)


def tf32(known: Known) -> Decision:
    """c10: TF32 against FP32, whole steps."""
    cases = [
        *published.cases(SPEED, times, frm=("fp32",), to=("tf32",)),
        planned.faster(known, "fp32", "tf32", planned.RESNET, gpu=planned.A100),
        planned.faster(known, "fp32", "tf32", planned.BERT, gpu=planned.A100),
        planned.faster(known, "fp32", "tf32", planned.LLAMA, gpu=planned.A100),
        *measured.steps(known, measured.speed, frm=("fp32",), to=("tf32",)),
    ]
    return Decision(cases=cases)


def fp8(known: Known) -> Decision:
    """c11: FP8 against BF16, products and whole steps."""
    cases = [
        *(product_gain("h100-sxm5-80gb", size) for size in (2048, 4096, 8192)),
        peak_ratio("h800-sxm5-80gb", "bf16", "fp8"),
        *published.cases(SPEED, times, frm=("bf16",), to=("fp8",)),
        planned.faster(known, "bf16", "fp8", planned.DEEPSEEK),
        *measured.steps(known, measured.speed, frm=("bf16-fsdp",), to=("fp8",)),
        *measured.products(known, frm=("bf16-autocast",), to=("fp8",)),
    ]
    return Decision(cases=cases)


def fp16_alone(known: Known) -> Decision:
    """c12: FP16 against FP32; nobody publishes FP16 without FP32 master weights."""
    cases = [
        *published.cases(SPEED, times, frm=("fp32",), to=("fp16",)),
        *measured.steps(known, measured.speed, frm=("fp32",), to=("fp16",)),
        looked_at("FP16, no FP32 weights", basis="published", source=FILE, why=Message.of("claim.why.fp16_alone")),
    ]
    return Decision(cases=cases)


def fsdp_and_deepspeed(known: Known) -> Decision:
    """c21: FSDP against DeepSpeed on the same workload."""
    return _software("FSDP", "DeepSpeed")


def yafsdp(known: Known) -> Decision:
    """c22: YaFSDP against FSDP on the same workload."""
    return _software("YaFSDP", "FSDP")


def _software(first: str, second: str) -> Decision:
    cases = published.same_workloads(first, second)
    if cases:
        return Decision(cases=cases)
    frameworks = [row.run.framework.lower() for row in published_runs()]
    counts = [sum(name.lower() in framework for framework in frameworks) for name in (first, second)]
    why = Message.of(
        "claim.why.no_pairs", runs=len(frameworks), first=first, n_first=counts[0], second=second, n_second=counts[1]
    )
    return Decision(cases=[looked_at(f"{first} : {second}", basis="published", source=FILE, why=why)])


def up_to_six(known: Known) -> Decision:
    """c23: the largest speed-ups of mixed precision on one GPU."""
    cases = [
        *published.cases(SPEED, times, frm=WIDE, to=HALF),
        planned.faster(known, "fp32", "fp16", planned.RESNET, gpu=planned.A100),
        planned.faster(known, "fp32", "bf16", planned.BERT, gpu=planned.A100),
        planned.faster(known, "fp32", "bf16", planned.BERT, gpu=planned.H100),
        *measured.steps(known, measured.speed, frm=("fp32",)),
    ]
    return Decision(cases=cases)


def asynchronous(known: Known) -> Decision:
    """c33: what waiting for the slowest worker costs, and how old gradients become without it."""
    source = "planner/parallelism/slowest.py: expected largest of N normal draws"
    figures = load_claims()["c33"].figures
    (workers,), (jitter,) = figures["workers"], figures["jitter_ratio"]
    cases = [_no_wait(int(workers * more), jitter, source) for more in (0.125, 1, 8)]
    staleness = Message.of("claim.note.staleness", workers=int(workers), updates=int(workers) - 1)
    why = Message.of("claim.why.staleness")
    return Decision(
        cases=[*cases, looked_at("accuracy", basis="arithmetic", source=source, why=why)], notes=[staleness]
    )


def _no_wait(workers: int, jitter: float, source: str) -> Case:
    """Time of a synchronous step over that of an asynchronous one: the slowest of N over the mean."""
    ratio = 1.0 + jitter * float(expected_max(float(workers)))
    return Case.exactly(
        ratio, what=f"N = {workers}, σ = {jitter:.0%}", basis="arithmetic", source=source, claimed=(1.0, None)
    )


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

"""Evidence with planted figures: answers of the planner, published pairs and training that say what a test wants."""

from __future__ import annotations

from types import SimpleNamespace

from planner.answer.plan import LOWER_IS_BETTER, Plan, Saving
from planner.claims.claim import load_claims
from planner.claims.evidence import published, software
from planner.claims.evidence.known import Known, Published
from planner.claims.evidence.published import Pair
from planner.claims.evidence.trained import DynamicRun, Flushing, Pairs, Scaling, Trained
from planner.claims.ledger import DECIDERS
from planner.claims.verdict import Judged, judge
from planner.evidence import Estimate
from planner.parallelism.layout import Layout
from planner.used.kernels import ProductUse
from planner.validation.runs import PublishedRun

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")


def around(value: float, width: float) -> Estimate:
    """A value with a range of some width to either side."""
    return Estimate(low=value * (1 - width), mid=value, high=value * (1 + width))


def planner(
    *,
    saved: float = 0.5,
    width: float = 0.0,
    narrow_gib: float = 20.0,
    sharded_gib: float = 5.0,
    recomputed_gib: float = 3.0,
    slower: float = 1.3,
    products: float = 4.0,
    days: float = 100.0,
    fits_up_to: float = 1e15,
    share: float | None = None,
) -> Known:
    """A planner whose answers have these figures; the plans are real ones.

    Args:
        saved: share that each precision saves against each other one.
        width: of every range, as a share to either side; of savings in points.
        narrow_gib: peak in 16 bits, of 40 in 32.
        sharded_gib: peak under ZeRO-3, of `narrow_gib`.
        recomputed_gib: activations left by recomputation, of 12.
        slower: step with recomputation over that without.
        products: how many times as fast products are in 16 bits.
        days: of a run.
        fits_up_to: parameters of the largest model that fits.
        share: of the memory that every plan takes; None: as above.
    """

    def ask(**inputs: object) -> SimpleNamespace:
        params = str(inputs.get("params") or "0")
        fits = float(params.removesuffix("B")) * 1e9 <= fits_up_to
        recomputes = inputs.get("act_ckpt") in ("full", "selective")

        def plan(precision: str) -> Plan:
            peak = 40.0 if precision in ("fp32", "tf32") else sharded_gib if inputs.get("zero") == 3 else narrow_gib
            peak = peak if share is None else 32.0 * share
            use = ProductUse(
                where="layer", m=1, n=1, k=1, count=1, compute=precision, step_s=1, share_ratio=1, evidence=None,
                tflops=products if precision in ("fp16", "bf16") else 1.0,
            )  # fmt: skip
            step_s = slower if recomputes else 1.0
            layout = Layout(
                tp=1, pp=1, vp=1, cp=1, ep=1, dp=1, zero=int(inputs.get("zero") or 0), micro_batch=1, grad_accum=1,
                act_ckpt=str(inputs.get("act_ckpt") or "none"),
            )  # fmt: skip
            stored = recomputed_gib if recomputes else 12.0
            return Plan(
                precision=precision, policy=precision, gpu="a100-sxm4-80gb", gpus=8, nodes=1, layout=layout, fits=fits,
                why_not=None, memory_gib={"activations": stored, "total": peak}, memory_capacity_gib=32.0,
                memory_range_gib=around(peak, width) if fits else None, step_s={"total": step_s},
                step_range_s=around(step_s, width), duration_days=around(days, width), energy_mwh=around(100.0, width),
                energy_items_mwh={"gpu": 50.0, "total": 100.0}, products=(use,),
            )  # fmt: skip

        to = str(inputs["precision"])
        savings = [
            Saving(view="same_gpus", gpu="a100-sxm4-80gb", metric=metric, from_=frm, to=to, low=saved - width,
                   mid=saved, high=saved + width)
            for metric in LOWER_IS_BETTER for frm in PRECISIONS if frm != to
        ]  # fmt: skip
        return SimpleNamespace(plans=[plan(name) for name in PRECISIONS], savings=savings)

    return Known(ask=ask, trained=trained())


def pair(ratio: float, note: str = "", *, frm: str = "fp32", to: str = "fp16", model: str = "BERT-Large") -> Pair:
    """A published pair."""
    run = PublishedRun(id="a-1", metric="samples_per_s", gpu="v100-sxm2-32gb", model=model)
    return Pair(arch="Volta", run=run, frm=frm, to=to, ratio=ratio, note=note, ids=("a-1", "a-2"))


def publish(monkeypatch, speed: tuple[Pair, ...] = (), memory: tuple[Pair, ...] = ()) -> None:
    """Let these be all published pairs."""
    monkeypatch.setattr(published, "pairs", lambda metrics: memory if metrics == (published.MEMORY,) else speed)


def publish_runs(monkeypatch, *rows: tuple[str, str, float, dict[str, object]]) -> None:
    """Let these be all published runs that shard: framework, stage, tokens per second, what else differs."""
    runs = tuple(
        Published(
            value=value, source="a paper",
            run=PublishedRun(
                **{"id": f"r-{number}", "metric": "tokens_per_s_per_gpu", "gpu": "a100-sxm4-80gb", "model": "X-7B",
                   "precision": "bf16", "seq_len": 2048, "n_gpus": 8, "params_total": 7e9, "micro_batch": 4,
                   "framework": framework, "zero_or_fsdp_stage": stage, **more},
            ),
        )
        for number, (framework, stage, value, more) in enumerate(rows)
    )  # fmt: skip
    monkeypatch.setattr(software, "published_runs", lambda: runs)


def trained(
    *,
    counts: dict[int, int] | None = None,
    bf16_flushed_ratio: float = 0.0,
    overflows_from_log2: int | None = 17,
    factors: tuple[float, float] = (0.5, 2.0),
    skipped: int = 0,
    long_run: float = 0.0005,
    interval: tuple[float, float, float] = (-0.0005, 0.0, 0.0005),
    baseline: float = 0.97,
    diverged: int = 0,
) -> Trained:
    """Training with these figures.

    Args:
        counts: gradients by power of two; None: a tenth below what FP16 holds, half of that brought back by 2^3.
        bf16_flushed_ratio: share of gradients that BF16 makes zero.
        overflows_from_log2: the smallest fixed scale that overflows.
        factors: what the scale is multiplied by at an overflow, and after a clean interval.
        skipped: of 100 steps with torch's defaults.
        long_run: steps that a long run loses.
        interval: accuracy in the lower precision minus that in FP32.
        baseline: accuracy in FP32.
        diverged: of the runs in BF16.
    """
    from math import log2

    low, mid, high = interval
    usual = DynamicRun(
        usual=True, start=65536.0, growth_interval=2000, steps=100, skipped=skipped, long_run_skipped_ratio=long_run,
        path_log2=((0, 16.0),), overflow_steps=frozenset(),
    )  # fmt: skip
    path = ((0, 24.0), (1, 24.0 + log2(factors[0])), (21, 24.0 + log2(factors[0]) + log2(factors[1])))
    short = DynamicRun(
        usual=False, start=2.0**24, growth_interval=20, steps=40, skipped=1, long_run_skipped_ratio=0.05,
        path_log2=path, overflow_steps=frozenset({0}),
    )  # fmt: skip
    runs = [
        Pairs(task="digits", precision=name, metric="accuracy", steps=100, pairs=8, diverged=diverged, low=low, mid=mid,
              high=high, sd=0.001, baseline=baseline)
        for name in ("bf16", "fp16")
    ]  # fmt: skip
    shares = counts or {-10: 90, -27: 5, -34: 4, -50: 1}
    seen = Flushing(task="digits", values=sum(shares.values()), bf16_flushed_ratio=bf16_flushed_ratio, counts=shares)
    scaling = Scaling(task="digits", overflows_from_log2=overflows_from_log2, runs=(usual, short))
    return Trained(
        source="a document", device="Some CPU", torch="2", flushing=(seen,), scaling=(scaling,), pairs=tuple(runs)
    )


def judged(name: str, known: Known) -> Judged:
    """A claim judged by what is known."""
    decision = DECIDERS[name](known)
    return judge(load_claims()[name], decision.cases, decision.notes)

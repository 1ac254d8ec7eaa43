"""Claims about money, energy and the work of a run."""

from __future__ import annotations

from planner.claims.case import Case, looked_at
from planner.claims.claim import load_claims
from planner.claims.decided.decision import WIDE, Decider, Decision, saved
from planner.claims.evidence import arithmetic, measured, planned, published
from planner.claims.evidence.arithmetic import OWN, Change, OwnFigures, deepseek_figures, stated
from planner.claims.evidence.known import Known
from planner.claims.evidence.published import SPEED
from planner.errors import Message


def energy(known: Known) -> Decision:
    """c13: the share of a run's energy that lower precision saves."""
    asked = (
        ("fp32", "fp16", {**planned.BERT, "gpu": planned.V100}),
        ("fp32", "bf16", {**planned.GPT3, "gpu": planned.A100}),
        ("tf32", "bf16", {**planned.GPT3, "gpu": planned.A100}),
        ("fp32", "bf16", {**planned.LLAMA, "gpu": planned.A100}),
        ("tf32", "bf16", {**planned.LLAMA, "gpu": planned.A100}),
        ("bf16", "fp8", {**planned.LLAMA, "gpu": planned.H100}),
        ("bf16", "fp8", planned.DEEPSEEK),
    )
    cases = [planned.saved(known, "energy_mwh", frm, to, question) for frm, to, question in asked]
    return Decision(cases=[*cases, *measured.steps(known, measured.energy_saved, frm=WIDE)])


def deepseek(known: Known) -> Decision:
    """c14: the claim's own arithmetic, and the same run in each precision on the same GPUs."""
    most_w, figures = arithmetic.most_w_per_gpu(), deepseek_figures()
    own = [
        Case.exactly(-figures.gpu_days.ratio, what=_product_of(figures), basis="arithmetic", source=OWN),
        Case.exactly(
            figures.w_per_gpu.after, what=f"W / GPU, ≤ {most_w:,.0f} W", basis="arithmetic", unit="w",
            claimed=(0.0, most_w), source=f"{OWN}; NVIDIA DGX H100 datasheet (10.2 kW), PUE {arithmetic.PUE}",
        ),
    ]  # fmt: skip
    runs = [planned.saved(known, "gpu_hours", frm, "fp8", planned.DEEPSEEK) for frm in ("fp32", "tf32", "bf16")]
    changes = (
        ("GPU", figures.gpus), ("d", figures.days), ("MW", figures.power_mw), ("GPU-d", figures.gpu_days),
        ("MWh", figures.energy_mwh), ("W/GPU", figures.w_per_gpu),
    )  # fmt: skip
    notes = [_change(unit, change) for unit, change in changes]
    speed = Message.of("claim.note.deepseek", speed=figures.speed_per_gpu, most_w=most_w)
    return Decision(cases=[*own, *runs], notes=[*notes, speed])


def _product_of(own: OwnFigures) -> str:
    """GPUs times days, before and after."""
    gpus, days = own.gpus, own.days
    return f"{gpus.before:g} × {days.before:g} → {gpus.after:g} × {days.after:g} GPU-d"


def _change(unit: str, change: Change) -> Message:
    return Message.of("claim.note.change", before=change.before, after=change.after, unit=unit, ratio=change.ratio)


def v100_hour(known: Known) -> Decision:
    """c15: the share of the cost of the same work that FP16 saves on a V100."""
    usd = stated("c15", "usd")
    own = Case.exactly(-usd.ratio, what=f"{usd.before:.2f} → {usd.after:.2f} USD", basis="arithmetic", source=OWN)
    cases = [
        own,
        *published.cases(SPEED, saved, frm=("fp32",), to=("fp16",), arch="Volta"),
        planned.saved(known, "cost_usd", "fp32", "fp16", planned.BERT, gpu=planned.V100),
        planned.saved(known, "cost_usd", "fp32", "fp16", planned.RESNET, gpu=planned.V100),
    ]
    return Decision(cases=cases, notes=[Message.of("claim.note.v100", ratio=usd.before / usd.after)])


def start_up(known: Known) -> Decision:
    """c16: the share of the cost that mixed precision saves a mid-size language model."""
    question: dict[str, object] = {"params": "1B", "gpus": 8, "tokens": "2e10"}
    asked = (("fp32", "fp16", planned.V100), ("fp32", "bf16", planned.A100), ("tf32", "bf16", planned.A100),
             ("tf32", "bf16", planned.H100))  # fmt: skip
    return Decision(cases=[planned.saved(known, "cost_usd", frm, to, question, gpu=gpu) for frm, to, gpu in asked])


def gpt4(known: Known) -> Decision:
    """c17: what 63 million USD buy; the work of GPT-4 is not published."""
    claim = load_claims()["c17"]
    (mfu,), usd = claim.figures["mfu"], claim.low or 0.0
    price = planned.usd_per_gpu_hour(known, planned.A100)
    bought = [
        Case.exactly(
            arithmetic.bought_flop(usd, hourly, mfu, planned.A100), what=f"{hourly:.2f} USD / GPU-h, MFU {mfu:.0%}",
            basis="arithmetic", unit="flop", beside=True,
            source=f"{usd:g} USD / price x 3600 s x {mfu} x {planned.A100}'s BF16 peak; prices: mpplan prices",
        )
        for hourly in (price.low, price.mid, price.high)
    ]  # fmt: skip
    why = Message.of("claim.why.gpt4", low=bought[-1].mid or 0.0, high=bought[0].mid or 0.0)
    return Decision(cases=[looked_at("GPT-4", basis="arithmetic", source=OWN, why=why), *bought])


def llama2_work(known: Known) -> Decision:
    """c24: the work of Llama 2 70B on 2 trillion tokens."""
    (tokens,) = load_claims()["c24"].figures["tokens"]
    return Decision(cases=arithmetic.run_flop("llama-2-70b", tokens))


def gpt3_memory(known: Known) -> Decision:
    """c25: the share of a V100's memory that GPT-3 takes on 10 000 of them, by layout."""
    (gpus,) = load_claims()["c25"].figures["gpus"]
    question: dict[str, object] = {"model": "gpt-3-175b", "gpu": planned.V100, "gpus": int(gpus)}
    layouts: tuple[dict[str, object], ...] = (
        {}, {"act_ckpt": "none"}, {"act_ckpt": "full"}, {"tp": 8, "pp": 8, "gpus": 9984},
        {"tp": 8, "pp": 16, "zero": 1, "gpus": 9984}, {"tp": 4, "pp": 16, "zero": 1, "gpus": 9984},
    )  # fmt: skip
    cases = [planned.memory_use(known, "fp16", question, **layout) for layout in layouts]
    return Decision(cases=list({case.what: case for case in cases if case is not None}.values()))


DECIDERS: dict[str, Decider] = {
    "c13": energy,
    "c14": deepseek,
    "c15": v100_hour,
    "c16": start_up,
    "c17": gpt4,
    "c24": llama2_work,
    "c25": gpt3_memory,
}

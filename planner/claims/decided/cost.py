"""Claims about money, energy and the work of a run."""

from __future__ import annotations

from dataclasses import replace

from planner.claims.case import Case, looked_at
from planner.claims.claim import load_claims
from planner.claims.decided.decision import WIDE, Decider, Decision, saved
from planner.claims.evidence import arithmetic, measured, planned, published
from planner.claims.evidence.arithmetic import OWN, Change, OwnFigures, deepseek_figures, stated
from planner.claims.evidence.known import Known, published_run
from planner.claims.evidence.published import FILE, SPEED, Asked
from planner.errors import Message

GPT3_ENERGY, LLAMA_ENERGY = "patt-0001", "card-0008"
"""Ids of whole runs whose energy was published."""


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
    measured_here = measured.steps(known, measured.energy_saved, frm=WIDE)
    return Decision(cases=[*cases, *measured_here, *_whole_runs(known)], notes=[Message.of("claim.note.whole_runs")])


def _whole_runs(known: Known) -> list[Case]:
    """Return the published energy of two whole runs, each beside the plan of the same work and metering scope.

    GPT-3's covers accelerators with their hosts times a PUE. Llama 2's is GPU-hours times the GPU's power limit, so it
    is compared with the energy of the plan's GPUs only.
    """
    gpt3 = published_run(GPT3_ENERGY)
    llama = published_run(LLAMA_ENERGY)
    asked = {"gpu": planned.V100, "tokens": f"{gpt3.run.tokens_total:g}", "pue": gpt3.run.pue}
    plans = (
        planned.total(known, "energy_mwh", "fp16", planned.GPT3, **asked),
        planned.energy_of_gpus(known, "bf16", planned.LLAMA, gpu=planned.A100, tokens=f"{llama.run.tokens_total:g}"),
    )
    rows = [
        Case.exactly(
            row.value, what=f"{row.run.model}, {row.run.gpu}, {what}", basis="published", unit="mwh", beside=True,
            source=f"{FILE}: {row.run.id} ({row.source})",
        )
        for row, what in ((gpt3, f"PUE {gpt3.run.pue:g}"), (llama, "GPUs"))
    ]  # fmt: skip
    first, second = (replace(case, beside=True) for case in plans)
    return [rows[0], first, rows[1], second]


def deepseek(known: Known) -> Decision:
    """c14: the claim's own arithmetic, and the same run in each precision on the same GPUs."""
    most_w, figures = arithmetic.most_w_per_gpu(), deepseek_figures()
    own = [
        Case.exactly(-figures.gpu_days.ratio, what=_product_of(figures), basis="arithmetic", source=OWN, own=True),
        Case.exactly(
            figures.w_per_gpu.after, what="power per GPU", basis="arithmetic", unit="w", own=True,
            claimed=(0.0, most_w), source=f"{OWN}; NVIDIA DGX H100 datasheet (10.2 kW), PUE {arithmetic.PUE}",
        ),
    ]  # fmt: skip
    days = (figures.days.after, figures.days.after)
    run = replace(planned.total(known, "duration_days", "fp8", planned.DEEPSEEK), claimed=days)
    runs = [planned.saved(known, "gpu_hours", frm, "fp8", planned.DEEPSEEK) for frm in ("fp32", "tf32", "bf16")]
    changes = (
        (Message.of("claim.figure.gpus"), figures.gpus), (Message.of("claim.figure.days"), figures.days),
        ("MW", figures.power_mw), (Message.of("claim.figure.gpu_days"), figures.gpu_days),
        ("MWh", figures.energy_mwh), (Message.of("claim.figure.gpu_power"), figures.w_per_gpu),
    )  # fmt: skip
    notes = [_change(name, change) for name, change in changes]
    speed = Message.of("claim.note.deepseek", speed=figures.speed_per_gpu, most_w=most_w)
    return Decision(cases=[*own, *runs, run], notes=[*notes, speed])


def _product_of(own: OwnFigures) -> str:
    """Return GPUs times days, before and after, in words."""
    gpus, days = own.gpus, own.days
    return f"{gpus.before:,g} × {days.before:g} → {gpus.after:,g} × {days.after:g} GPU-days"


def _change(figure: Message | str, change: Change) -> Message:
    return Message.of("claim.note.change", before=change.before, after=change.after, unit=figure, ratio=change.ratio)


def v100_hour(known: Known) -> Decision:
    """c15: the share of the cost of the same work that FP16 saves on a V100."""
    usd = stated("c15", "usd")
    own = Case.exactly(
        -usd.ratio, what=f"{usd.before:.2f} → {usd.after:.2f} USD", basis="arithmetic", source=OWN, own=True
    )
    cases = [
        own,
        *published.cases(Asked(metrics=SPEED, frm=("fp32",), to=("fp16",), arch="Volta"), saved),
        planned.saved(known, "cost_usd", "fp32", "fp16", planned.BERT, gpu=planned.V100),
        planned.saved(known, "cost_usd", "fp32", "fp16", planned.RESNET, gpu=planned.V100),
    ]
    return Decision(cases=cases, notes=[Message.of("claim.note.v100", ratio=usd.before / usd.after)])


def start_up(known: Known) -> Decision:
    """c16: an unnamed firm's saving cannot be looked up; what its model would save is shown beside the verdict."""
    question: dict[str, object] = {"params": "1B", "gpus": 8, "tokens": "2e10"}
    asked = (("fp32", "fp16", planned.V100), ("fp32", "bf16", planned.A100), ("tf32", "bf16", planned.A100),
             ("tf32", "bf16", planned.H100))  # fmt: skip
    plans = [planned.saved(known, "cost_usd", frm, to, question, gpu=gpu) for frm, to, gpu in asked]
    event = looked_at("start-up", basis="arithmetic", source=OWN, why=Message.of("claim.why.start_up"))
    return Decision(cases=[event, *(replace(case, beside=True) for case in plans)])


def gpt4(known: Known) -> Decision:
    """c17: the FLOP that 63 million USD buy; the work of GPT-4 is not published."""
    claim = load_claims()["c17"]
    (mfu,), usd = claim.figures["mfu"], claim.low or 0.0
    price = planned.usd_per_gpu_hour(known, planned.A100)
    bought = [
        Case.exactly(
            arithmetic.bought_flop(usd, hourly, mfu, planned.A100), what=f"{hourly:.2f} USD / GPU-h, MFU {mfu:.0%}",
            basis="arithmetic", unit="flop", beside=True,
            source=f"{usd:g} USD / price x 3600 s x {mfu} x {planned.A100}'s BF16 peak; prices: mpplan prices",
        )
        for hourly in (1.0, price.low, price.mid, price.high)
    ]  # fmt: skip
    why = Message.of("claim.why.gpt4", low=bought[-1].mid or 0.0, high=bought[1].mid or 0.0)
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
    return Decision(cases=list({case.what: case for case in cases}.values()))


DECIDERS: dict[str, Decider] = {
    "c13": energy,
    "c14": deepseek,
    "c15": v100_hour,
    "c16": start_up,
    "c17": gpt4,
    "c24": llama2_work,
    "c25": gpt3_memory,
}

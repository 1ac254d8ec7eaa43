"""What an answer rests on: evidence with the figures it was used in, assumptions, gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from planner.costs.prices import GpuPrice, SiteFacts
from planner.errors import Message
from planner.evidence import Assumption, Estimate, Evidence, Gap
from planner.performance.compute import aligned
from planner.planning.case import Case
from planner.question.question import Question
from planner.rates.parameters import parameter
from planner.rates.terms import Rates
from planner.units import MINUTE_S

_TIME = ("step_s", "duration_days", "gpu_hours", "cost_usd", "energy_mwh", "carbon_tco2e")
_POWER = ("energy_mwh", "carbon_tco2e")
_MEMORY = ("memory_gib",)
_GOODPUT = ("duration_days", "gpu_hours", "cost_usd", "energy_mwh", "carbon_tco2e")

_USED_IN: dict[str, tuple[str, ...]] = {
    "host_share": _POWER,
    "network_share": _POWER,
    "context_bytes": _MEMORY,
    "nccl_bytes": _MEMORY,
    "fragmentation": _MEMORY,
    "memory_error": _MEMORY,
    "stored_extra": _MEMORY,
    "logit_stored": _MEMORY,
    "mtbf_failures_per_gpu_h": _GOODPUT,
    "restart_s": _GOODPUT,
    "checkpoint_s": _GOODPUT,
    "evaluation_share": _GOODPUT,
    "stops": _GOODPUT,
}


_POWER_TERMS = (
    "power_error", "power_idle_w", "power_linear_w", "power_other_w", "power_attention_w", "power_memory_w",
    "power_wait_w",
)  # fmt: skip
"""Terms that set the watts of a GPU and nothing else."""


def _figures(term: str) -> tuple[str, ...]:
    return _POWER if term in _POWER_TERMS else _USED_IN.get(term, _TIME)


def _needed(case: Case, term: str) -> bool:
    """Whether a term has any effect on the case at all."""
    recipe = case.recipe
    unused = {
        "score_passes": recipe.attention != "naive",
        "misaligned_rate": recipe.attention != "naive" or aligned(recipe.model, recipe.policy.activation_bytes),
        "attention_flop_per_s": recipe.attention != "flash",
        "dropout_passes": not recipe.dropout,
        "moe_passes": not recipe.model.experts,
        "kernels_moe": not recipe.model.experts,
        "grouped_efficiency": not recipe.model.experts,
        "cast_fusion": not recipe.policy.cast_bytes_per_element,
        "overlap_ep": not recipe.model.experts,
        "expert_imbalance": not recipe.model.experts,
        "pcie_bytes_per_s": recipe.offload == "none",
        "nvls_gain": recipe.sequence_parallel and recipe.stack == "tuned",
    }
    return not unused.get(term, False)


def collect_evidence(cases: Iterable[Case], site: SiteFacts) -> tuple[Evidence, ...]:
    """Every source that was used, once, with the figures that rest on it."""
    used: dict[str, tuple[Evidence, set[str]]] = {}

    def add(evidence: Evidence, figures: Iterable[str]) -> None:
        entry = used.setdefault(evidence.id, (evidence, set()))
        entry[1].update(figures)

    billed = False
    for case in cases:
        add(case.cluster.gpu.evidence, (*_TIME, "memory_gib", "mfu"))
        add(case.policy.evidence, ("memory_gib", "step_s"))
        add(case.recipe.optimizer.evidence, ("memory_gib", "step_s"))
        if case.recipe.model.evidence is not None:
            add(case.recipe.model.evidence, (*_TIME, "memory_gib", "mfu"))
        for name, term in case.rates.terms.items():
            if _needed(case, name):
                add(term.evidence, _figures(name))
        for row in case.price.evidence:
            add(row, ("cost_usd",))
        for row in case.ledger.evidence:
            add(row, row.used_in)
        billed = billed or case.electricity_on
    for row in site.evidence(billed=billed):  # where rent includes electricity, no figure rests on its price
        add(row, row.used_in or ("energy_mwh", "carbon_tco2e"))
    return tuple(replace(evidence, used_in=tuple(sorted(figures))) for evidence, figures in used.values())


def collect_gaps(question: Question, cases: Iterable[Case], site: SiteFacts) -> tuple[Gap, ...]:
    """What is missing: prices, watts, facts of the place that are needed, embodied carbon where it was asked for."""
    used = {case.cluster.gpu.id: case for case in cases}
    gaps = [case.price.gap for case in used.values()]
    gaps += [case.ledger.owned.price.gap for case in used.values() if case.ledger.owned is not None]
    gaps += [Gap.of("power", gpu=gpu) for gpu, case in used.items() if case.cluster.gpu.tdp_w <= 0]
    if question.money.embodied:
        gaps += [Gap.of("embodied", gpu=gpu) for gpu, case in used.items() if case.ledger.embodied is None]
    gaps += site.gaps(billed=any(case.electricity_on for case in used.values()))
    return tuple(dict.fromkeys(gap for gap in gaps if gap is not None))


def collect_warnings(question: Question, prices: Mapping[str, GpuPrice]) -> tuple[Message, ...]:
    """What a reader should know of the prices: historic rows, vague dates, a borrowed range."""
    return tuple(dict.fromkeys(warning for c in question.clusters for warning in prices[c.gpu.id].warnings))


_DEFAULTS = {
    "tokens": "assumption.tokens",
    "global_batch": "assumption.global_batch",
    "seq_len": "assumption.seq_len",
    "gpu": "assumption.gpu",
    "deadline": "assumption.deadline",
    "optimizer": "assumption.optimizer",
    "stack": "assumption.stack",
    "method": "assumption.method",
    "network": "assumption.network",
}
"""Inputs whose default is an assumption worth reading, with the message that states it."""

_COMMITTED = {
    "spot": Assumption(id="spot", message=Message.of("assumption.spot"), input="commitment"),
    "1y": Assumption(id="commitment", message=Message.of("assumption.commitment_1y"), input="quote"),
    "3y": Assumption(id="commitment", message=Message.of("assumption.commitment_3y"), input="quote"),
}
"""What a committed price takes for granted."""


def _owned(case: Case) -> Assumption:
    """What an hour of the user's own GPU costs, beside what renting one does."""
    owned = case.ledger.owned
    assert owned is not None
    price, rented, even = owned.price.usd_per_gpu_h, owned.rental_usd_per_gpu_h, owned.break_even_utilisation_ratio
    ratio = owned.utilisation_ratio
    against: Message | str = ""
    if rented is not None and even is None:
        against = Message.of("assumption.own_never_cheaper", rented_usd=rented)
    elif rented is not None and even is not None:
        against = Message.of("assumption.own_cheaper_from", rented_usd=rented, utilisation_ratio=even)
    message = Message.of(
        "assumption.own",
        gpu=case.cluster.gpu.id,
        hour=_hour_price(price),
        used="" if ratio is None else Message.of("assumption.own_used", utilisation_ratio=ratio),
        against=against,
    )
    return Assumption(id="own", message=message, input="own")


def _hour_price(price: Estimate | None) -> Message:
    if price is None:
        return Message.of("text.unknown_sum")
    return Message.of("text.at_least_usd" if price.at_least else "text.usd", usd=price.mid)


def _default(name: str, value: object, note: Message | None) -> Assumption:
    """A default as an assumption, with its note in brackets."""
    shown = value if isinstance(value, int | float | str | Message) else str(value)
    message = Message.of(
        _DEFAULTS[name], value=shown, note="" if note is None else Message.of("text.brackets", text=note)
    )
    return Assumption(id=name, message=message, input=name)


def collect_assumptions(question: Question, cases: tuple[Case, ...]) -> tuple[Assumption, ...]:
    """Defaults that the user could state instead, and what the model takes for granted."""
    given = {name: question.inputs[name] for name in _DEFAULTS if name in question.inputs}
    assumptions = [
        _default(name, entry.value, entry.note)
        for name, entry in given.items()
        if entry.source in ("default", "catalogue")
    ]
    assumptions += dict.fromkeys(_owned(case) for case in cases if case.ledger.owned is not None)
    kinds = dict.fromkeys(case.price.commitment for case in cases)
    assumptions += [_COMMITTED[kind] for kind in kinds if kind in _COMMITTED]
    return (*assumptions, *(_model_assumptions(cases[0].mid) if cases else ()))


def _model_assumptions(rates: Rates) -> Iterator[Assumption]:
    """What the model assumes of hosts, failures and stops; no input of the question replaces these."""
    host, network = float(rates.host_share), float(rates.network_share)
    yield Assumption(id="host_share", message=Message.of("assumption.host_share", host=host, network=network))
    hours, restart_min = 1 / float(rates.mtbf_failures_per_gpu_h), float(rates.restart_s) / MINUTE_S
    yield Assumption(id="goodput", message=Message.of("assumption.goodput", hours=hours, restart_min=restart_min))
    yield Assumption(id="stops", message=Message.of("assumption.stops", longer_ratio=parameter("stops").high))

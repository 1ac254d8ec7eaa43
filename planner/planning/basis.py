"""What an answer rests on: evidence with the figures it was used in, assumptions, gaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from planner.costs.prices import GpuPrice, SiteFacts
from planner.evidence import Assumption, Evidence, Gap
from planner.planning.case import Case
from planner.question.question import Question
from planner.rates.ladder import has_effect
from planner.rates.parameters import FIGURES, shipped_parameters
from planner.units import MINUTE_S

_TIME = FIGURES["time"]

def collect_evidence(cases: Iterable[Case], site: SiteFacts) -> tuple[Evidence, ...]:
    """Every source that was used, once, with the figures that rest on it."""
    used: dict[str, tuple[Evidence, set[str], set[str]]] = {}

    def add(evidence: Evidence, figures: Iterable[str]) -> None:
        _, all_figures, all_terms = used.setdefault(evidence.id, (evidence, set(), set()))
        all_figures.update(figures)
        all_terms.update(evidence.terms)

    billed = False
    for case in cases:
        add(case.cluster.gpu.evidence, (*_TIME, "memory_gib", "mfu"))
        add(case.policy.evidence, ("memory_gib", "step_s"))
        add(case.recipe.optimizer.evidence, ("memory_gib", "step_s"))
        if case.recipe.model.evidence is not None:
            add(case.recipe.model.evidence, (*_TIME, "memory_gib", "mfu"))
        for term in case.rates.terms.values():
            if has_effect(term, case.recipe):
                add(replace(term.evidence, terms=(term.name,)), term.family.used_in)
        for row in case.price.evidence:
            add(row, ("cost_usd",))
        for row in case.ledger.evidence:
            add(row, row.used_in)
        billed = billed or case.electricity_on
    for row in site.evidence:
        if billed or not row.id.startswith("electricity"):  # rent holds it: no figure rests on it
            add(row, row.used_in or ("energy_mwh", "carbon_tco2e"))
    return tuple(
        replace(evidence, used_in=tuple(sorted(figures)), terms=tuple(sorted(terms)))
        for evidence, figures, terms in used.values()
    )


def collect_gaps(question: Question, cases: Iterable[Case], site: SiteFacts) -> tuple[Gap, ...]:
    """What is missing: prices, watts, facts of the place that are needed, embodied carbon where it was asked for."""
    used = {case.cluster.gpu.id: case for case in cases}
    found = [case.price.gap for case in used.values()]
    found += [case.ledger.owned.price.gap for case in used.values() if case.ledger.owned is not None]
    found += [
        Gap(what="power", why=f"no watts are known of {gpu}", effect="energy and carbon are unknown, not zero")
        for gpu, case in used.items()
        if case.cluster.gpu.tdp_w <= 0
    ]
    if question.money.embodied:
        found += [
            Gap(
                what="embodied carbon",
                why=f"no figure is known for {gpu}",
                effect="carbon with embodied, and the SCI score, are lower bounds",
            )
            for gpu, case in used.items()
            if case.ledger.embodied is None
        ]
    billed = any(case.electricity_on for case in used.values())
    found += [gap for gap in site.gaps if billed or gap.what != "electricity price"]
    return tuple(dict.fromkeys(gap for gap in found if gap is not None))


def collect_warnings(question: Question, prices: Mapping[str, GpuPrice]) -> tuple[str, ...]:
    """What a reader should know of the prices: historic rows, vague dates, a borrowed range."""
    return tuple(dict.fromkeys(text for c in question.clusters for text in prices[c.gpu.id].warnings))


_FLAGS = {
    "tokens": "The run trains on {value:.4g} tokens ({note}).",
    "global_batch": "Each step trains {value} sequences ({note}).",
    "seq_len": "Sequences are {value} tokens long.",
    "gpu": "The GPU is {value}.",
    "deadline": "The run is to finish in {value}.",
    "optimizer": "The optimizer is {value}.",
    "stack": "The software stack is {value}: fused kernels, overlapped communication.",
    "method": "All weights are trained from scratch ({value}).",
    "network": "The network between nodes gives {value}.",
}


_TERM = "The {term} of the commitment beyond the run is used by others and not billed to it."
_COMMITTED = {
    "spot": Assumption(
        id="spot",
        text="Spot machines are not taken away: no restart for that is in the time, the cost or the energy.",
        change_with="--commitment",
    ),
    "1y": Assumption(id="commitment", text=_TERM.format(term="rest of the year"), change_with="--quote"),
    "3y": Assumption(id="commitment", text=_TERM.format(term="rest of the three years"), change_with="--quote"),
}
"""What a committed price takes for granted."""


def _owned(case: Case) -> Assumption:
    """What an hour of the user's own GPU costs, beside what renting one does."""
    owned = case.ledger.owned
    assert owned is not None
    price, rented, even = owned.price.usd_per_gpu_h, owned.rental_usd_per_gpu_h, owned.break_even_utilisation_ratio
    hour = "an unknown sum" if price is None else f"{'at least ' if price.at_least else ''}${price.mid:.2f}"
    used = "" if owned.utilisation_ratio is None else f" where {owned.utilisation_ratio:.0%} of all hours are used"
    text = f"An hour of an own {case.cluster.gpu.id} costs {hour} with electricity{used}"
    if rented is not None:
        pays = "costs less at no utilisation" if even is None else f"costs less from {even:.0%} on"
        text += f"; renting one costs ${rented:.2f}, and owning {pays}"
    return Assumption(id="own", text=f"{text}.", change_with="--own")


def collect_assumptions(question: Question, cases: tuple[Case, ...]) -> tuple[Assumption, ...]:
    """Defaults that the user could say better, in sentences."""
    found = []
    for name, sentence in _FLAGS.items():
        given = question.inputs.get(name)
        if given is not None and given.source in ("default", "catalogue"):
            text = sentence.format(value=given.value, note=given.note)
            found.append(Assumption(id=name, text=text, change_with=f"--{name.replace('_', '-')}"))
    found += dict.fromkeys(_owned(case) for case in cases if case.ledger.owned is not None)
    found += [_COMMITTED[kind] for kind in dict.fromkeys(c.price.commitment for c in cases) if kind in _COMMITTED]
    if cases:
        rates = cases[0].mid
        found += [
            Assumption(
                id="host_share",
                text=f"Hosts draw {float(rates.host_share):g} of what the GPUs draw, "
                f"switches {float(rates.network_share):g}.",
            ),
            Assumption(
                id="goodput",
                text=f"A GPU fails every {1 / float(rates.mtbf_failures_per_gpu_h):,.0f} hours of use; a restart takes "
                f"{float(rates.restart_s) / MINUTE_S:.0f} minutes.",
            ),
            Assumption(
                id="stops",
                text="A run may stand still beyond failures: its high end takes up to "
                f"{shipped_parameters().find('stops').high:.1f} times as long, as published runs did.",
            ),
        ]
    return tuple(found)

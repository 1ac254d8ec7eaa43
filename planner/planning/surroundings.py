"""Assumptions about what surrounds the GPUs: hosts, switches, the building, the grid, and work besides the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.errors import Message
from planner.evidence import Assumption
from planner.performance.run import host_w
from planner.planning.case import Case
from planner.question.asked import InputValue
from planner.units import g_from_kg


def surrounding_assumptions(cases: tuple[Case, ...], inputs: Mapping[str, InputValue]) -> Iterator[Assumption]:
    """Yield the watts assumed beside each kind of GPU, the PUE and the grid factor where the user gave none, and what
    the bill has that energy and carbon do not.

    The same assumption may be yielded more than once.

    Args:
        cases: every precision on every GPU, all at one place; GPUs of unknown power are skipped.
        inputs: every input as the answer shows it.
    """
    metered = [case for case in cases if case.cluster.gpu.tdp_w > 0]
    yield from map(_beside, metered)
    for case in metered[:1]:
        yield from _place(case, inputs)
        yield from _unmetered(case)


def _beside(case: Case) -> Assumption:
    """State the host and network power per GPU, which does not depend on the GPU's own draw."""
    gpu, rates = case.cluster.gpu.id, case.mid
    host, network = float(host_w(rates)), float(rates.network_power_w)
    text = Message.of("assumption.host_share", gpu=gpu, host_w=host, network_w=network)
    return Assumption(id="host_share", message=text)


def _place(case: Case, inputs: Mapping[str, InputValue]) -> Iterator[Assumption]:
    """Yield the default PUE and the default grid factor that apply because the user gave none."""
    pue, grid = case.site.pue, case.site.grid_kg_co2e_per_kwh
    if _is_default(inputs, "pue"):
        text = Message.of("assumption.pue", low=pue.low, mid=pue.mid, high=pue.high)
        yield Assumption(id="pue", message=text, input="pue")
    if _is_default(inputs, "grid"):
        text = Message.of("assumption.grid", g_per_kwh=round(g_from_kg(grid.mid), 6))
        yield Assumption(id="grid", message=text, input="grid")


def _unmetered(case: Case) -> Iterator[Assumption]:
    """Yield what the user's other costs pay for that is neither in the energy nor in the carbon of the run."""
    other = case.ledger.other_costs
    if other is None:
        return
    more_ratio = other.failed_ratio + other.experiments_ratio
    if more_ratio:
        text = Message.of("assumption.beside_work", ratio=more_ratio)
        yield Assumption(id="beside_work", message=text, input="beside")
    if other.hosts:
        text = Message.of("assumption.beside_hosts", hosts=other.hosts)
        yield Assumption(id="beside_hosts", message=text, input="beside")


def _is_default(inputs: Mapping[str, InputValue], name: str) -> bool:
    return name in inputs and inputs[name].source == "default"

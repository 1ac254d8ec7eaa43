"""Assumptions about what surrounds the GPUs: hosts, switches, the building and the grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.errors import Message
from planner.evidence import Assumption
from planner.performance.run import host_w
from planner.planning.case import Case
from planner.question.asked import InputValue
from planner.units import g_from_kg


def around(cases: tuple[Case, ...], inputs: Mapping[str, InputValue]) -> Iterator[Assumption]:
    """Yield the watts assumed beside each kind of GPU, and the PUE and the grid factor where the user gave none.

    The same assumption may be yielded more than once.

    Args:
        cases: every precision on every GPU, all at one place; GPUs of unknown power are skipped.
        inputs: every input as the answer shows it.
    """
    metered = [case for case in cases if case.cluster.gpu.tdp_w > 0]
    yield from map(_beside, metered)
    for case in metered[:1]:
        yield from _place(case, inputs)


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


def _is_default(inputs: Mapping[str, InputValue], name: str) -> bool:
    return name in inputs and inputs[name].source == "default"

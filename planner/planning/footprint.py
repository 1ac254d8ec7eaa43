"""From the draws of a plan to its bill and footprint: cost lines, megawatts, carbon by method, SCI score.

The mid of a product or a sum is the product or the sum of the mids (see `planner.costs.lines`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.costs.bill import RunDraws, run_bill, scaled
from planner.costs.carbon import embodied_kg, operation_kg, sci_kg_per_1e21_flop, sci_kg_per_run
from planner.costs.facility_power import NodePower, gpus_under_cap, mean_power, peak_power
from planner.costs.prices import CostLine
from planner.costs.quantity import Energy, Power
from planner.errors import Message, NoPlanError
from planner.evidence import Estimate, middle
from planner.lazy import dataclass
from planner.performance.evaluation import Evaluation, flop_of
from planner.performance.run import RunEnergy, host_and_network_w
from planner.planning.case import Case, drawn
from planner.rates.terms import Draws, Value
from planner.units import HOUR_S, TONNE_KG, kw_from_w

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BillAndFootprint:
    """The bill and the footprint of one plan."""

    cost_usd: Estimate | None
    """None where the GPU has no price."""
    cost_lines: tuple[CostLine, ...]
    peak_power_mw: float
    mean_power_mw: Estimate
    carbon_tco2e: Estimate
    """Location-based carbon."""
    carbon_market_tco2e: float | None
    embodied_tco2e: Estimate | None
    carbon_with_embodied_tco2e: Estimate | None
    model_flop: float
    sci_kg_per_run: Estimate
    sci_kg_per_1e21_flop: Estimate


def bill_and_footprint(case: Case, gpus: int, evaluation: Evaluation, draws: Draws) -> BillAndFootprint:
    """Return the bill and the footprint of one plan.

    Args:
        case: its recipe, machines and prices.
        gpus: number of GPUs that it holds.
        evaluation: the evaluation of its layout under the draws.
        draws: the common draws.
    """
    n = draws.count
    run = _run(case, gpus, evaluation, draws)
    cost, lines = run_bill(run, case.bill_prices)
    energy, wall_h = Energy(j=_drawn(evaluation.energy.total, n)), _drawn(evaluation.wall_s, n) / HOUR_S
    energy_mid = metered_mid(case, evaluation.energy)
    power_mid = mean_power(energy_mid, middle(wall_h))
    carbon_kg = _drawn(evaluation.carbon_kg, n)
    grid = case.site.grid_kg_co2e_per_kwh
    carbon = Estimate.of_draws(carbon_kg, mid=float(operation_kg(energy_mid, grid.mid)))
    embodied_draws_kg, embodied = _embodied(case, run.gpu_h, draws)
    flop = case.tokens * flop_of(case.recipe)
    score = Estimate.of_draws(
        sci_kg_per_run(carbon_kg, embodied_draws_kg),
        mid=carbon.mid + (0.0 if embodied is None else embodied.mid),
        at_least=embodied is None,
    )
    market = case.site.market_kg_co2e_per_kwh
    return BillAndFootprint(
        cost_usd=cost,
        cost_lines=lines,
        peak_power_mw=float(peak_of(case, gpus, draws).mw),
        mean_power_mw=Estimate.of_draws(mean_power(energy, wall_h).mw, mid=float(power_mid.mw)),
        carbon_tco2e=scaled(carbon, 1 / TONNE_KG),
        carbon_market_tco2e=None if market is None else float(operation_kg(energy_mid, market)) / TONNE_KG,
        embodied_tco2e=scaled(embodied, 1 / TONNE_KG) if embodied is not None and case.embodied_on else None,
        carbon_with_embodied_tco2e=scaled(score, 1 / TONNE_KG) if case.embodied_on else None,
        model_flop=flop,
        sci_kg_per_run=score,
        sci_kg_per_1e21_flop=scaled(score, float(sci_kg_per_1e21_flop(1.0, flop))),
    )


def cost_of(case: Case, gpus: int, evaluation: Evaluation, draws: Draws) -> Estimate | None:
    """Return the total cost of one plan, without its footprint; None where the GPU has no price. Arguments as above."""
    return run_bill(_run(case, gpus, evaluation, draws), case.bill_prices)[0]


def metered_mid(case: Case, energy: RunEnergy) -> Energy:
    """Return the energy at the facility's meter at mid: the machines' energy times the PUE, each at its own mid.

    The draws of a PUE reach further up than down, so their middle is above the PUE that a plan states.
    """
    return Energy(j=middle(energy.machines) * float(case.unit_prices().pue))


def _run(case: Case, gpus: int, evaluation: Evaluation, draws: Draws) -> RunDraws:
    n, prices = draws.count, case.unit_prices(draws)
    run = case.run_draws(float(gpus), _drawn(evaluation.gpu_h, n), _drawn(evaluation.energy.total, n), prices)
    return replace(run, energy_mid=metered_mid(case, evaluation.energy))


def _embodied(case: Case, gpu_h: Floats, draws: Draws) -> tuple[Value, Estimate | None]:
    """Return the run's share of making its GPUs in kg, as draws and as a range; 0 and None where no figure is known."""
    rate = case.ledger.embodied
    if rate is None:
        return 0.0, None
    per_gpu_h = rate.kg_co2e_per_gpu_h
    embodied_draws_kg = embodied_kg(gpu_h, drawn(per_gpu_h, "embodied", draws))
    mid = float(embodied_kg(middle(gpu_h), per_gpu_h.mid))
    return embodied_draws_kg, Estimate.of_draws(embodied_draws_kg, mid=mid)


def node_power(case: Case) -> NodePower:
    """Return the power of a GPU at its limit, and its share of host and network power at mid."""
    return NodePower(gpu_limit=Power(w=case.cluster.limit_w), host=Power(w=float(host_and_network_w(case.mid))))


def peak_factor(case: Case, draws: Draws) -> float:
    """Return the factor from the peak at mid, without PUE, to the peak that the facility is built for.

    It combines the PUE with the high end of host and network power, since a facility is built for the high end of what
    its machines may take. The mean power of a run is drawn from the same watts and the same PUE, with GPUs at or below
    their limit, so its high end never exceeds the peak.
    """
    limit_w, at_mid_w = case.cluster.limit_w, peak_power(1, node_power(case), 1.0).w
    if not at_mid_w:  # the device's power is unknown
        return 1.0
    drawn_w = limit_w + np.asarray(host_and_network_w(case.rates.sample(draws)))
    return Estimate.of_draws(drawn_w * case.unit_prices(draws).pue).high / float(at_mid_w)


def peak_of(case: Case, gpus: int, draws: Draws) -> Power:
    """Return the power that the facility must deliver for a number of GPUs, at the high end."""
    return peak_power(gpus, node_power(case), peak_factor(case, draws))


def gpus_allowed(case: Case, cap_w: float, draws: Draws) -> int:
    """Return the most GPUs of a case whose peak stays under a cap.

    Raises:
        NoPlanError: not even one server stays under it; the hint names a power limit at which one would, if there is
            such.
    """
    node = case.cluster.gpus_per_node
    try:
        return gpus_under_cap(Power(w=cap_w), node_power(case), peak_factor(case, draws), node)
    except NoPlanError as error:
        limit_w = limit_under_cap(case, cap_w, node, draws)
        if limit_w is None:
            raise
        raise NoPlanError(
            error.original_message, hint=Message.of("hint.raise_cap_or_limit", limit_w=limit_w)
        ) from error


def wider_cap(case: Case, gpus: int, draws: Draws) -> Message:
    """Return the cap that would be enough, rounded up to whole kilowatts."""
    need_w = float(peak_of(case, gpus, draws).w)
    return Message.of("hint.wider_cap", cap_kw=math.ceil(kw_from_w(need_w)))


LIMIT_STEP_W = 10
"""Power limits in hints are multiples of this."""


def limit_under_cap(case: Case, cap_w: float, gpus: int, draws: Draws) -> int | None:
    """Return the highest power limit in watts at which a number of GPUs stays under a cap; None if none is known to."""
    cluster, least_w = case.cluster, case.cluster.gpu.power_limit_min_w
    if least_w is None:
        return None
    first = math.floor(cluster.limit_w / LIMIT_STEP_W) * LIMIT_STEP_W
    for limit_w in range(first, math.ceil(least_w) - 1, -LIMIT_STEP_W):
        lower = replace(case, cluster=replace(cluster, power_limit_w=float(limit_w)))
        if float(peak_of(lower, gpus, draws).w) <= cap_w:
            return limit_w
    return None


def _drawn(value: Value, count: int) -> Floats:
    return np.broadcast_to(np.asarray(value, dtype=np.float64).ravel(), (count,))

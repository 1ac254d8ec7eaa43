"""Carbon of energy by location and by contract, embodied carbon of the GPUs, and the SCI score.

SCI, ISO/IEC 21031:2024 (Green-Software-Foundation/sci@29cab981): SCI = (E x I + M) per R, with E the energy in kWh, I
the location-based grid factor, M the embodied share of the hardware for the time it is held, R the functional unit;
market instruments and offsets never count. Every function is elementwise and broadcasts.
"""

from __future__ import annotations

from planner.costs.quantity import Energy, Value

SCI_FLOP = 1e21
"""Functional unit of the second SCI score."""


def operation_kg(energy: Energy, kg_co2e_per_kwh: Value) -> Value:
    """Return energy at the facility's meter times the factor of the grid, or of the user's contracts (market-based)."""
    return energy.kwh * kg_co2e_per_kwh


def embodied_kg(gpu_h: Value, kg_co2e_per_gpu_h: Value) -> Value:
    """Return a run's share of its GPUs' embodied carbon: the hours that it holds them, over the hours of their life."""
    return gpu_h * kg_co2e_per_gpu_h


def sci_kg_per_run(location_kg: Value, embodied_share_kg: Value) -> Value:
    """Return the SCI score with R = one run: location-based operation plus the embodied share."""
    return location_kg + embodied_share_kg


def sci_kg_per_1e21_flop(score_kg_per_run: Value, model_flop: float) -> Value:
    """Return the SCI score with R = 10^21 model FLOP.

    Args:
        score_kg_per_run: SCI score of the run.
        model_flop: model FLOP of the run, without recomputation; above 0.
    """
    return score_kg_per_run / (model_flop / SCI_FLOP)

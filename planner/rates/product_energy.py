"""Energy per FLOP of a product by type and architecture: measured, or derived from the energy of 16-bit products."""

from __future__ import annotations

from dataclasses import replace

from planner.hardware.architectures import find_architecture
from planner.hardware.cluster import Cluster
from planner.kernels.power import ProductPower
from planner.rates.clock import power_law
from planner.rates.parameters import Parameter, Parameters
from planner.rates.terms import Dependence, Term
from planner.units import PICO


def product_power(
    cluster: Cluster, parameters: Parameters, compute: str, wide_flop_per_s: float | None
) -> ProductPower | None:
    """Power draw of products of a type by shape on a GPU; None if the GPU's power limit or the energy is unknown.

    Args:
        cluster: the machines with their power limit.
        parameters: the rows to use.
        compute: type of the operands: the type of a surface (`bf16` for all 16-bit types), `tf32` or `fp32`.
        wide_flop_per_s: rate that large BF16 products sustain on this GPU under the limit as sold; None if it was not
            measured.
    """
    gpu = cluster.gpu
    j_per_flop = _j_per_flop(cluster, parameters, compute, wide_flop_per_s) if gpu.tdp_w > 0 else None
    if j_per_flop is None:
        return None
    traffic = _by_architecture(parameters, "memory_pj_per_byte", gpu.arch) or parameters.find("memory_pj_per_byte")
    return ProductPower(
        law=power_law(parameters), compute=compute, sold_w=gpu.tdp_w, limit_w=cluster.limit_w,
        held_w=parameters.find("power_at_limit").value * gpu.tdp_w, j_per_flop=j_per_flop,
        j_per_byte=traffic.value * PICO,
    )  # fmt: skip


def as_sold(term: Term, arch: str, parameters: Parameters) -> Term:
    """Convert a rate without a surface to the clock that the limit as sold allows; unchanged if its power is unknown.

    Such a rate is known only as a share of the peak, which is stated at the full clock. Surfaces, by contrast, are
    measured at the clock that the limit allows.
    """
    power = term.power
    row = None if power is None else energy_row(parameters, power.compute, arch)
    if power is None or row is None:
        return term
    clock, slope = _held_clock(power, parameters, term.value)
    rests_on = [replace(on, power=on.power * (1.0 + slope)) for on in term.rests_on]
    rests_on += [Dependence(row=row, power=slope)] if slope else []
    return replace(term, value=term.value * clock, ceiling=term.ceiling * clock, rests_on=tuple(rests_on))


def _held_clock(power: ProductPower, parameters: Parameters, flop_per_s: float) -> tuple[float, float]:
    """Share of the full clock that the limit as sold allows for large products, and its slope in their energy.

    The slope is the derivative of the share's logarithm by the logarithm of the energy per FLOP, or equally by that of
    the rate at the full clock (`flop_per_s`).
    """
    room = (power.held_w - power.idle_w) / (power.j_per_flop * flop_per_s)
    if room >= 1.0:
        return 1.0, 0.0
    floor = power.law.voltage_floor * parameters.find("sustained_clock").value
    followed = room > floor**power.law.clock_exponent
    clock = replace(power.law, voltage_floor=floor).clock(room)
    return float(clock), -1.0 / power.law.clock_exponent if followed else -1.0


def energy_row(parameters: Parameters, compute: str, arch: str) -> Parameter | None:
    """The row that determines the energy of a type: the architecture's own row, else the ratio to BF16's energy."""
    return _by_architecture(parameters, f"product_pj_per_flop.{compute}", arch) or parameters.rows.get(
        f"product_energy_ratio.{compute}"
    )


def _j_per_flop(cluster: Cluster, parameters: Parameters, compute: str, wide_flop_per_s: float | None) -> float | None:
    """Energy per FLOP at the full clock; None if unknown.

    It is the architecture's own value for the type if known, else a ratio times BF16's on this GPU. Only BF16 products
    are ever assumed to run at the power limit: a GPU may stay below it with a type of fewer FLOP per second (TF32,
    FP32), or if it has few active units (H20). CUDA cores never need less energy than tensor cores.
    """
    row = energy_row(parameters, compute, cluster.gpu.arch)
    if row is not None and row.family == "product_pj_per_flop":
        least = _j_per_flop(cluster, parameters, "tf32", wide_flop_per_s) if compute == "fp32" else None
        return max(row.value * PICO, least or 0.0)
    if compute == "bf16":
        return None if wide_flop_per_s is None else _held_j_per_flop(cluster, parameters, wide_flop_per_s)
    wide = _j_per_flop(cluster, parameters, "bf16", wide_flop_per_s)
    return None if row is None or wide is None else row.value * wide


def _held_j_per_flop(cluster: Cluster, parameters: Parameters, flop_per_s: float) -> float:
    """Energy per FLOP of a large product that runs at the limit as sold, converted to the full clock."""
    law, sold_w = power_law(parameters), cluster.gpu.tdp_w
    at_limit_j = (parameters.find("power_at_limit").value - law.idle_ratio) * sold_w / flop_per_s
    return float(at_limit_j * parameters.find("sustained_clock").value ** (1.0 - law.clock_exponent))


def _by_architecture(parameters: Parameters, name: str, arch: str) -> Parameter | None:
    """The row of an architecture, or of the related architecture used in its place; None if neither has one."""
    rows = (parameters.rows.get(f"{name}.{each}") for each in (arch, find_architecture(arch).parameters_of))
    return next((row for row in rows if row is not None), None)

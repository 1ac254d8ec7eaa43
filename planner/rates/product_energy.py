"""The energy of a FLOP of a product by type and architecture: measured, or derived from that of its 16-bit products."""

from __future__ import annotations

from planner.hardware.architectures import find_architecture
from planner.hardware.cluster import Cluster
from planner.kernels.power import ProductPower
from planner.rates.clock import power_law
from planner.rates.parameters import Parameter, Parameters
from planner.units import PICO


def product_power(cluster: Cluster, known: Parameters, compute: str, wide_flop_per_s: float) -> ProductPower | None:
    """What products of a type draw by shape on a GPU; None where its power limit is not known.

    Args:
        cluster: the machines, with their power limit.
        known: the rows to use.
        compute: type of the operands: that of a surface, `tf32` or `fp32`.
        wide_flop_per_s: what large BF16 products sustain on this GPU under the limit as sold.
    """
    gpu = cluster.gpu
    if gpu.tdp_w <= 0:
        return None
    traffic = _by_architecture(known, "memory_pj_per_byte", gpu.arch) or known.find("memory_pj_per_byte")
    return ProductPower(
        law=power_law(known), compute=compute, sold_w=gpu.tdp_w, limit_w=cluster.limit_w,
        held_w=known.find("power_at_limit").value * gpu.tdp_w,
        j_per_flop=_j_per_flop(cluster, known, compute, wide_flop_per_s), j_per_byte=traffic.value * PICO,
    )  # fmt: skip


def _j_per_flop(cluster: Cluster, known: Parameters, compute: str, wide_flop_per_s: float) -> float:
    """At the full clock: the architecture's own where it is known in this type, else a ratio of BF16's on this GPU.

    Only BF16 is ever taken to hold the limit: a GPU may not need it for a type of fewer FLOP per second (TF32, FP32),
    or with few of its units (H20).
    """
    row = _by_architecture(known, f"product_pj_per_flop.{compute}", cluster.gpu.arch)
    if row is not None:
        return row.value * PICO
    if compute == "bf16":
        return _held_j_per_flop(cluster, known, wide_flop_per_s)
    ratio = known.find("product_energy_ratio", compute).value
    return ratio * _j_per_flop(cluster, known, "bf16", wide_flop_per_s)


def _held_j_per_flop(cluster: Cluster, known: Parameters, flop_per_s: float) -> float:
    """Of a large product that holds the limit as sold, brought to the full clock."""
    law, sold_w = power_law(known), cluster.gpu.tdp_w
    at_limit_j = (known.find("power_at_limit").value - law.idle_ratio) * sold_w / flop_per_s
    return float(at_limit_j * known.find("sustained_clock").value ** (1.0 - law.clock_exponent))


def _by_architecture(known: Parameters, name: str, arch: str) -> Parameter | None:
    """The row of an architecture, or of the relative that stands for it; None where neither has one."""
    rows = (known.rows.get(f"{name}.{each}") for each in (arch, find_architecture(arch).parameters_of))
    return next((row for row in rows if row is not None), None)

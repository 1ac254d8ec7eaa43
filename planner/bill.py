"""The bill of a run: GPU line, minimum term, set-up fee and the lines beside, drawn together and summed to the cent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cost import (
    DrawnLine,
    cost_tree,
    egress_usd,
    electricity_usd,
    gpu_rental_usd,
    hosts_usd,
    minimum_term_usd,
    share_usd,
    storage_usd,
)
from planner.evidence import Estimate
from planner.price import NO_DATA, Beside, CostLine, GpuPrice, OwnedPrice, Quote
from planner.quantity import DataSize, Energy
from planner.units import MONTH_H

Draws = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDraws:
    """What a run takes, drawn; the same index is the same world. Shape [draw] each."""

    gpus: int
    gpu_h: Draws
    """GPUs times wall hours, goodput included."""
    usd_per_gpu_h: Draws
    """Price of a GPU-hour; 0 where none is known (then the bill is a lower bound)."""
    checkpoint: DataSize = NO_DATA
    """One checkpoint of the model and its optimizer."""
    energy: Energy | None = None
    """At the facility's meter; only where electricity is paid apart from the GPU price."""
    usd_per_kwh: Draws | None = None
    """Price of electricity where it is paid apart."""

    @property
    def wall_h(self) -> Draws:
        """Hours on the clock."""
        return self.gpu_h / self.gpus


def run_bill(
    run: RunDraws,
    price: GpuPrice,
    *,
    beside: Beside | None = None,
    quote: Quote | None = None,
    owned: OwnedPrice | None = None,
) -> tuple[Estimate, tuple[CostLine, ...]]:
    """The total and the lines that sum to it at low, mid and high.

    Args:
        run: what the run takes, drawn.
        price: where `usd_per_gpu_h` was drawn from.
        beside: the lines beside the GPUs; none where None.
        quote: the offer the price is from; adds its minimum term and set-up fee.
        owned: the machines the price is from; splits the GPU line into its items.
    """
    lines = [_gpu_line(run, price, owned)]
    lines += _quote_lines(run, quote) if quote is not None else []
    if run.energy is not None and run.usd_per_kwh is not None:
        energy_kwh = float(np.median(run.energy.kwh))
        cost = np.asarray(electricity_usd(run.energy, run.usd_per_kwh), dtype=np.float64)
        lines.append(DrawnLine(id="electricity", label="Electricity", usd=cost, quantity=energy_kwh, unit="kWh"))
    lines += _beside_lines(run, lines[0].amounts, beside) if beside is not None else []
    unpriced = price.usd_per_gpu_h is None or price.usd_per_gpu_h.at_least
    return cost_tree(lines, at_least=unpriced)


def _gpu_line(run: RunDraws, price: GpuPrice, owned: OwnedPrice | None) -> DrawnLine:
    amounts = np.asarray(gpu_rental_usd(run.gpu_h, run.usd_per_gpu_h), dtype=np.float64)
    children: tuple[DrawnLine, ...] = ()
    if owned is not None:
        whole = sum(owned.items_usd_per_gpu_h.values())
        children = tuple(
            DrawnLine(id=f"owned_{name}", label=name.capitalize(), usd=np.asarray(share_usd(amounts, usd / whole)))
            for name, usd in owned.items_usd_per_gpu_h.items()
            if usd > 0
        )
    return DrawnLine(
        id="gpu_rental" if owned is None else "gpu_owned",
        label="GPU rental" if owned is None else "Own GPUs",
        usd=amounts,
        quantity=float(np.median(run.gpu_h)),
        unit="GPU-hour",
        unit_price_usd=price.usd_per_gpu_h,
        evidence_ids=tuple(one.id for one in price.evidence),
        children=children,
    )


def _quote_lines(run: RunDraws, quote: Quote) -> list[DrawnLine]:
    lines = []
    billed = max(run.gpus, quote.minimum_gpus)
    extra = np.asarray(
        minimum_term_usd(billed, run.wall_h, quote.minimum_term_h, run.usd_per_gpu_h)
        + gpu_rental_usd((billed - run.gpus) * run.wall_h, run.usd_per_gpu_h),
        dtype=np.float64,
    )
    if (extra > 0).any():
        lines.append(DrawnLine(id="minimum_term", label="Minimum term and size, not used", usd=extra))
    if quote.setup_fee_usd > 0:
        lines.append(_fixed("setup_fee", "Set-up fee", quote.setup_fee_usd, run))
    return lines


def _beside_lines(run: RunDraws, gpu_usd: Draws, beside: Beside) -> list[DrawnLine]:
    kept = DataSize(size_bytes=run.checkpoint.size_bytes * beside.checkpoints_kept + beside.data.size_bytes)
    months = run.wall_h / MONTH_H + beside.months_after
    amounts = {
        "network": ("Network between servers", share_usd(gpu_usd, beside.network_ratio)),
        "storage": ("Checkpoint and data storage", storage_usd(kept, months, beside.storage_usd_per_gb_month)),
        "egress": ("Data moved out", egress_usd(beside.egress, beside.egress_usd_per_gb)),
        "cpu_hosts": ("CPU machines", hosts_usd(beside.hosts, run.wall_h, beside.usd_per_host_h)),
        "failed_work": ("Failed and repeated work", share_usd(gpu_usd, beside.failed_ratio)),
        "experiments": ("Experiments before the run", share_usd(gpu_usd, beside.experiments_ratio)),
    }
    return [
        DrawnLine(id=name, label=label, usd=np.broadcast_to(np.asarray(usd, dtype=np.float64), run.gpu_h.shape))
        for name, (label, usd) in amounts.items()
        if np.any(np.asarray(usd) > 0)
    ]


def _fixed(name: str, label: str, usd: float, run: RunDraws) -> DrawnLine:
    return DrawnLine(id=name, label=label, usd=np.full(run.gpu_h.shape, usd))

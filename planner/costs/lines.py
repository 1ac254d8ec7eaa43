"""The lines of a run's cost, for single values or for arrays of layouts or draws.

Every function is elementwise and broadcasts; amounts are USD. The mid of a line is its quantity at mid times its unit
price at mid, to the cent, and the mid of a total is the sum of its lines (`docs/decisions/0014-mids-that-multiply.md`).
Low and high of a total are percentiles of its draws, and those of the lines are shares of the total's, to the cent: the
tree sums in all three columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.costs.prices import CostLine
from planner.costs.quantity import DataSize, Energy, Value
from planner.costs.rounding import LUMP_SUM, billed_price, billed_quantity, cents, in_cents, product_usd, summed
from planner.errors import Message
from planner.evidence import Estimate, middle
from planner.lazy import dataclass


def gpu_rental_usd(gpu_h: Value, usd_per_gpu_h: Value) -> Value:
    """Return the hours that GPUs are held times the price of a GPU-hour."""
    return gpu_h * usd_per_gpu_h


def unused_term_gpu_h(gpus: Value, wall_h: Value, term_h: float) -> Value:
    """Return the GPU-hours of a minimum term that the run does not use but that are billed."""
    return gpus * np.maximum(term_h - np.asarray(wall_h, dtype=np.float64), 0.0)


def electricity_usd(energy: Energy, usd_per_kwh: Value) -> Value:
    """Return energy at the facility's meter times its price, for electricity that is not part of the GPU price."""
    return energy.kwh * usd_per_kwh


def storage_usd(size: DataSize, months: Value, usd_per_gb_month: Value) -> Value:
    """Return the cost of data kept for some months; storage is billed in decimal gigabytes."""
    return size.gb * months * usd_per_gb_month


def egress_usd(size: DataSize, usd_per_gb: Value) -> Value:
    """Return the cost of data moved out once; traffic is billed in decimal gigabytes."""
    return size.gb * usd_per_gb


def hosts_usd(hosts: float, wall_h: Value, usd_per_host_h: Value) -> Value:
    """Return the cost of CPU machines held for the run, for example for data and control."""
    return hosts * wall_h * usd_per_host_h


def share_usd(base_usd: Value, ratio: Value) -> Value:
    """Return an amount that is a share of others: network, failed and repeated work, experiments before the run."""
    return base_usd * ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLine:
    """One line of a bill, drawn: in every line, one index is the same draw of every uncertain input."""

    id: str
    """For example `gpu_rental`."""
    label: Message
    usd: npt.NDArray[np.float64]
    """One amount per draw, shape [draw]; ignored where there are children, whose sum replaces it."""
    quantity: float | None = None
    """Units bought at mid."""
    unit: str | None = None
    unit_price_usd: Estimate | None = None
    base_usd: float | None = None
    """For a share of other lines, the share of their sum at mid."""
    evidence_ids: tuple[str, ...] = ()
    block: str = ""
    """Lines with the same block name are paid as one amount, such as the used and the unused hours of one contract."""
    children: tuple[DrawnLine, ...] = ()

    @property
    def mid_usd(self) -> float:
        """USD at mid in whole cents: from child lines, from quantity and unit price, or from `base_usd`."""
        if self.children:
            return sum(child.mid_usd for child in self.children)
        if self.quantity is not None and self.unit_price_usd is not None:
            price = billed_price(self.unit_price_usd).mid
            return float(product_usd(billed_quantity(self.quantity), price))
        return float(cents(middle(self.usd) if self.base_usd is None else self.base_usd))

    @property
    def amounts(self) -> npt.NDArray[np.float64]:
        """USD per draw, shape [draw]."""
        if not self.children:
            return self.usd
        return np.asarray(np.sum([child.amounts for child in self.children], axis=0))


def _shares(*weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scale weights to sum to 1: the first set that is not all 0, else equal weights."""
    for choice in weights:
        if choice.sum() > 0:
            return np.asarray(choice / choice.sum())
    return np.full(len(weights[0]), 1.0 / len(weights[0]))


def split_range(total: Estimate, parts: Sequence[Estimate]) -> tuple[Estimate, ...]:
    """Give each part its share of a total's low and high, so that the parts sum to it there as they do at mid.

    Percentiles do not add: the parts are not all at their 95th percentile at once. The distance from mid to low (high)
    is split in proportion to the parts' own distances to their 5th (95th) percentile, so that a fixed part stays exact.

    Args:
        total: the range of the sum.
        parts: the range of each part; their mids sum to that of the total.
    """
    own = np.array([(part.low, part.mid, part.high) for part in parts])
    mids, widths = own[:, 1], own[:, 2] - own[:, 0]
    lows = mids - (total.mid - total.low) * _shares(mids - own[:, 0], widths)
    highs = mids + (total.high - total.mid) * _shares(own[:, 2] - mids, widths)
    return tuple(
        Estimate(low=float(low), mid=float(mid), high=float(high), at_least=total.at_least)
        for low, mid, high in zip(lows, mids, highs, strict=True)
    )


def cost_tree(lines: Sequence[DrawnLine], *, at_least: bool = False) -> tuple[Estimate, tuple[CostLine, ...]]:
    """Return the range of the total, and the lines that sum to it.

    Args:
        lines: at least one; all with the same number of draws.
        at_least: whether something is missing, so that every figure is a lower bound.

    Raises:
        ValueError: there are no lines, or an amount is negative or not finite.
    """
    if not lines:
        raise ValueError("a bill needs a line")
    parts = [line.amounts for line in lines]
    if not all(np.isfinite(part).all() and (part >= 0).all() for part in parts):
        raise ValueError("an amount is negative or not finite")
    mid = sum(line.mid_usd for line in lines)
    total = Estimate.of_draws(np.sum(parts, axis=0), mid=mid, at_least=at_least)
    tree = _lines(total, lines)
    return summed([line.usd for line in tree]), tree


def _lines(total: Estimate, lines: Sequence[DrawnLine]) -> tuple[CostLine, ...]:
    """Return lines with their shares of a total's range; a block takes the share of its sum, which its lines divide."""
    blocks: dict[str, list[DrawnLine]] = {}
    for line in lines:
        blocks.setdefault(line.block or line.id, []).append(line)
    whole = split_range(total, [_block_range(block) for block in blocks.values()])
    usd_by_id = {
        line.id: usd
        for of_block, block in zip(whole, blocks.values(), strict=True)
        for line, usd in zip(block, _within(of_block, block), strict=True)
    }
    return tuple(_line(line, usd_by_id[line.id]) for line in lines)


def _block_range(block: Sequence[DrawnLine]) -> Estimate:
    amounts = np.sum([line.amounts for line in block], axis=0)
    return Estimate.of_draws(amounts, mid=sum(line.mid_usd for line in block))


def _within(usd: Estimate, block: Sequence[DrawnLine]) -> tuple[Estimate, ...]:
    """Divide the range of a block among its lines, by how much each line moves with the block's sum.

    The lines' own percentiles say nothing here: within a minimum term, one more hour of rental is one less unused hour,
    and their sum stays the same.
    """
    if len(block) == 1:
        return (usd,)
    amounts = np.array([line.amounts for line in block])
    whole = amounts.sum(axis=0)
    moves = (amounts - amounts.mean(axis=1, keepdims=True)) @ (whole - whole.mean())
    shares = _shares(np.maximum(moves, 0.0))
    below, above = (usd.mid - usd.low) * shares, (usd.high - usd.mid) * shares
    return tuple(
        Estimate(low=max(line.mid_usd - down, 0.0), mid=line.mid_usd, high=line.mid_usd + up, at_least=usd.at_least)
        for line, down, up in zip(block, below.tolist(), above.tolist(), strict=True)
    )


def _line(line: DrawnLine, usd: Estimate) -> CostLine:
    """Return one line in whole cents: a sum of its own lines, a quantity at a unit price, or one lump sum."""
    ids = line.evidence_ids
    if line.children:
        children = _lines(usd, line.children)
        whole = summed([child.usd for child in children])
        return CostLine(id=line.id, label=line.label, usd=whole, evidence_ids=ids, children=children)
    whole, quantity, unit, price = in_cents(usd), line.quantity, line.unit, line.unit_price_usd
    if quantity is None or price is None:
        quantity, unit, price = 1.0, LUMP_SUM, replace(whole, at_least=False)
    return CostLine(
        id=line.id,
        label=line.label,
        usd=whole,
        quantity=billed_quantity(quantity),
        unit=unit,
        unit_price_usd=billed_price(price),
        evidence_ids=ids,
    )

"""Fit the energy of matrix products per FLOP and per byte to measured power: `python -m tools.product_power FOLDER`.

Writes the rows `product_pj_per_flop` and `memory_pj_per_byte` of `planner/catalog/parameters.csv`. The folder holds the
raw files named in `tools/kernel_rows.py`.

Most readings are from a GPU at its power limit; they are lower bounds of the power that the product would draw. The
others are lower because the product draws less, or because the window began on a cooler GPU: the sensor averages over a
second, so windows underestimate. The fit therefore goes through the upper quartile, with weak priors from the clocks of
bursts. If readings at the limit put a narrower type above BF16, the ratio of both in one stack is used instead.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.hardware.catalogue import find_gpu
from planner.kernels.power import ProductPower, product_bytes
from planner.rates.clock import power_law
from planner.rates.parameters import Parameter, shipped_parameters
from planner.units import PICO
from tools.calibrate import write_parameters
from tools.kernel_rows import ProductWatts, read_power

Floats = npt.NDArray[np.float64]

QUARTILE = 0.75
"""Quantile of the readings through which the fit goes."""
MEMORY_J_PER_BYTE = 40 * PICO
"""Prior: 4 pJ per bit of HBM3 in the stack and its interface, and as much again through the caches; assumed."""
PRIOR_SD = (0.5, 0.2)
"""Prior standard deviations of the logarithms of the energy per byte and per FLOP."""
PRIOR_WEIGHT = 0.01
"""Weight of a prior's squared deviation relative to the mean loss of one GPU and type."""
RANGE = (1.67, 1.25)
"""Ratio of high to value, and of value to low, for energy per byte and per FLOP: the data's uncertainty."""
FIRST_STEP, LAST_STEP = 0.1, 1e-3
"""First and last step of the coordinate search, in the logarithms."""


def law_of(watts: ProductWatts, j_per_byte: float, j_per_flop: float) -> ProductPower:
    """Return the power law of one GPU and type with these energies."""
    known = shipped_parameters()
    return ProductPower(
        law=power_law(known), compute=watts.compute, sold_w=watts.limit_w, limit_w=watts.limit_w,
        held_w=known.find("power_at_limit").value * watts.limit_w, j_per_flop=j_per_flop, j_per_byte=j_per_byte,
    )  # fmt: skip


def predicted_w(watts: ProductWatts, j_per_byte: float, j_per_flop: float) -> Floats:
    """Return the predicted power in watts at the measured times, `[point]`."""
    law = law_of(watts, j_per_byte, j_per_flop)
    return np.asarray(law.alone_w(watts.m, watts.n, watts.k, watts.seconds))


class ArchitecturePower:
    """The energies of one architecture, fitted to the readings of its GPUs."""

    def __init__(self, readings: Sequence[ProductWatts], kept: Sequence[npt.NDArray[np.bool_]] | None = None) -> None:
        """Fit the energies.

        Args:
            readings: readings of every GPU, type and stack of the architecture.
            kept: points of each reading to use, `[point]`; None: all.
        """
        self._readings = readings if kept is None else [_taken(*pair) for pair in zip(readings, kept, strict=True)]
        self.computes = sorted({watts.compute for watts in readings})
        self._prior = np.log([MEMORY_J_PER_BYTE, *(self._at_full_clock(compute) for compute in self.computes)])
        self._logs = self._fitted()

    @property
    def j_per_byte(self) -> float:
        """Energy per byte."""
        return float(np.exp(self._logs[0]))

    def j_per_flop(self, compute: str) -> float:
        """Return the energy per FLOP of a type at the full clock; a narrower type never takes more than BF16."""
        own, wide = (float(np.exp(self._logs[1 + self.computes.index(each)])) for each in (compute, "bf16"))
        return own if own <= wide else min(wide * self._stack_ratio(compute), wide)

    def _stack_ratio(self, compute: str) -> float:
        """Return the median ratio of energy per FLOP of large products to BF16, for the same stack and GPU."""
        drawn = {
            (watts.gpu, watts.stack, watts.compute): self._drawn_j_per_flop(watts)
            for watts in self._readings
            if watts.large.any()
        }
        pairs = [(j, drawn.get((gpu, stack, "bf16"))) for (gpu, stack, of), j in drawn.items() if of == compute]
        return float(np.median([narrow / wide for narrow, wide in pairs if wide] or [1.0]))

    def _drawn_j_per_flop(self, watts: ProductWatts) -> float:
        """Return the energy per FLOP of large products as they ran, without idle power and traffic."""
        idle_w = power_law(shipped_parameters()).idle_ratio * watts.limit_w
        traffic_j = self.j_per_byte * product_bytes(watts.m, watts.n, watts.k, watts.compute)
        work_j = (watts.power_w - idle_w) * watts.seconds - traffic_j
        return float(np.median((work_j / (2.0 * watts.m * watts.n * watts.k))[watts.large]))

    def _at_full_clock(self, compute: str) -> float:
        """Return the energy per FLOP of large products at the limit, scaled to the clock of a burst."""
        known = shipped_parameters()
        law = power_law(known)
        energies = []
        for watts in self._readings:
            if watts.compute == compute:
                busy_w = known.find("power_at_limit").value * watts.limit_w
                at_limit = watts.large & (watts.power_w > 0.95 * watts.limit_w)
                at_limit = at_limit if at_limit.any() else watts.power_w > 0.0
                flop = 2.0 * watts.m * watts.n * watts.k
                energies.append((busy_w - law.idle_ratio * watts.limit_w) * (watts.seconds / flop)[at_limit])
        full = known.find("sustained_clock").value ** (1.0 - law.clock_exponent)
        return float(np.median(np.concatenate(energies)) * full)

    def _loss(self, logs: Floats) -> float:
        """Return the summed mean pinball losses of the GPUs and types, plus a penalty for leaving the priors."""
        energies, total = np.exp(logs), 0.0
        for watts in self._readings:
            alike = [other for other in self._readings if (other.gpu, other.compute) == (watts.gpu, watts.compute)]
            points = sum(len(other.m) for other in alike)
            energy = float(energies[1 + self.computes.index(watts.compute)])
            over = np.log(watts.power_w / predicted_w(watts, float(energies[0]), energy))
            total += float(np.sum(np.where(over > 0, QUARTILE * over, (QUARTILE - 1.0) * over))) / points
        spread = np.array([PRIOR_SD[0], *[PRIOR_SD[1]] * len(self.computes)])
        return total + PRIOR_WEIGHT * float(np.sum(((logs - self._prior) / spread) ** 2))

    def _fitted(self) -> Floats:
        """Search coordinate by coordinate, with steps that grow after success and shrink otherwise."""
        logs, step = self._prior.copy(), np.full(len(self._prior), FIRST_STEP)
        least = self._loss(logs)
        while step.max() > LAST_STEP:
            for place in range(len(logs)):
                for sign in (1.0, -1.0):
                    trial = logs.copy()
                    trial[place] += sign * step[place]
                    if (loss := self._loss(trial)) < least:
                        logs, least = trial, loss
                        step[place] *= 1.5
                        break
                else:
                    step[place] *= 0.6
        return logs


def _taken(watts: ProductWatts, kept: npt.NDArray[np.bool_]) -> ProductWatts:
    arrays = {name: getattr(watts, name)[kept] for name in ("m", "n", "k", "seconds", "power_w")}
    return replace(watts, **arrays)


def by_architecture(readings: Sequence[ProductWatts]) -> dict[str, list[ProductWatts]]:
    """Group the readings by the architecture of their GPU."""
    grouped: dict[str, list[ProductWatts]] = {}
    for watts in readings:
        grouped.setdefault(find_gpu(watts.gpu).arch, []).append(watts)
    return grouped


def _row(name: str, j: float, range_ratio: float) -> Parameter:
    pj = j / PICO
    return replace(shipped_parameters().rows[name], value=pj, low=pj / range_ratio, high=pj * range_ratio)


def main(folder: Path) -> None:
    """Fit every architecture and write its rows."""
    rows = []
    for arch, readings in by_architecture(read_power(folder)).items():
        fitted = ArchitecturePower(readings)
        rows.append(_row(f"memory_pj_per_byte.{arch}", fitted.j_per_byte, RANGE[0]))
        rows += [
            _row(f"product_pj_per_flop.{compute}.{arch}", fitted.j_per_flop(compute), RANGE[1])
            for compute in fitted.computes
        ]
    write_parameters(shipped_parameters().replaced(rows))
    sys.stdout.writelines(f"{row.id}: {row.value:.3g} pJ\n" for row in rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

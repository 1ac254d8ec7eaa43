"""Energy, power and amounts of data as types, so that kWh cannot be passed for MWh, kW for MW or GB for GiB.

A number enters through a constructor that names its unit and leaves through a property that names it; the arithmetic
of money takes only these types. Each holds one value or an array.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.lazy import dataclass
from planner.units import GB, HOUR_S, KWH_J, MWH_J, kw_from_w, mw_from_w, w_from_kw, w_from_mw

Value = float | npt.NDArray[np.float64]
"""One number, or an array of layouts or draws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """An amount of energy."""

    j: Value
    """Joules."""

    @classmethod
    def from_mwh(cls, value: Value) -> Energy:
        """Return the energy of a number of megawatt-hours."""
        return cls(j=value * MWH_J)

    @property
    def kwh(self) -> Value:
        """The energy in kilowatt-hours."""
        return self.j / KWH_J

    @property
    def mwh(self) -> Value:
        """The energy in megawatt-hours."""
        return self.j / MWH_J

    def __add__(self, other: Energy) -> Energy:
        return Energy(j=self.j + other.j)

    def times(self, ratio: Value) -> Energy:
        """Return this energy times a plain number."""
        return Energy(j=self.j * ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power, the rate of energy."""

    w: Value
    """Watts."""

    @classmethod
    def from_kw(cls, value: float) -> Power:
        """Return the power of a number of kilowatts."""
        return cls(w=w_from_kw(value))

    @classmethod
    def from_mw(cls, value: float) -> Power:
        """Return the power of a number of megawatts."""
        return cls(w=w_from_mw(value))

    @property
    def kw(self) -> Value:
        """The power in kilowatts."""
        return kw_from_w(self.w)  # type: ignore[arg-type]  # plain division holds for arrays too

    @property
    def mw(self) -> Value:
        """The power in megawatts."""
        return mw_from_w(self.w)  # type: ignore[arg-type]  # as above

    def over_hours(self, hours: Value) -> Energy:
        """Return the energy of this power held for some hours."""
        return Energy(j=self.w * hours * HOUR_S)

    def times(self, ratio: Value) -> Power:
        """Return this power times a plain number."""
        return Power(w=self.w * ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSize:
    """An amount of data."""

    size_bytes: Value

    @property
    def gb(self) -> Value:
        """The size in decimal gigabytes, as storage and traffic are billed."""
        return self.size_bytes / GB

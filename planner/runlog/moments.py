"""Times of day in the files of other tools: with a zone, or local ones of which only differences are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from planner.errors import UsageError
from planner.lazy import dataclass
from planner.runlog.amounts import as_number
from planner.units import HOUR_S, MILLI, MINUTE_S

Floats = npt.NDArray[np.float64]

_EPOCH_S = (5e8, 5e9)
"""Seconds since 1970 of dates between 1985 and 2128: other numbers are milliseconds, or no dates."""
_OFFSET = re.compile(r"([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time."""

    seconds: float
    """Since 1970 in UTC; of a time without a zone as if it were in UTC."""
    zoned: bool
    """Whether the zone is known."""

    def iso(self) -> str:
        """As ISO 8601, without a zone where none is known."""
        moment = datetime.fromtimestamp(self.seconds, UTC)
        return (moment if self.zoned else moment.replace(tzinfo=None)).isoformat(timespec="seconds")


def parse_moment(value: object) -> Moment | None:
    """A time as tools write it: ISO 8601, `2026/11/22 12:34:56.789`, `11/22/2026 12:34:56`, or seconds since 1970.

    Returns:
        None where it is none of these.
    """
    amount = as_number(value)
    if amount is not None:
        return _epoch(amount)
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None
    text = value.strip()
    try:  # most logs have this one, and it is by far the fastest
        return _of(datetime.fromisoformat(text))
    except ValueError:
        pass
    for pattern in ("%m/%d/%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S,%f"):
        try:
            return _of(datetime.strptime(text, pattern))
        except ValueError:
            continue
    return None


def _epoch(amount: float) -> Moment | None:
    low, high = _EPOCH_S
    if low <= amount <= high:
        return Moment(amount, zoned=True)
    in_milliseconds = amount * MILLI
    return Moment(in_milliseconds, zoned=True) if low <= in_milliseconds <= high else None


def _of(moment: datetime) -> Moment | None:
    zoned = moment.tzinfo is not None
    try:
        seconds = (moment if zoned else moment.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        return None
    low, high = _EPOCH_S
    return Moment(seconds, zoned=zoned) if low <= seconds <= high else None


def parse_utc_offset(text: str) -> float:
    """How far local times are ahead of UTC, in seconds: `+01:00`, `-8`, `0`.

    Raises:
        UsageError: it is none of these.
    """
    if text.strip() in ("0", "Z", "UTC"):
        return 0.0
    match = _OFFSET.fullmatch(text.strip())
    offset_s = 0.0 if match is None else int(match[2]) * HOUR_S + int(match[3] or 0) * MINUTE_S
    if match is None or offset_s > timedelta(hours=14).total_seconds():
        raise UsageError(f"--utc-offset: `{text}` is no offset from UTC", hint="write it like `+01:00` or `-8`")
    return offset_s if match[1] == "+" else -offset_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clock:
    """The times of a log, all with a zone or all without."""

    seconds: Floats
    """As `Moment.seconds`, `[line]`."""
    zoned: bool

    @classmethod
    def of(cls, moments: Sequence[Moment]) -> Clock:
        """The times of these moments, of which all have a zone or none has."""
        seconds = np.array([moment.seconds for moment in moments], dtype=np.float64)
        return cls(seconds=seconds, zoned=bool(moments) and moments[0].zoned)

    def in_utc(self, utc_offset_s: float | None) -> Clock:
        """The same in UTC, where the zone of local times is given."""
        if self.zoned or utc_offset_s is None:
            return self
        return Clock(seconds=self.seconds - utc_offset_s, zoned=True)

"""Times in the files of other tools: with a time zone, or local times of which only differences are meaningful."""

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

EPOCH_S = (5e8, 5e9)
"""Range of seconds since 1970 for dates between 1985 and 2128; other numbers are milliseconds or not dates."""
_OFFSET = re.compile(r"([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time."""

    seconds: float
    """Seconds since 1970 in UTC; a time without a zone is treated as if it were in UTC."""
    zoned: bool
    """Whether the time zone is known."""

    def iso(self) -> str:
        """Format as ISO 8601, without a zone if it is unknown."""
        moment = datetime.fromtimestamp(self.seconds, UTC)
        return (moment if self.zoned else moment.replace(tzinfo=None)).isoformat(timespec="seconds")


def parse_moment(value: object) -> Moment | None:
    """Read a time as tools write it, such as ISO 8601, `2026/11/22 12:34:56.789` or `11/22/2026 12:34:56`.

    Seconds and milliseconds since 1970 are read, too.

    Returns:
        The time; None if the value has none of these forms.
    """
    amount = as_number(value)
    if amount is not None:
        return _epoch(amount)
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None
    text = value.strip()
    try:  # most logs have this form, and it is by far the fastest to read
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
    low, high = EPOCH_S
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
    low, high = EPOCH_S
    return Moment(seconds, zoned=zoned) if low <= seconds <= high else None


def parse_utc_offset(text: str) -> float:
    """Read an offset of local time from UTC, in seconds, positive if ahead: `+01:00`, `-8`, `0`.

    Raises:
        UsageError: the text is not an offset.
    """
    if text.strip() in ("0", "Z", "UTC"):
        return 0.0
    match = _OFFSET.fullmatch(text.strip())
    offset_s = 0.0 if match is None else int(match[2]) * HOUR_S + int(match[3] or 0) * MINUTE_S
    if match is None or offset_s > timedelta(hours=14).total_seconds():
        raise UsageError(f"--utc-offset: `{text}` is not an offset from UTC", hint="write it like `+01:00` or `-8`")
    return offset_s if match[1] == "+" else -offset_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clock:
    """Times of a log, either all with a time zone or all without."""

    seconds: Floats
    """Seconds as in `Moment.seconds`, `[line]`."""
    zoned: bool

    @classmethod
    def of(cls, moments: Sequence[Moment]) -> Clock:
        """Collect the times of these moments, which must all have a zone or all have none."""
        seconds = np.array([moment.seconds for moment in moments], dtype=np.float64)
        return cls(seconds=seconds, zoned=bool(moments) and moments[0].zoned)

    def in_utc(self, utc_offset_s: float | None) -> Clock:
        """Convert local times to UTC if their offset is given."""
        if self.zoned or utc_offset_s is None:
            return self
        return Clock(seconds=self.seconds - utc_offset_s, zoned=True)

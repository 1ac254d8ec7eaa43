"""The only place where units are converted and where quantities written by people are parsed.

Internally, units are seconds, joules, watts, bytes, FLOP, tokens and hertz. Every quantity that a person writes or
reads is converted here.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime

from planner.errors import Message, UsageError

GIB = 1024.0**3
MIB = 1024.0**2
KIB = 1024.0
GB = 1e9
TERA = 1e12
GIGA = 1e9
MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 86400.0
YEAR_H = 8760.0
MONTH_H = 730.0
"""Hours in a twelfth of a year, as cloud providers bill it."""
KWH_J = 3.6e6
MWH_J = 3.6e9
TONNE_KG = 1e3
MICRO = 1e-6
NANO = 1e-9
PICO = 1e-12
MILLI = 1e-3
MEGA = 1e6

LARGEST_COUNT = 1e18
"""Largest plausible count of anything in a run; a larger number is a mistake."""
SMALLEST_COUNT = 1e-6
"""Smallest plausible count above zero, including dollars and days."""
LONGEST_S = 1000.0 * YEAR_H * HOUR_S
"""Longest plausible duration of a plan."""
SHORTEST_S = 1e-3
"""Shortest plausible duration that a person states."""
LARGEST_BYTES = 1e21
"""A zettabyte, more than all machines of a company hold."""
LARGEST_W = 1e12
"""A terawatt; no facility draws even a thousandth of it."""

_COUNT_SUFFIX = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_BYTE_SUFFIX = {
    "b": 1.0,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": 1024.0**4,
}
_TIME_SUFFIX = {"s": 1.0, "m": 60.0, "min": 60.0, "h": HOUR_S, "d": DAY_S, "w": 7 * DAY_S}
_POWER_SUFFIX = {"w": 1.0, "kw": 1e3, "mw": 1e6, "gw": 1e9}
_NUMBER = re.compile(r"(-?(?:[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+))([a-z]*)")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])[^,]*")
_DECIMAL_COMMA = re.compile(r"[0-9]*,[0-9]+[^,.]*")


def today() -> date:
    """The current day in UTC, so that prices, rates and plans made at one moment have the same day everywhere."""
    return datetime.now(UTC).date()


def ungrouped(text: str) -> str | None:
    """The text of a number without the commas between its groups of three digits; None if it has any other comma.

    `1,500` always means 1500 here, but `1,5` and `0,500` may be meant as decimals.
    """
    if "," not in text:
        return text
    return text.replace(",", "") if _GROUPED.fullmatch(text.strip()) else None


def with_point(text: str) -> str | None:
    """The text of a number with a decimal comma, written with a point; None if it has no comma that can be decimal."""
    plain = text.strip()
    return plain.replace(",", ".") if ungrouped(plain) is None and _DECIMAL_COMMA.fullmatch(plain) else None


def without_commas(text: str, what: str, hint: str, *, whole: bool = False) -> str:
    """The text of one number without its thousands separators.

    Args:
        text: the number as typed.
        what: the flag or key.
        hint: hint on the correct form, if the comma cannot be a decimal mark.
        whole: whether the number has no decimals, so that a comma is never a decimal mark.

    Raises:
        UsageError: there is a comma anywhere but between groups of three digits.
    """
    plain = ungrouped(text)
    if plain is None:
        pointed = None if whole else with_point(text)
        offer = hint if pointed is None else f"write {pointed}"
        raise UsageError(f"{what}: `{text}` has a comma that does not separate thousands", hint=offer)
    return plain


def _split(text: str, what: str, like: str) -> tuple[float, str] | None:
    plain = without_commas(text, what, hint=f"write one number, like {like}")
    match = _NUMBER.fullmatch(plain.strip().lower().replace("_", ""))
    return (float(match[1]), match[2]) if match else None


def signed_count(text: str, what: str, like: str) -> float:
    """Read a count of any sign and size as people write it; see `parse_count`.

    Raises:
        UsageError: the text is not a number; `8x7B` is rejected with a hint to name a model.
    """
    if re.fullmatch(r"\s*[0-9]+\s*[xX]\s*[0-9.]+\s*[a-zA-Z]\s*", text):
        raise UsageError(
            f"{what}: `{text}` names a mixture of experts, not a parameter count",
            hint=Message.of("hint.name_mixture"),
        )
    parts = _split(text, what, like)
    if parts is None or parts[1] not in _COUNT_SUFFIX:
        raise UsageError(f"{what}: `{text}` is not a number", hint=f"write it like {like}")
    return parts[0] * _COUNT_SUFFIX[parts[1]]


def parse_count(text: str, what: str, like: str = "`70B`, `1.5T`, `405e9` or `15000`") -> float:
    """Read a positive count as people write it: `70B`, `1.5T`, `405e9`, `2M`, `15_000`.

    Args:
        text: the count as typed.
        what: the flag or key.
        like: typical counts, for the hint.

    Raises:
        UsageError: the text is not a count from `SMALLEST_COUNT` to `LARGEST_COUNT`; `8x7B` is rejected with a hint to
            name a model.
    """
    value = signed_count(text, what, like)
    if not SMALLEST_COUNT <= value <= LARGEST_COUNT:
        bound = "greater than 0" if value < SMALLEST_COUNT else f"at most {LARGEST_COUNT:.0e}"
        raise UsageError(f"{what}: `{text}` must be {bound}", hint=f"write it like {like}")
    return value


def parse_bytes(text: str, what: str) -> float:
    """Read a number of bytes: `80GiB`, `2.5TB`, `512 MiB`.

    Raises:
        UsageError: the text is not a positive size of at most `LARGEST_BYTES` with a unit.
    """
    like = "`80GiB` or `2.5TB`"
    parts = _split(text.replace(" ", ""), what, like)
    if parts is None or parts[1] not in _BYTE_SUFFIX or not 0 < parts[0] * _BYTE_SUFFIX[parts[1]] <= LARGEST_BYTES:
        raise UsageError(f"{what}: `{text}` is not a size in bytes", hint=f"write it like {like}")
    return parts[0] * _BYTE_SUFFIX[parts[1]]


def write_bytes(size_bytes: float) -> str:
    """Format a size as people write it: `512 KiB`, `8 GiB`, `32 bytes`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:,.4g} {name}"
    return f"{size_bytes:,.0f} bytes"


def parse_duration_s(text: str, what: str, like: str = "`30d`, `12h` or `90min`") -> float:
    """Read a duration in seconds: `30d`, `12h`, `90min`, `2w`, `45s`.

    Args:
        text: the duration as typed.
        what: the flag or key.
        like: typical durations, for the hint.

    Raises:
        UsageError: the text is not a duration from a millisecond to 1000 years with a unit.
    """
    parts = _split(text, what, like)
    value_s = parts[0] * _TIME_SUFFIX.get(parts[1], 0.0) if parts else 0.0
    if not SHORTEST_S <= value_s <= LONGEST_S:
        raise UsageError(f"{what}: `{text}` is not a duration", hint=f"write it like {like}")
    return value_s


def write_duration(duration_s: float) -> str:
    """Format a duration as a user would type it, in the largest unit that it fills: `2.5h`, `15d`.

    It is rounded up, so that a run of this duration ends within it: below ten to one decimal, otherwise to an integer.
    """
    suffix = next((name for name in ("d", "h") if duration_s >= _TIME_SUFFIX[name]), "min")
    size = duration_s / _TIME_SUFFIX[suffix]
    tenths = 1 if size >= LEAST_WHOLE else 10
    return f"{math.ceil(size * tenths * (1.0 - ROUNDING)) / tenths:g}{suffix}"


LEAST_WHOLE = 10
"""Numbers below this get one decimal; larger ones are rounded to integers."""
ROUNDING = 1e-9
"""Relative error of a duration after converting its unit and back."""


def parse_power_w(text: str, what: str) -> float:
    """Read a power in watts: `2MW`, `800 kW`, `1.2GW`; a number without a unit is rejected as ambiguous.

    Raises:
        UsageError: the text is not a positive power of at most `LARGEST_W` with a unit.
    """
    like = "`2MW` or `800kW`"
    parts = _split(text.replace(" ", ""), what, like)
    if parts is None or parts[1] not in _POWER_SUFFIX or not 0 < parts[0] * _POWER_SUFFIX[parts[1]] <= LARGEST_W:
        raise UsageError(f"{what}: `{text}` is not a power with a unit", hint=f"write it like {like}")
    return parts[0] * _POWER_SUFFIX[parts[1]]


def parse_watts(text: str, what: str) -> float:
    """Read the power of one device in watts: `500`, `500W`, `0.5kW`; a number without a unit is in watts.

    Raises:
        UsageError: the text is not a positive power of at most `LARGEST_W`.
    """
    bare = text.strip().removesuffix("W").removesuffix("w")
    try:
        value_w = float(bare)
    except ValueError:
        return parse_power_w(text, what)
    if not 0 < value_w <= LARGEST_W:
        raise UsageError(f"{what}: `{text}` is not a power above 0", hint="write it like `500` or `500W`")
    return value_w


def gib_from_bytes(value_bytes: float) -> float:
    """Convert bytes to GiB."""
    return value_bytes / GIB


def kg_from_g(value_g: float) -> float:
    """Convert grams to kilograms; grid factors are read in g per kWh."""
    return value_g / 1e3


def g_from_kg(value_kg: float) -> float:
    """Convert kilograms to grams."""
    return value_kg * 1e3


def kw_from_w(value_w: float) -> float:
    """Convert watts to kilowatts."""
    return value_w / 1e3


def w_from_kw(value_kw: float) -> float:
    """Convert kilowatts to watts."""
    return value_kw * 1e3


def mw_from_w(value_w: float) -> float:
    """Convert watts to megawatts."""
    return value_w / 1e6


def w_from_mw(value_mw: float) -> float:
    """Convert megawatts to watts."""
    return value_mw * 1e6


def kwh_from_mwh(value_mwh: float) -> float:
    """Convert megawatt-hours to kilowatt-hours."""
    return value_mwh * 1e3


def kg_from_tonnes(value_t: float) -> float:
    """Convert tonnes to kilograms."""
    return value_t * 1e3

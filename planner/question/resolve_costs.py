"""The part of a question about prices, power and carbon; the pricing room answers it."""

from __future__ import annotations

from datetime import UTC, date, datetime

from planner.errors import Message, UsageError
from planner.question.asked import Reader
from planner.question.question import MoneyInputs
from planner.units import parse_power_w


def _date(read: Reader) -> date:
    text = read.text("as_of")
    if text is None:
        today = datetime.now(UTC).date()
        read.note("as_of", today.isoformat())
        return today
    try:
        value = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--as-of: `{text}` is not a date", hint="write it like 2026-11-20") from error
    read.note("as_of", text)
    return value


def _market_grid(read: Reader) -> float | None:
    """A factor of 0 or more: 0 is a contract that is wholly renewable. Its upper bound is the pricing room's."""
    text = read.text("market_grid")
    if text is None:
        return None
    value = float_or_none(text)
    if value is None or not 0 <= value < float("inf"):
        raise UsageError(
            f"--market-grid: `{text}` is not a factor in g CO2e per kWh",
            hint="give 0 or more; 0 for a contract that is wholly renewable",
        )
    read.note("market_grid", value, note=Message.of("note.grid_market"))
    return value


def float_or_none(text: str) -> float | None:
    """A number, None where the text is none."""
    try:
        return float(text)
    except ValueError:
        return None


_TWO_PRICES = ("price", "quote", "own")


def read_money(read: Reader) -> MoneyInputs:
    """Read and note everything about money; names of files and places stay text.

    Raises:
        UsageError: a value cannot be read, or two flags state the same thing.
    """
    said = [name for name in _TWO_PRICES if read.text(name) is not None]
    if len(said) > 1:
        flags = " and ".join(f"--{name}" for name in said)
        raise UsageError(f"{flags} state the price of a GPU-hour each", hint="give one of them")
    if read.text("quote") is not None and read.text("commitment") is not None:
        raise UsageError("--commitment chooses from the price book, and --quote states its own", hint="leave one out")
    if read.text("tariff") is not None and read.text("electricity") is not None:
        raise UsageError("--tariff and --electricity state the price of electricity each", hint="give one of them")
    price, pue, electricity = read.real("price"), read.real("pue"), read.real("electricity")
    if pue is not None and pue < 1:
        raise UsageError(f"--pue: {pue:g} is less than 1", hint="facility power over IT power, for example --pue 1.2")
    for name in ("provider", "region", "quote", "own", "beside", "tariff"):
        if read.text(name) is not None:
            read.note(name, read.text(name))
    grid = read.text("grid")
    if grid is not None:
        read.note("grid", grid, note=None if float_or_none(grid) is None else Message.of("note.grid_given"))
    commitment = read.text("commitment") or "on-demand"
    read.note("commitment", commitment)
    embodied = read.choice("embodied", ("yes", "no"), "no", {"true": "yes", "false": "no"}) == "yes"
    read.note("embodied", embodied)
    cap = read.text("power_cap")
    cap_w = None if cap is None else parse_power_w(cap, "--power-cap")
    if cap is not None:
        read.note("power_cap", cap)
    return MoneyInputs(
        price_usd_per_gpu_h=price,
        provider=read.text("provider"),
        region=read.text("region"),
        commitment=commitment,
        pue=pue,
        electricity_usd_per_kwh=electricity,
        grid=grid,
        as_of=_date(read),
        market_grid_g_per_kwh=_market_grid(read),
        quote=read.text("quote"),
        own=read.text("own"),
        beside=read.text("beside"),
        tariff=read.text("tariff"),
        embodied=embodied,
        power_cap_w=cap_w,
    )

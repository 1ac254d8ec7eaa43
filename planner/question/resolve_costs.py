"""Read the part of a question about prices, power and carbon, which `pricing` answers."""

from __future__ import annotations

from datetime import date

from planner.errors import Message, UsageError
from planner.hardware.catalogue import find_gpu, load_gpus
from planner.question.asked import Reader
from planner.question.cost_inputs import (
    AS_OF,
    BESIDE,
    COMMITMENT,
    ELECTRICITY,
    EMBODIED,
    GRID,
    MARKET_GRID,
    OWN,
    POWER_CAP,
    PRICE,
    PRICE_LIKE,
    PROVIDER,
    PUE,
    QUOTE,
    REGION,
    TARIFF,
)
from planner.question.question import MoneyInputs
from planner.question.usual_names import taken_for
from planner.units import today


def read_money(read: Reader) -> MoneyInputs:
    """Read and record every input about money; names of files and places stay text.

    Raises:
        UsageError: a value cannot be read, or two inputs state the same thing.
    """
    _refuse_contradictions(read)
    price, pue, electricity = read.value(PRICE), read.value(PUE), read.value(ELECTRICITY)
    provider, region = read.value(PROVIDER), read.value(REGION)
    quote, own, beside, tariff = (read.value(item) for item in (QUOTE, OWN, BESIDE, TARIFF))
    return MoneyInputs(
        price_usd_per_gpu_h=price,
        price_like=_price_like(read),
        pue=pue,
        electricity_usd_per_kwh=electricity,
        provider=provider,
        region=region,
        quote=quote,
        own=own,
        beside=beside,
        tariff=tariff,
        grid=_grid(read),
        commitment=read.value_or_default(COMMITMENT),
        embodied=_embodied(read),
        power_cap_w=read.value(POWER_CAP),
        as_of=_as_of(read),
        market_grid_g_per_kwh=_market_grid(read),
    )


def _refuse_contradictions(read: Reader) -> None:
    """Raise UsageError where two inputs state the same thing."""
    prices = [item.flag for item in (PRICE, QUOTE, OWN) if read.text(item) is not None]
    if len(prices) > 1:
        raise UsageError(f"{' and '.join(prices)} each set the price of a GPU-hour", hint="give one of them")
    if read.text(PRICE) is not None and read.text(PRICE_LIKE) is not None:
        raise UsageError(
            f"{PRICE.flag} prices every GPU, and {PRICE_LIKE.flag} those that have no price", hint="leave one out"
        )
    if read.text(QUOTE) is not None and read.text(COMMITMENT) is not None:
        raise UsageError(
            f"{COMMITMENT.flag} chooses from the price book, and {QUOTE.flag} brings its own prices",
            hint="leave one out",
        )
    if read.text(TARIFF) is not None and read.text(ELECTRICITY) is not None:
        raise UsageError(
            f"{TARIFF.flag} and {ELECTRICITY.flag} each set the price of electricity", hint="give one of them"
        )


def _price_like(read: Reader) -> str | None:
    """Return the catalogue id of the GPU that `--price-like` names.

    Raises:
        UsageError: there is no such GPU.
    """
    name = read.value(PRICE_LIKE)
    if name is None:
        return None
    usual = taken_for("gpu", name, load_gpus())
    gpu = find_gpu(usual[0] if usual else name).id
    read.note(PRICE_LIKE, gpu, note=usual[1] if usual else None)
    return gpu


def _as_of(read: Reader) -> date:
    day = read.value(AS_OF)
    if day is None:
        day = today()
        read.note(AS_OF, day.isoformat())
    return day


def _embodied(read: Reader) -> bool:
    embodied = read.value(EMBODIED) or False
    read.note(EMBODIED, embodied)
    return embodied


def _grid(read: Reader) -> str | None:
    """Return a zone or a factor, as text: only `pricing` knows the zones."""
    grid = read.value(GRID)
    if grid is not None and is_number(grid):
        read.note(GRID, grid, note=Message.of("note.grid_given"))
    return grid


def _market_grid(read: Reader) -> float | None:
    """Return a factor of 0 or more, where 0 is a wholly renewable contract; `pricing` checks its upper bound."""
    factor = read.value(MARKET_GRID)
    if factor is not None:
        read.note(MARKET_GRID, factor, note=Message.of("note.grid_market"))
    return factor


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True

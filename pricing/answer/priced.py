"""Price a question: the price of each GPU, the facts of the site, and further lines of the bill.

Readers of user files and live sources are imported only where the question needs them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from planner.costs.prices import EmbodiedRate, GpuPrice, Ledger, OtherCosts, OwnedPrice, Quote, SiteFacts
from planner.errors import Message, UsageError
from planner.hardware.gpu import Gpu
from planner.lazy import dataclass
from planner.question.question import MoneyInputs
from planner.records.home import user_path
from pricing.base.fact import Fact
from pricing.gpu_price.like import priced_or_like
from pricing.gpu_price.price import quote_gpu
from pricing.gpu_price.query import check_place
from pricing.place.carbon import embodied_of
from pricing.place.places import provider_of, same_place
from pricing.place.site import site_facts

if TYPE_CHECKING:
    from pricing.place.tariff import Tariff

LIVE = "live:"
"""Prefix of `--grid live:DE`, which requests the current intensity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """The prices and factors by which a plan is multiplied."""

    prices: dict[str, GpuPrice]
    """Price of a GPU-hour by GPU id; for owned machines it includes electricity."""
    site: SiteFacts
    """PUE, electricity price and grid factor."""
    ledgers: dict[str, Ledger]
    """Further lines of the bill by GPU id."""
    region: str | None = None
    """Region or place to which the site facts apply: the requested one, else the offer's; None without either."""
    tariff: Tariff | None = None
    """Electricity prices by hour, where the user gave a tariff."""


def price_question(gpus: Sequence[Gpu], money: MoneyInputs) -> Priced:
    """Price a question.

    Args:
        gpus: the GPUs that are compared.
        money: the inputs about prices, place and files.

    Raises:
        UsageError: an unknown name, an impossible value, or a file that cannot be read.
        InputFileError: a file that the question names is invalid.
    """
    tariff = _tariff(money)
    quote = _quote(gpus, money)
    _check_place(money)
    region = money.region if money.region is not None or quote is None else quote.price.region
    site = _site(money, region, tariff)
    owned = {gpu.id: _owned(gpu, money, site) for gpu in gpus} if money.own is not None else {}
    other_costs = _other_costs(money)
    prices = {gpu.id: owned[gpu.id].price if gpu.id in owned else _price(gpu.id, money, quote) for gpu in gpus}
    if len(gpus) > 1:
        prices |= _with_single_price_warning(prices[gpus[0].id], tuple(gpu.id for gpu in gpus), money)
    ledgers = {}
    for gpu in gpus:
        ledgers[gpu.id] = Ledger(
            quote=quote if quote is not None and quote.price.gpu == gpu.id else None,
            owned=owned.get(gpu.id),
            other_costs=other_costs,
            embodied=_embodied(gpu, owned.get(gpu.id)),
        )
    return Priced(prices=prices, site=site, ledgers=ledgers, region=region, tariff=tariff)


def with_electricity(priced: Priced, gpus: Sequence[Gpu], money: MoneyInputs, power: Fact) -> Priced:
    """Return the prices with another price of electricity, which also changes the price of owned machines."""
    site = replace(priced.site, electricity_usd_per_kwh=power.estimate, electricity_evidence=power.evidence)
    if money.own is None:
        return replace(priced, site=site)
    owned = {gpu.id: _owned(gpu, money, site) for gpu in gpus}
    return replace(
        priced,
        site=site,
        prices={gpu_id: own.price for gpu_id, own in owned.items()},
        ledgers={gpu_id: replace(priced.ledgers[gpu_id], owned=own) for gpu_id, own in owned.items()},
    )


def _with_single_price_warning(first: GpuPrice, gpus: tuple[str, ...], money: MoneyInputs) -> dict[str, GpuPrice]:
    """Return the first GPU's price with a note that one price was given for all GPUs; empty where none was."""
    from pricing.contracts.own_file import states_server_price

    if money.own is not None and states_server_price(user_path(money.own)):
        warning = Message.of("price.warning.one_server_price", gpus=gpus)
    elif money.price_usd_per_gpu_h is not None:
        warning = Message.of("price.warning.one_price", gpus=gpus)
    else:
        return {}
    return {first.gpu: replace(first, warnings=(warning, *first.warnings))}


def _price(gpu: str, money: MoneyInputs, quote: Quote | None) -> GpuPrice:
    if quote is not None and quote.price.gpu == gpu:
        return quote.price
    return priced_or_like(
        gpu,
        money.price_like,
        partial(
            quote_gpu,
            price_usd_per_gpu_h=money.price_usd_per_gpu_h,
            provider=money.provider,
            region=money.region,
            commitment=money.commitment,
            as_of=money.as_of,
        ),
    )


def _quote(gpus: Sequence[Gpu], money: MoneyInputs) -> Quote | None:
    if money.quote is None:
        return None
    from pricing.contracts.quote_file import quoted_gpu, read_quote

    path, ids = user_path(money.quote), [gpu.id for gpu in gpus]
    quoted = quoted_gpu(path)
    quote = read_quote(path, quoted if quoted in ids else ids[0], money.as_of)
    return _elsewhere(quote, money.region)


def _check_place(money: MoneyInputs) -> None:
    """Check the region of the run where the price does not depend on it and no grid stands in for it.

    Raises:
        UsageError: it is not known.
    """
    own_price = money.price_usd_per_gpu_h is not None or money.quote is not None
    if money.region is not None and own_price and money.grid is None:
        check_place(money.region, money.provider.strip().lower() if money.provider else None)


def _elsewhere(quote: Quote, region: str | None) -> Quote:
    """Return the offer with a warning where it is for another place than that of the run."""
    offered = quote.price.region
    if region is None or offered is None or same_place(offered, region):
        return quote
    warning = Message.of("price.warning.offer_elsewhere", offered=offered, region=region)
    return replace(quote, price=replace(quote.price, warnings=(*quote.price.warnings, warning)))


def _owned(gpu: Gpu, money: MoneyInputs, site: SiteFacts) -> OwnedPrice:
    from pricing.contracts.own_file import owned_price

    assert money.own is not None
    return owned_price(user_path(money.own), gpu, site, _price(gpu.id, money, None))


def _embodied(gpu: Gpu, owned: OwnedPrice | None) -> EmbodiedRate | None:
    """Return the embodied carbon over the service life of owned machines, where given, else over the usual one."""
    embodied = embodied_of(gpu.id)
    if embodied is None:
        return None
    return embodied.per_gpu_h() if owned is None or owned.life_years is None else embodied.per_gpu_h(owned.life_years)


def _other_costs(money: MoneyInputs) -> OtherCosts | None:
    if money.beside is None:
        return None
    from pricing.contracts.beside import read_beside

    return read_beside(user_path(money.beside))


def _tariff(money: MoneyInputs) -> Tariff | None:
    if money.tariff is None:
        return None
    from pricing.place.tariff import read_tariff

    return read_tariff(user_path(money.tariff))


def _site(money: MoneyInputs, region: str | None, tariff: Tariff | None) -> SiteFacts:
    """Return the facts of a region; where its place is not known, the averages with a gap that says so."""
    power, grid = None, money.grid
    if tariff is not None:
        from pricing.place.tariff import tariff_fact

        power = tariff_fact(tariff, str(money.tariff))
    live = None
    if grid is not None and grid.lower().startswith(LIVE):
        live, grid = _live(grid[len(LIVE) :]), None
    provider = money.provider
    if provider is None and money.region is not None and money.own is None and money.quote is None:
        provider = provider_of(money.region)  # owned machines, and a vendor's, are in other buildings
    return site_facts(
        region=region,
        provider=provider,
        pue=money.pue,
        electricity_usd_per_kwh=money.electricity_usd_per_kwh,
        grid=grid,
        as_of=money.as_of,
        market_grid_g_per_kwh=money.market_grid_g_per_kwh,
        live_grid=live,
        electricity=power,
    )


def _live(zone: str) -> Fact:
    from pricing.sources.live_grid import TOKEN_VARIABLE, live_intensity

    if not zone.strip():
        raise UsageError("`--grid live:` names no zone", hint="write a zone of Electricity Maps, for example live:DE")
    return live_intensity(zone.strip(), os.environ.get(TOKEN_VARIABLE, ""))

"""quote.toml: a vendor's offer with its commitment, minimum term and set-up fee."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

from planner.costs.prices import GpuPrice, Quote
from planner.errors import Message, UsageError
from planner.evidence import Estimate, Evidence, EvidenceKind, Gap
from planner.hardware.catalogue import find_gpu, load_gpus
from planner.question.usual_names import taken_for
from planner.units import HOUR_S, parse_duration_s
from pricing.base.money import CURRENCIES, plain
from pricing.book.conversion import converted, later_rates, stale_rate_gap, stale_rates
from pricing.book.rows import COMMITMENTS, HIGHEST_PLAUSIBLE_PER_GPU_H
from pricing.files.exchange_rates import ExchangeRate, load_rates, usd_rate
from pricing.files.toml_file import TomlFile, read_toml

ON_DEMAND = "on_demand_price_per_gpu_h"
"""Key for the vendor's on-demand price, which no plan pays."""
_KEYS = (
    "vendor",
    "gpu",
    "price_per_gpu_h",
    "currency",
    "commitment",
    "region",
    "minimum_term",
    "minimum_gpus",
    "setup_fee",
    "valid_until",
    ON_DEMAND,
)


def quoted_gpu(path: Path) -> str:
    """Return the catalogue id of the GPU in an offer, which may have a short name such as `h100`.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not TOML, or names no GPU of the catalogue.
    """
    return _gpu(read_toml(path))


def _gpu(file: TomlFile) -> str:
    name = file.text_of("gpu")
    usual = taken_for("gpu", name, load_gpus())
    try:
        return find_gpu(name if usual is None else usual[0]).id
    except UsageError as error:
        raise file.fail("gpu", str(error.message), error.hint) from error


def _short_name(file: TomlFile) -> tuple[Message, ...]:
    """Say which GPU the offer's short name is taken to mean, if it is one."""
    usual = taken_for("gpu", file.text_of("gpu"), load_gpus())
    return () if usual is None else (Message.of("price.warning.quote_gpu", note=usual[1]),)


def read_quote(path: Path, gpu: str, as_of: date, rates: tuple[ExchangeRate, ...] | None = None) -> Quote:
    """Read an offer for a GPU.

    Args:
        path: quote.toml.
        gpu: catalogue id of the planned GPU; the offer must be for the same.
        as_of: the day; an offer that expired before it is marked as stale.
        rates: exchange rates; None for the user's.

    Raises:
        UsageError: the file cannot be read.
        InputFileError: it is not TOML, lacks a key, has an unknown one or a value out of bounds, is for another GPU,
            costs more than is plausible in USD, asks more for spot than for on-demand, or is in a currency without a
            dated rate.
    """
    file = read_toml(path)
    file.only(_KEYS)
    quoted = _gpu(file)
    if quoted != gpu:
        raise file.fail("gpu", f"the offer is for `{quoted}`, not for `{gpu}`", f"plan it with --gpu {quoted}")
    currency = file.word("currency", CURRENCIES, "USD", like="an ISO 4217 code such as EUR or USD")
    known = load_rates() if rates is None else rates
    rate = usd_rate(currency, as_of, known)
    if rate is None:
        hint = "add a dated rate to exchange_rates.csv, see docs/pricing.md"
        raise file.fail("currency", f"no exchange rate of {currency} on or before {as_of} is known", hint)
    commitment = file.word("commitment", COMMITMENTS, "on-demand")
    price = _price(file, commitment, rate)
    fee = file.amount("setup_fee", Decimal(0)) * rate.usd_per_unit
    return Quote(
        vendor=file.text_of("vendor"),
        price=replace(
            _gpu_price(file, gpu, commitment, price, rate, as_of),
            warnings=(*_short_name(file), *_old_rate(file, rate, as_of), *later_rates([currency], known, as_of)),
        ),
        minimum_term_h=file.parsed("minimum_term", parse_duration_s) / HOUR_S,
        minimum_gpus=file.whole("minimum_gpus", 1, 1_000_000, 1),
        setup_fee_usd=float(fee),
    )


def _ended(file: TomlFile, as_of: date) -> bool:
    until = file.day("valid_until")
    return until is not None and until < as_of


def _old_rate(file: TomlFile, rate: ExchangeRate, as_of: date) -> tuple[Message, ...]:
    """Warn of a stale exchange rate where the price's gap reports the offer's end instead."""
    stale = stale_rates([rate], as_of)
    if not stale or not _ended(file, as_of):
        return ()
    return (Message.of("price.warning.stale_rate", as_of=str(as_of), rows=stale),)


def _gpu_price(file: TomlFile, gpu: str, commitment: str, price: Decimal, rate: ExchangeRate, as_of: date) -> GpuPrice:
    vendor = file.text_of("vendor")
    until, ended = file.day("valid_until"), _ended(file, as_of)
    gap = Gap.of("quote.ended", until=str(until)) if ended else stale_rate_gap([rate], as_of)
    usd, amount = price * rate.usd_per_unit, converted(price, rate)
    listed = None if file.get(ON_DEMAND) is None else _plausible(file, ON_DEMAND, rate)
    basis = Message.of("quote.basis", vendor=vendor, commitment=commitment)
    what = f"{vendor}: {usd:f} USD per GPU-hour, {commitment}"
    if rate.currency != "USD":
        what += f", at {rate.usd_per_unit} USD per {rate.currency} of {rate.date} ({rate.source})"
    if until is not None:
        what += f", valid until {until}"
    evidence = Evidence(
        id="price:quote",
        kind=EvidenceKind.GIVEN,
        what=what,
        source=file.name,
        gpu=gpu,
        used_in=("cost_usd",),
    )
    return GpuPrice(
        gpu=gpu,
        usd_per_gpu_h=Estimate.exactly(float(usd)),
        basis=Message.of("price.basis.converted", basis=basis, rows=amount) if amount else basis,
        evidence=(evidence,),
        gap=gap,
        commitment=commitment,
        provider=vendor,
        region=None if file.get("region") is None else file.text_of("region"),
        stale=gap is not None,
        list_usd_per_gpu_h=None if listed is None else float(listed * rate.usd_per_unit),
    )


def _price(file: TomlFile, commitment: str, rate: ExchangeRate) -> Decimal:
    """Return the price in the currency of the offer, after checking that it is plausible."""
    price = _plausible(file, "price_per_gpu_h", rate)
    on_demand = file.amount(ON_DEMAND, price)
    if commitment == "spot" and price > on_demand:
        raise file.fail("price_per_gpu_h", f"the spot price {price} is above the on-demand price {on_demand}")
    return price


def _plausible(file: TomlFile, key: str, rate: ExchangeRate) -> Decimal:
    """Return a price of a GPU-hour in the currency of the offer, after checking in USD that it is plausible."""
    price = file.amount(key)
    usd = price * rate.usd_per_unit
    if not 0 < usd <= HIGHEST_PLAUSIBLE_PER_GPU_H:
        hint = "give the price of one GPU for one hour: not of a server, not in cents"
        expected = f"expected more than 0 and at most {HIGHEST_PLAUSIBLE_PER_GPU_H} USD"
        if rate.currency != "USD":
            expected += f", found {plain(usd):f} USD at {rate.usd_per_unit:f} USD per {rate.currency} of {rate.date}"
            hint += ", and an exchange rate in USD for one unit"
        raise file.fail(key, expected, hint)
    return price

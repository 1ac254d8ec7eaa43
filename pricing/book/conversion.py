"""Messages on the exchange rates behind an answer: the rates used, their age, and the rates left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

from planner.errors import Message
from planner.evidence import Gap
from pricing.book.rows import STALE_AFTER_DAYS
from pricing.files.exchange_rates import ExchangeRate


def converted(amount: Decimal, rate: ExchangeRate) -> tuple[Message, ...]:
    """Return an amount as stated, with its exchange rate; nothing for an amount in USD."""
    if rate.currency == "USD":
        return ()
    return (
        Message.of(
            "price.converted",
            amount=f"{amount:f}",
            currency=rate.currency,
            rate=f"{rate.usd_per_unit:f}",
            date=str(rate.date),
        ),
    )


def with_rates(basis: Message, rates: Iterable[ExchangeRate]) -> Message:
    """Return how a price was found, with the exchange rates of its converted amounts."""
    used = tuple(
        Message.of("price.converted_rate", currency=rate.currency, rate=f"{rate.usd_per_unit:f}", date=str(rate.date))
        for rate in _foreign(rates)
    )
    return Message.of("price.basis.converted", basis=basis, rows=used) if used else basis


def stale_rates(rates: Iterable[ExchangeRate], as_of: date) -> tuple[Message, ...]:
    """Return exchange rates older than the age at which a price is stale, each with its day."""
    return tuple(
        Message.of("price.of_date", provider=rate.currency, date=str(rate.date))
        for rate in _foreign(rates)
        if (as_of - rate.date).days > STALE_AFTER_DAYS
    )


def stale_rate_gap(rates: Iterable[ExchangeRate], as_of: date) -> Gap | None:
    """Return the gap for stale exchange rates; None where there are none."""
    stale = stale_rates(rates, as_of)
    return Gap.of("price.stale_rate", as_of=str(as_of), rows=stale) if stale else None


def later_rates(currencies: Iterable[str], known: Sequence[ExchangeRate], as_of: date) -> tuple[Message, ...]:
    """Warn of rates dated after the day, which are not used: they suggest a mistyped year, or a wrong clock."""
    asked = set(currencies)
    later = [rate for rate in known if rate.currency in asked and rate.date > as_of]
    if not later:
        return ()
    named = tuple(Message.of("price.of_date", provider=rate.currency, date=str(rate.date)) for rate in later)
    return (Message.of("price.warning.later_rates", as_of=str(as_of), rows=named),)


def _foreign(rates: Iterable[ExchangeRate]) -> tuple[ExchangeRate, ...]:
    return tuple(dict.fromkeys(rate for rate in rates if rate.currency != "USD"))

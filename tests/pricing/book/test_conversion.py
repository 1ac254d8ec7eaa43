"""What is said of exchange rates: none where all is in USD, each rate once, with its day."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from planner.errors import Message
from pricing.book.conversion import converted, later_rates, stale_rate_gap, stale_rates, with_rates
from pricing.files.exchange_rates import ExchangeRate
from reports.text.messages import word

BASIS = Message.of("price.basis.given")


def rate(currency="EUR", day=date(2026, 11, 1)):
    return ExchangeRate(currency=currency, usd_per_unit=Decimal("1.10"), date=day, source="bank")


def test_an_amount_in_usd_needs_no_rate(today):
    assert converted(Decimal(2), rate("USD")) == ()
    assert with_rates(BASIS, [rate("USD")]) is BASIS
    assert stale_rate_gap([rate("USD", date(2020, 1, 1))], today) is None


def test_an_amount_is_said_as_it_was_stated():
    (message,) = converted(Decimal("2.00"), rate())

    assert word(message) == "2.00 EUR at 1.10 USD (2026-11-01)"


def test_each_rate_is_named_once():
    message = word(with_rates(BASIS, [rate(), rate(), rate("GBP")]))

    assert message.count("EUR at 1.10 USD (2026-11-01)") == 1
    assert "GBP" in message


def test_a_rate_is_stale_after_as_many_days_as_a_price(today):
    assert stale_rates([rate(day=date(2026, 8, 22))], today) == ()
    assert len(stale_rates([rate(day=date(2026, 8, 21))], today)) == 1


def test_only_later_rates_of_the_currencies_in_use_are_named(today):
    later = [rate(day=date(2027, 1, 1)), rate("GBP", date(2027, 1, 1))]

    (message,) = later_rates({"EUR", "USD"}, later, today)
    assert "EUR (2027-01-01)" in word(message)
    assert "GBP" not in word(message)
    assert later_rates({"USD"}, later, today) == ()

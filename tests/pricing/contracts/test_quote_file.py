"""quote.toml: what an offer bills."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from planner.errors import InputFileError
from pricing.contracts.quote_file import read_quote
from pricing.files.exchange_rates import ExchangeRate
from reports.text.messages import word

GOOD = """
vendor = "Acme Cloud"
gpu = "h100-sxm5-80gb"
price_per_gpu_h = 2.10
commitment = "1y"
minimum_term = "90d"
minimum_gpus = 256
setup_fee = 25000
valid_until = 2026-12-31
"""


@pytest.fixture
def offer(tmp_path, today):
    def read(text, gpu="h100-sxm5-80gb", day=today, rates=()):
        path = tmp_path / "quote.toml"
        path.write_text(text, encoding="utf-8")
        return read_quote(path, gpu, day, rates)

    return read


def test_an_offer_is_read_whole(offer):
    quote = offer(GOOD)

    assert quote.vendor == "Acme Cloud"
    assert quote.price.usd_per_gpu_h.mid == 2.10
    assert quote.price.commitment == "1y"
    assert (quote.minimum_term_h, quote.minimum_gpus, quote.setup_fee_usd) == (2160.0, 256, 25_000.0)
    assert not quote.price.stale


def test_only_vendor_gpu_and_price_are_needed(offer):
    quote = offer('vendor = "A"\ngpu = "l4"\nprice_per_gpu_h = 1\n', gpu="l4")

    assert (quote.minimum_term_h, quote.minimum_gpus, quote.setup_fee_usd) == (0.0, 1, 0.0)


def test_an_offer_that_ended_is_stale(offer):
    quote = offer(GOOD, day=date(2027, 1, 1))

    assert quote.price.stale
    assert word(quote.price.gap.why) == "the offer was valid until 2026-12-31"


def test_euro_need_a_dated_rate_and_name_it(offer):
    text = GOOD + 'currency = "EUR"\n'
    with pytest.raises(InputFileError, match="no exchange rate of EUR on or before 2026-11-20"):
        offer(text)

    rate = ExchangeRate(currency="EUR", usd_per_unit=Decimal("1.10"), date=date(2026, 11, 1), source="bank")
    quote = offer(text, rates=(rate,))
    assert quote.price.usd_per_gpu_h.mid == pytest.approx(2.31)
    assert quote.setup_fee_usd == pytest.approx(27_500.0)
    assert "1.10 USD per EUR of 2026-11-01 (bank)" in quote.price.evidence[0].what


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("2.10", "0", "price_per_gpu_h: expected more than 0"),
        ("2.10", "-1", "price_per_gpu_h: expected an amount of at least 0"),
        ("2.10", "349", "price_per_gpu_h: expected more than 0 and at most 200"),
        ('"1y"', '"2y"', "commitment: expected one of on-demand, spot, 1y, 3y, found `2y`"),
        ("2026-12-31", '"soon"', "valid_until: expected a date"),
        ("vendor", "seller", "seller: unknown key"),
        ("25000", "-1", "setup_fee: expected an amount"),
        ('commitment = "1y"', 'commitment = "spot"\non_demand_price_per_gpu_h = 2.0', "spot price 2.10 is above"),
        (
            'commitment = "1y"',
            'currency = "Taler"',
            "currency: expected an ISO 4217 code such as EUR or USD, found `Taler`",
        ),
    ],
)
def test_a_wrong_offer_is_named_with_its_line(offer, old, new, problem):
    with pytest.raises(InputFileError) as caught:
        offer(GOOD.replace(old, new))

    assert problem in caught.value.message
    assert "quote.toml:" in caught.value.message


def test_an_offer_for_another_gpu_is_refused(offer):
    with pytest.raises(InputFileError, match="the offer is for `h100-sxm5-80gb`, not for `l4`"):
        offer(GOOD, gpu="l4")


def test_a_term_without_a_unit_is_refused(offer):
    with pytest.raises(InputFileError, match=r"minimum_term: expected a number with a unit, found `90`"):
        offer(GOOD.replace('"90d"', "90"))

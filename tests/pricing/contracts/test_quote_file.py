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


def test_the_vendor_s_on_demand_price_is_the_list_price_in_dollars(offer):
    rates = (ExchangeRate(currency="EUR", usd_per_unit=Decimal("1.10"), date=date(2026, 11, 1), source="ECB"),)

    assert offer(GOOD).price.list_usd_per_gpu_h is None
    assert offer(GOOD + "on_demand_price_per_gpu_h = 3.2\n").price.list_usd_per_gpu_h == 3.2
    euro = offer(GOOD + 'currency = "EUR"\non_demand_price_per_gpu_h = 3\n', rates=rates)
    assert euro.price.list_usd_per_gpu_h == pytest.approx(3.3)


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


def rate_of(currency="EUR", usd="1.10", day=date(2026, 11, 1)):
    return ExchangeRate(currency=currency, usd_per_unit=Decimal(usd), date=day, source="bank")


def test_a_converted_price_says_so_where_it_says_how_it_was_found(offer):
    quote = offer(GOOD + 'currency = "EUR"\n', rates=(rate_of(),))

    assert word(quote.price.basis) == "offer of Acme Cloud, 1y; 2.10 EUR at 1.10 USD (2026-11-01)"
    assert word(offer(GOOD).price.basis) == "offer of Acme Cloud, 1y"


@pytest.mark.parametrize(("currency", "usd"), [("JPY", "0.0065"), ("KRW", "0.00072"), ("INR", "0.012")])
def test_what_is_plausible_is_tested_in_usd(offer, currency, usd):
    price = f"{2.5 / float(usd):.0f}"  # hundreds or thousands of the unit for 2.50 USD
    quote = offer(GOOD.replace("2.10", price) + f'currency = "{currency}"\n', rates=(rate_of(currency, usd),))

    assert quote.price.usd_per_gpu_h.mid == pytest.approx(2.5, rel=0.01)


def test_a_price_that_is_not_plausible_in_usd_names_the_rate(offer):
    with pytest.raises(InputFileError) as caught:
        offer(GOOD.replace("2.10", "150") + 'currency = "KWD"\n', rates=(rate_of("KWD", "3.25"),))

    assert "at most 200 USD, found 487.5 USD at 3.25 USD per KWD of 2026-11-01" in caught.value.message
    assert "exchange rate" in caught.value.hint


@pytest.mark.parametrize(("day", "stale"), [(date(2026, 8, 22), False), (date(2026, 8, 21), True)])
def test_a_rate_of_more_than_90_days_is_stale(offer, day, stale):
    quote = offer(GOOD + 'currency = "EUR"\n', rates=(rate_of(day=day),))

    assert quote.price.stale is stale
    if stale:
        assert word(quote.price.gap.what) == "stale exchange rates"
        assert word(quote.price.gap.why) == "those of EUR (2026-08-21) are more than 90 days old on 2026-11-20"


def test_an_offer_that_ended_also_says_that_its_rate_is_stale(offer):
    quote = offer(GOOD + 'currency = "EUR"\n', day=date(2027, 2, 1), rates=(rate_of(),))

    assert quote.price.gap.key == "quote.ended"
    (message,) = (word(warning) for warning in quote.price.warnings)
    assert message == "stale exchange rates: those of EUR (2026-11-01) are more than 90 days old on 2027-02-01"


def test_a_rate_from_after_the_day_is_left_out_and_named(offer):
    later = rate_of(usd="9", day=date(2027, 11, 1))
    quote = offer(GOOD + 'currency = "EUR"\n', rates=(rate_of(), later))

    assert quote.price.usd_per_gpu_h.mid == pytest.approx(2.31)
    assert "dated after 2026-11-20 are left out: EUR (2027-11-01)" in word(quote.price.warnings[0])


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
        ('"1y"', '"1y"\non_demand_price_per_gpu_h = 0', "on_demand_price_per_gpu_h: expected more than 0"),
        ('"1y"', '"1y"\non_demand_price_per_gpu_h = 320', "on_demand_price_per_gpu_h: expected more than 0 and at"),
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


def test_a_short_name_means_the_usual_gpu_and_the_answer_says_so(offer):
    quote = offer(GOOD.replace("h100-sxm5-80gb", "h100"))

    assert quote.price.gpu == "h100-sxm5-80gb"
    assert "`h100` is taken to mean h100-sxm5-80gb, the usual one" in word(quote.price.warnings[0])
    assert offer(GOOD).price.warnings == ()


def test_an_offer_for_another_gpu_is_refused(offer):
    with pytest.raises(InputFileError, match="the offer is for `h100-sxm5-80gb`, not for `l4`"):
        offer(GOOD, gpu="l4")


def test_a_term_without_a_unit_is_refused(offer):
    with pytest.raises(InputFileError, match=r"minimum_term: expected a number with a unit, found `90`"):
        offer(GOOD.replace('"90d"', "90"))

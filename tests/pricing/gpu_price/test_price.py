"""The price of a GPU-hour: given, a provider's, or the market's; with its range, its age and its rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from planner.errors import UsageError
from planner.evidence import EvidenceKind
from pricing import quote_gpu
from pricing.book.reading import user_book_path
from pricing.book.rows import PriceBook
from pricing.book.user_book import book_text
from pricing.files.exchange_rates import ExchangeRate
from pricing.gpu_price.price import given_price, quote_from
from pricing.gpu_price.query import PriceQuery
from reports.text.messages import word
from reports.text.names import pretty_gpu

H100 = "h100-sxm5-80gb"


def test_the_default_is_the_median_over_providers_with_one_vote_each(today):
    price = quote_gpu(H100, as_of=today)

    # Verda 2.29, Hyperstack 2.40, Nebius 2.95, JarvisLabs 3.49, Lambda 3.99, Paperspace 5.99, AWS 6.88
    assert [row.id for row in price.evidence] == [
        f"price:{name}" for name in ("p085", "p097", "p072", "p093", "p066", "p126", "p032")
    ]
    assert price.usd_per_gpu_h.mid == 3.49
    assert price.usd_per_gpu_h.low == pytest.approx(2.29 + 0.3 * 0.11)  # 5th percentile of seven
    assert price.usd_per_gpu_h.high == pytest.approx(5.99 + 0.7 * 0.89)  # 95th
    assert "median over 7 providers" in word(price.basis)
    assert all(row.kind is EvidenceKind.PUBLISHED and row.source and row.date for row in price.evidence)


def test_few_providers_that_differ_as_is_typical_give_the_range_from_lowest_to_highest(today):
    price = quote_gpu("b200-sxm-180gb", as_of=today)

    assert (price.usd_per_gpu_h.low, price.usd_per_gpu_h.high) == (4.89, 14.2416)
    assert price.usd_per_gpu_h.mid == pytest.approx((5.5 + 6.69) / 2)
    assert not any("typical spread" in word(warning) for warning in price.warnings)


def test_three_providers_that_agree_by_chance_have_the_typical_spread(today):
    price = quote_gpu("l40s", as_of=today)  # 1.50, 1.55 and 1.70

    assert price.usd_per_gpu_h.mid == pytest.approx(1.5484)
    assert price.usd_per_gpu_h.low < 1.2
    assert price.usd_per_gpu_h.high > 2.3
    assert "only 3 providers known for L40S: the range is at least" in " ".join(map(word, price.warnings))


@pytest.mark.parametrize(("gpu", "providers"), [(H100, 3), ("h200-sxm-141gb", 3), ("a10", 1)])
def test_spot_prices_have_at_least_the_typical_spread_of_those_on_demand(today, gpu, providers):
    price = quote_gpu(gpu, commitment="spot", as_of=today)

    assert len(price.evidence) == providers
    assert price.usd_per_gpu_h.high > 1.5 * price.usd_per_gpu_h.mid
    assert price.usd_per_gpu_h.low < 0.75 * price.usd_per_gpu_h.mid
    told = " ".join(map(word, price.warnings))
    assert (
        f"known with a spot price for {pretty_gpu(gpu)}: the range is at least the typical spread of on-demand prices"
        in told
    )


def test_with_one_or_two_providers_the_range_is_at_least_the_typical_spread(today):
    price = quote_gpu("a10", as_of=today)

    assert price.usd_per_gpu_h.mid == 1.29
    assert price.usd_per_gpu_h.low < 1.0
    assert price.usd_per_gpu_h.high > 1.7
    assert any("typical spread" in word(warning) for warning in price.warnings)


def test_marketplace_asks_have_no_vote(today):
    price = quote_gpu("rtx-5090", as_of=today)

    assert price.usd_per_gpu_h is None
    assert "only marketplace offers are known for RTX 5090 (vast)" in word(price.gap.why)
    assert quote_gpu("rtx-5090", provider="vast", as_of=today).usd_per_gpu_h.mid == 0.44


def test_a_gpu_without_rows_has_a_gap_and_no_price(today):
    price = quote_gpu("mi300x-192gb", as_of=today)

    assert price.usd_per_gpu_h is None
    assert word(price.gap.why) == (
        f"the price book has no row for {pretty_gpu('mi300x-192gb')}; "
        f"the nearest GPU that has one is the {pretty_gpu('h200-sxm-141gb')}"
    )
    assert "the cost is unknown" in word(price.gap.effect)


def test_a_given_price_is_taken_as_it_is(today):
    price = quote_gpu(H100, price_usd_per_gpu_h=2.1, as_of=today)

    assert (price.usd_per_gpu_h.low, price.usd_per_gpu_h.mid, price.usd_per_gpu_h.high) == (2.1, 2.1, 2.1)
    assert price.evidence[0].kind is EvidenceKind.GIVEN


@pytest.mark.parametrize("wrong", [0.0, -1.0, 349.0, float("nan"), float("inf")])
def test_a_price_that_cannot_be_is_refused(wrong):
    with pytest.raises(UsageError, match="not a plausible price"):
        given_price(H100, wrong)


def test_a_provider_gives_its_cheapest_region_and_its_dearest_as_high(today):
    price = quote_gpu(H100, provider="AWS", as_of=today)

    assert (price.usd_per_gpu_h.mid, price.usd_per_gpu_h.high) == (6.88, 9.4944)
    assert price.provider == "aws"


def test_a_region_fixes_the_price(today):
    price = quote_gpu(H100, provider="aws", region="ap-northeast-1", as_of=today)

    assert price.usd_per_gpu_h.low == price.usd_per_gpu_h.high == 8.6


def test_a_price_that_is_the_same_everywhere_fits_every_region(today):
    assert quote_gpu(H100, provider="lambda", region="us-east-1", as_of=today).usd_per_gpu_h.mid == 3.99


def test_a_country_stands_for_its_states(today):
    country, state = (quote_gpu(H100, region=name, as_of=today) for name in ("USA", "US-VA"))
    rows = {row.id for row in country.evidence}

    assert rows > {row.id for row in state.evidence}
    assert country.usd_per_gpu_h.low < country.usd_per_gpu_h.mid < country.usd_per_gpu_h.high


def test_a_place_stands_for_the_regions_in_it(today):
    price = quote_gpu(H100, region="Finland", as_of=today)

    assert {row.id for row in price.evidence} == {"price:p072", "price:p085"}  # Nebius eu-north1, Verda FIN-02


def test_a_place_without_rows_takes_the_market_and_says_so(today):
    price = quote_gpu(H100, region="DEU", as_of=today)

    assert price.usd_per_gpu_h.mid == 3.49
    assert any("in DEU: the price of the whole market is used" in word(warning) for warning in price.warnings)


def test_spot_prices_are_the_spot_rows(today):
    price = quote_gpu(H100, commitment="spot", as_of=today)

    assert [row.id for row in price.evidence] == ["price:p085-spot", "price:p072-spot", "price:p032-spot"]
    assert price.usd_per_gpu_h.mid == 1.25


@pytest.mark.parametrize("commitment", ["1y", "1-year", "reserved-1y", "1Y"])
def test_a_reserved_price_without_a_recent_row_is_assumed_from_the_discount(commitment, today):
    price = quote_gpu(H100, provider="aws", commitment=commitment, as_of=today)

    assert price.usd_per_gpu_h.mid == pytest.approx(6.88 * (1 - 0.41))
    assert [row.kind for row in price.evidence] == [EvidenceKind.PUBLISHED, EvidenceKind.ASSUMED]
    assert any("a discount is assumed" in word(warning) for warning in price.warnings)


def test_the_market_takes_the_median_discount_and_its_range(today):
    on_demand = quote_gpu(H100, as_of=today).usd_per_gpu_h
    reserved = quote_gpu(H100, commitment="3y", as_of=today).usd_per_gpu_h

    assert reserved.mid == pytest.approx(on_demand.mid * (1 - 0.56))
    assert reserved.low == pytest.approx(on_demand.low * (1 - 0.64))
    assert reserved.high == pytest.approx(on_demand.high * (1 - 0.49))


def test_a_recent_reserved_row_is_used_as_it_is(data_home, today, row):
    data_home.mkdir(parents=True)
    user_book_path().write_text(book_text([row("1.90", id="mine", commitment="1y")]), encoding="utf-8")

    price = quote_gpu(H100, provider="acme", commitment="1y", as_of=today)

    assert price.usd_per_gpu_h.mid == 1.90
    assert [row.id for row in price.evidence] == ["price:mine"]


def test_rows_older_than_90_days_are_named_as_stale():
    price = quote_gpu(H100, as_of=date(2026, 11, 27))

    assert price.stale
    assert "nebius (2026-08-28), lambda (2026-08-28), aws (2026-08-28)" in word(price.gap.why)


def test_rows_of_2025_are_used_only_where_there_is_nothing_newer_and_it_is_said(today):
    price = quote_gpu("a40", as_of=today)

    assert [row.id for row in price.evidence] == ["price:p211", "price:p192"]
    assert any("no price from the last 18 months" in word(warning) for warning in price.warnings)
    assert price.stale


def test_dates_known_only_as_an_interval_are_said_once_in_words_whatever_the_gpu(today):
    prices = [quote_gpu(gpu, as_of=today) for gpu in (H100, "a100-sxm4-80gb")]
    vague = {word(warning) for price in prices for warning in price.warnings if "vague" in warning.key}

    assert vague == {
        "for some prices only the year or a date range is known, not the day: `mpplan prices show GPU` lists them"
    }


def test_the_past_is_priced_with_the_rows_of_then():
    price = quote_gpu(H100, provider="aws", as_of=date(2024, 1, 15))

    assert price.usd_per_gpu_h.mid == 12.29  # p139 of 2023-11-16, before AWS cut its prices
    assert any("dated after 2024-01-15" in word(warning) for warning in price.warnings)


def test_a_clock_before_every_row_is_named():
    price = quote_gpu(H100, as_of=date(2020, 1, 1))

    assert price.usd_per_gpu_h is None
    assert f"every row for {pretty_gpu(H100)} is from 2023-11-16 or later: check the clock" in word(price.gap.why)


@pytest.mark.parametrize(
    ("asked", "problem", "hint"),
    [
        ({"provider": "awz"}, "no prices of a provider `awz`", "aws"),
        ({"region": "us-est-1"}, "no prices in a region `us-est-1`", "us-east-1"),
        ({"commitment": "weekly"}, "unknown commitment `weekly`", "on-demand, spot, 1y, 3y"),
        ({"provider": "aws", "region": "eu-central-1"}, "at aws in eu-central-1", "us-east-1"),
        ({"provider": "hyperstack", "commitment": "spot"}, "no spot price of h100-sxm5-80gb at hyperstack", "aws"),
    ],
)
def test_an_unknown_name_is_an_error_that_says_what_there_is(asked, problem, hint, today):
    with pytest.raises(UsageError) as caught:
        quote_gpu(H100, as_of=today, **asked)

    assert problem in caught.value.message
    assert hint in caught.value.hint


def test_rows_in_a_currency_without_a_rate_leave_a_gap(data_home, today, row):
    data_home.mkdir(parents=True)
    rows = [row(id="mine", gpu="mi300x-192gb", currency="EUR")]
    user_book_path().write_text(book_text(rows), encoding="utf-8")

    price = quote_gpu("mi300x-192gb", as_of=today)
    assert price.usd_per_gpu_h is None
    assert "are in EUR, and `exchange_rates.csv`" in word(price.gap.why)

    rates = "currency,usd_per_unit,date,source\nEUR,1.10,2026-10-01,bank\n"
    (data_home / "exchange_rates.csv").write_text(rates, encoding="utf-8")
    priced = quote_gpu("mi300x-192gb", as_of=today)
    assert priced.usd_per_gpu_h.mid == pytest.approx(2.75)
    assert "at 1.10 of 2026-10-01 (bank)" in priced.evidence[0].what


def test_a_price_that_is_not_plausible_in_dollars_is_left_out_and_named(today, row):
    rates = (ExchangeRate(currency="JPY", usd_per_unit=Decimal("0.0065"), date=date(2026, 11, 1), source="bank"),)
    dear = row("60000", id="dear", provider="osaka", currency="JPY")
    usual = row("400", id="usual", provider="tokyo", currency="JPY")
    asked = PriceQuery(gpu=H100, provider=None, region=None, commitment="on-demand", as_of=today)

    priced = quote_from(PriceBook(rows=(dear, usual)), rates, asked)
    alone = quote_from(PriceBook(rows=(dear,)), rates, asked)

    assert priced.usd_per_gpu_h.mid == pytest.approx(2.6)
    named = "osaka with 60000 JPY = 390.00 USD at 0.0065 (2026-11-01)"
    assert any(f"above 200 USD per GPU-hour are left out: {named}" in word(warning) for warning in priced.warnings)
    assert alone.usd_per_gpu_h is None
    assert f"no price of {pretty_gpu(H100)} is plausible in USD per GPU-hour: {named}" in word(alone.gap.why)


def test_a_converted_price_names_its_rate_and_says_where_it_is_stale_or_a_later_one_was_left_out(today, row):
    def rate(day):
        return ExchangeRate(currency="EUR", usd_per_unit=Decimal("1.10"), date=date.fromisoformat(day), source="bank")

    book = PriceBook(rows=(row("2.00", provider="aws", currency="EUR"),))
    asked = PriceQuery(gpu=H100, provider="aws", region=None, commitment="on-demand", as_of=today)
    fresh = quote_from(book, (rate("2026-11-01"), rate("2027-01-01")), asked)
    old = quote_from(book, (rate("2026-08-01"),), asked)

    assert word(fresh.basis).endswith("; EUR at 1.10 USD (2026-11-01)")
    assert not fresh.stale
    assert "left out: EUR (2027-01-01)" in word(fresh.warnings[-1])
    assert old.stale
    assert word(old.gap.why) == "those of EUR (2026-08-01) are more than 90 days old on 2026-11-20"


def test_rows_without_an_exchange_rate_are_left_out_beside_others_and_their_currencies_named(today, row):
    rows = [row("9.00", id="d", provider="aws")]
    rows += [row("1.90", id=code, provider=f"p-{code}", currency=code) for code in ("GBP", "EUR")]
    asked = PriceQuery(gpu=H100, provider=None, region=None, commitment="on-demand", as_of=today)
    rate = ExchangeRate(currency="GBP", usd_per_unit=Decimal("1.30"), date=today, source="bank")

    def left_out(rates):
        price = quote_from(PriceBook(rows=tuple(rows)), rates, asked)
        return [word(warning) for warning in price.warnings if warning.key == "price.warning.no_rate"]

    no_rate = "are left out: `exchange_rates.csv` of your data folder has no rate on or before 2026-11-20"
    assert left_out(()) == [f"prices of {pretty_gpu(H100)} in EUR, GBP {no_rate}"]
    assert left_out((rate,)) == [f"prices of {pretty_gpu(H100)} in EUR {no_rate}"]
    assert left_out((rate, replace(rate, currency="EUR"))) == []


def test_rows_from_after_the_day_are_left_out_and_the_newest_of_them_named(today, row):
    days = ("2026-10-01", "2026-11-21", "2027-01-05", "2026-12-01")  # the day of the question is 2026-11-20
    rows = tuple(row(f"{n}.00", id=f"t{n}", provider="aws", day=day) for n, day in enumerate(days, start=1))
    asked = PriceQuery(gpu=H100, provider="aws", region=None, commitment="on-demand", as_of=today)

    price = quote_from(PriceBook(rows=rows), (), asked)
    (warning,) = price.warnings
    assert price.usd_per_gpu_h.mid == 1.0
    assert "3 prices dated after 2026-11-20 (up to 2027-01-05) left out" in word(warning)
    assert "2027-01-05" in str(warning)


def test_a_price_range_of_a_named_provider_ends_at_its_dearest_row(today, row):
    regions = [row(usd, id=usd, provider="aws", region=usd) for usd in ("2.50", "2.00")]
    rows = (*regions, row("9.00", id="c", provider="gcp"))
    asked = PriceQuery(gpu=H100, provider="aws", region=None, commitment="on-demand", as_of=today)
    price = quote_from(PriceBook(rows=rows), (), asked).usd_per_gpu_h

    assert (price.low, price.mid, price.high) == (2.0, 2.0, 2.5)


@pytest.mark.parametrize(("listed", "usd"), [("3.00", 3.0), (None, None)])
def test_a_reserved_price_of_the_book_stands_beside_the_list_price_of_the_same_offer(today, row, listed, usd):
    rows = [row("1.80", id="y", provider="aws", commitment="1y"), row("9.00", id="other", provider="gcp")]
    rows += [row(listed, id="d", provider="aws")] if listed else []
    asked = PriceQuery(gpu=H100, provider="aws", region=None, commitment="1y", as_of=today)

    price = quote_from(PriceBook(rows=tuple(rows)), (), asked)

    assert price.usd_per_gpu_h.mid == 1.8
    assert price.list_usd_per_gpu_h == usd


def test_a_discounted_price_keeps_the_price_it_was_discounted_from(today):
    assert quote_gpu(H100, provider="aws", commitment="3y", as_of=today).list_usd_per_gpu_h == 6.88
    assert quote_gpu(H100, as_of=today).list_usd_per_gpu_h is None


def test_a_provider_s_price_has_the_smallest_machine_that_is_rented_at_it(today, row):
    sizes = {"a": ("2.00", 8), "b": ("2.00", 4), "c": ("2.10", 1)}
    rows = [
        row(usd, id=name, provider="aws", instance=name, gpus_per_instance=gpus) for name, (usd, gpus) in sizes.items()
    ]
    asked = PriceQuery(gpu=H100, provider="aws", region=None, commitment="on-demand", as_of=today)

    assert quote_from(PriceBook(rows=tuple(rows)), (), asked).machine_gpus == 4
    assert quote_from(PriceBook(rows=tuple(rows[:1])), (), asked).machine_gpus == 8
    assert (
        quote_from(PriceBook(rows=tuple(rows[:1])), (), replace(asked, provider=None)).machine_gpus == 1
    )  # the market

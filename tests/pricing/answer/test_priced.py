"""A question's money, answered: prices, places and ledgers from flags and files."""

from __future__ import annotations

import pytest

from planner.errors import InputFileError, UsageError
from planner.hardware.catalogue import find_gpu
from planner.question.question import MoneyInputs
from pricing.answer.priced import price_question, with_electricity
from pricing.place.tariff import tariff_fact
from reports.text.messages import word

H100, B200 = find_gpu("h100-sxm5-80gb"), find_gpu("b200-sxm-180gb")
QUOTE = """
vendor = "Acme"
gpu = "b200-sxm-180gb"
price_per_gpu_h = 3.5
commitment = "1y"
minimum_term = "90d"
setup_fee = 1000
region = "Germany"
"""


@pytest.fixture
def money(today, tmp_path):
    def make(**changes):
        plain = {
            "price_usd_per_gpu_h": None, "provider": None, "region": None, "commitment": "on-demand", "pue": None,
            "electricity_usd_per_kwh": None, "grid": None, "as_of": today,
        }  # fmt: skip
        return MoneyInputs(**(plain | changes))

    return make


@pytest.fixture
def file(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_by_default_each_gpu_has_the_markets_price_and_its_embodied_carbon(money):
    priced = price_question([H100, B200], money())

    assert set(priced.prices) == set(priced.ledgers) == {H100.id, B200.id}
    assert priced.prices[H100.id].usd_per_gpu_h.mid == 3.49
    assert priced.ledgers[H100.id].embodied.kg_co2e_per_gpu_h.high == pytest.approx(575 / 43_800)
    assert not priced.ledgers[H100.id].has_lines


def test_an_offer_prices_its_gpu_and_the_book_the_others(money, file):
    priced = price_question([H100, B200], money(quote=file("quote.toml", QUOTE)))

    assert priced.prices[B200.id].usd_per_gpu_h.mid == 3.5
    assert priced.ledgers[B200.id].quote.vendor == "Acme"
    assert priced.prices[H100.id].usd_per_gpu_h.mid == 3.49
    assert priced.ledgers[H100.id].quote is None


def test_the_place_of_an_offer_is_the_place_of_the_run_where_none_is_given(money, file):
    quote = file("quote.toml", QUOTE)

    assert price_question([B200], money(quote=quote)).site.grid_kg_co2e_per_kwh.mid == pytest.approx(0.332, abs=0.06)
    assert price_question([B200], money(quote=quote, grid="100")).site.grid_kg_co2e_per_kwh.mid == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("asked", "pue"),
    [
        ({"region": "us-east-1"}, 1.15),  # pue.csv u004: only AWS has a region of this name
        ({"region": "aws:us-east-1"}, 1.15),
        ({"region": "eastus"}, 1.19),  # u007, Azure
        ({"region": "US-VA"}, 1.25),  # a state is nobody's building
        ({"region": "us-east-1", "own": "own.toml"}, 1.25),
        ({"region": "us-east-1", "quote": "quote.toml"}, 1.25),
        ({"region": "us-east-1", "pue": 1.3}, 1.3),
    ],
)
def test_a_provider_s_region_brings_its_pue_where_the_machines_are_the_provider_s(money, file, asked, pue):
    files = {"own": "", "quote": QUOTE}
    named = {name: file(value, files[name]) if name in files else value for name, value in asked.items()}

    assert price_question([H100, B200], money(**named)).site.pue.mid == pue


@pytest.mark.parametrize(("region", "warned"), [("us-west-2", True), ("eu-central-1", False), (None, False)])
def test_an_offer_for_another_place_than_the_run_s_is_said(money, file, region, warned):
    priced = price_question([B200], money(quote=file("quote.toml", QUOTE), region=region))  # the offer is for Germany

    warnings = [word(warning) for warning in priced.prices[B200.id].warnings]
    assert any("the offer in --quote is for Germany" in text for text in warnings) is warned


@pytest.mark.parametrize("own_price", [{"price_usd_per_gpu_h": 2.0}, {"quote": QUOTE}])
def test_a_region_that_is_not_known_is_refused_unless_the_grid_is_given(money, file, own_price):
    stated = {name: file("quote.toml", text) if name == "quote" else text for name, text in own_price.items()}

    with pytest.raises(UsageError, match="no region or place `us-esat-1` is known"):
        price_question([B200], money(region="us-esat-1", **stated))
    assert price_question([B200], money(region="us-esat-1", grid="120", **stated)).region == "us-esat-1"


def test_an_offer_for_another_gpu_is_refused(money, file):
    with pytest.raises(InputFileError, match="the offer is for `b200-sxm-180gb`, not for `h100-sxm5-80gb`"):
        price_question([H100], money(quote=file("quote.toml", QUOTE)))


def test_own_machines_stand_beside_what_renting_costs_with_its_rows(money, file):
    priced = price_question([H100], money(own=file("own.toml", "")))
    owned = priced.ledgers[H100.id].owned

    assert priced.prices[H100.id] is owned.price
    assert owned.rental_usd_per_gpu_h == 3.49
    assert owned.rental_evidence[0].id.startswith("price:")
    assert any("date range" in word(text) for text in priced.prices[H100.id].warnings)  # of the rental rows
    assert all(row.used_in == ("rental_usd_per_gpu_h",) for row in priced.ledgers[H100.id].evidence[1:])


def test_the_carbon_of_making_own_machines_is_spread_over_their_own_life(money, file):
    priced = price_question([H100], money(own=file("own.toml", "[capital]\nlife_years = 4\n")))
    made = priced.ledgers[H100.id].embodied
    life = next(row for row in priced.prices[H100.id].evidence if row.id == "own:capital.life_years")

    assert made.kg_co2e_per_gpu_h.high == pytest.approx(575 / 35_040)  # 4 years of 8 760 hours
    assert "over 4 years" in made.evidence.what
    assert {"embodied_tco2e", "sci_kg_per_run"} <= set(life.used_in)


def test_own_machines_pay_the_tariff(money, file):
    tariff = file("t.toml", "[[period]]\nfrom = 0\nto = 24\nusd_per_kwh = 0.5\n")
    cheap = price_question([H100], money(own=file("own.toml", "")))
    dear = price_question([H100], money(own=file("own.toml", ""), tariff=tariff))

    assert dear.site.electricity_usd_per_kwh.mid == 0.5
    assert dear.ledgers[H100.id].owned.busy_usd_per_gpu_h.mid > cheap.ledgers[H100.id].owned.busy_usd_per_gpu_h.mid


def test_another_price_of_electricity_prices_own_machines_anew(money, file):
    tariff = file("t.toml", "[[period]]\nfrom = 0\nto = 12\nusd_per_kwh = 0.1\n[[period]]\nfrom = 12\nto = 24\n"
                            "usd_per_kwh = 0.3\n")  # fmt: skip
    asked = money(own=file("own.toml", ""), tariff=tariff)
    first = price_question([H100], asked)
    power = tariff_fact(first.tariff, tariff, 6.0)

    repriced = with_electricity(first, [H100], asked, power)

    assert (power.estimate.low, power.estimate.mid, power.estimate.high) == pytest.approx((0.1, 0.2, 0.3))
    assert repriced.site.electricity_usd_per_kwh == power.estimate
    assert repriced.prices[H100.id].usd_per_gpu_h.high > first.prices[H100.id].usd_per_gpu_h.high


def test_lines_beside_are_the_same_for_every_gpu_and_name_their_file(money, file):
    beside = file("beside.toml", "[failed]\nratio = 0.1\n")
    priced = price_question([H100, B200], money(beside=beside))

    assert priced.ledgers[H100.id].other_costs.failed_ratio == 0.1
    assert priced.ledgers[H100.id].other_costs is priced.ledgers[B200.id].other_costs
    assert priced.ledgers[H100.id].evidence[0].source == beside


def test_live_intensity_is_asked_for_by_name_and_needs_a_token(money, monkeypatch):
    monkeypatch.delenv("ELECTRICITYMAPS_TOKEN", raising=False)

    with pytest.raises(UsageError, match="needs a token"):
        price_question([H100], money(grid="live:DE"))
    with pytest.raises(UsageError, match="names no zone"):
        price_question([H100], money(grid="live:"))


def test_live_intensity_stands_in_for_the_row(money, monkeypatch, server):
    address = server(lambda _: (200, b'{"zone": "DE", "carbonIntensity": 302, "datetime": "2026-11-20T12:00:00Z"}'))
    monkeypatch.setattr("pricing.sources.live_grid.ADDRESS", address)
    monkeypatch.setattr("pricing.sources.live_grid.live_intensity.__kwdefaults__", {"address": address})
    monkeypatch.setenv("ELECTRICITYMAPS_TOKEN", "t")

    site = price_question([H100], money(grid="live:DE")).site

    assert site.grid_kg_co2e_per_kwh.mid == pytest.approx(0.302)
    assert any(row.id == "grid:live:DE" and "of one hour" in row.what for row in site.evidence())


def test_only_the_gpu_without_a_price_is_priced_as_another(money):
    priced = price_question([H100, find_gpu("h800-sxm5-80gb")], money(price_like=H100.id))
    book, stand_in = priced.prices[H100.id], priced.prices["h800-sxm5-80gb"]

    assert (book.like, stand_in.like) == (None, H100.id)
    assert book.usd_per_gpu_h == stand_in.usd_per_gpu_h

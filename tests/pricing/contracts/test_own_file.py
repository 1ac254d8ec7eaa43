"""own.toml: defaults with sources, keys that are checked, and the price beside renting."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import InputFileError
from planner.evidence import EvidenceKind
from planner.hardware.catalogue import find_gpu
from pricing import quote_gpu, site_facts
from pricing.contracts.own_file import DEFAULTS, owned_price, read_own, server_rows
from pricing.contracts.owned import usd_per_gpu_h
from reports.text.messages import word

H100 = "h100-sxm5-80gb"


@pytest.fixture
def own(tmp_path):
    def make(text=""):
        path = tmp_path / "own.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return make


def test_every_default_has_a_source_and_a_date_and_lies_within_its_bounds():
    for default in DEFAULTS:
        assert default.source, default.key
        assert default.date, default.key
        assert default.low <= default.value <= default.high, default.key


def test_server_rows_are_ordered_and_of_catalogue_gpus():
    for gpu, server in server_rows().items():
        assert find_gpu(gpu).id == gpu
        assert 1_000 < server.usd_per_gpu.low <= server.usd_per_gpu.high < 100_000
        assert server.server_over_gpu in (1.0, 1.64)  # Epoch AI: a server costs 1.64 times its GPUs


def test_an_empty_file_takes_every_default_and_names_it(own):
    owned, server, evidence = read_own(own(), find_gpu(H100))

    assert (server.low, server.mid, server.high) == (28_800, 35_000, 46_900)
    assert owned.network_ratio == 0.19
    assert owned.server_power.kw == pytest.approx(1.275)  # DGX H100: 10.2 kW over 8 GPUs
    assert {row.id for row in evidence} == {"own:s002", *(f"own:{default.key}" for default in DEFAULTS)}
    assert {row.kind for row in evidence} == {EvidenceKind.PUBLISHED, EvidenceKind.ASSUMED}


def test_what_the_user_says_is_marked_as_given(own):
    path = own("[capital]\nserver_usd_per_gpu = 30000\nlife_years = 4\n")

    owned, server, evidence = read_own(path, find_gpu(H100))

    assert (owned.life_years, server.low, server.high) == (4, 30_000, 30_000)
    assert {row.id for row in evidence if row.kind is EvidenceKind.GIVEN} == {"own:server", "own:capital.life_years"}


def test_a_gpu_without_a_server_price_needs_one(own):
    with pytest.raises(
        InputFileError, match=r"capital\.server_usd_per_gpu: no list price is known for a server with the l4"
    ):
        read_own(own(), find_gpu("l4"))


def test_a_card_alone_is_given_a_server_around_it(own):
    owned, _, evidence = read_own(own(), find_gpu("rtx-4090"))

    assert owned.server_usd_per_gpu == pytest.approx(1_400 * 1.64)
    assert "times 1.64" in evidence[0].what


def test_a_server_of_unknown_power_takes_1_8_times_its_gpus(own):
    gpu = find_gpu("mi300x-192gb")

    assert gpu.host_power_w is None
    assert read_own(own(), gpu)[0].server_power.w == pytest.approx(gpu.tdp_w * 1.8)


def test_the_price_is_shown_beside_renting_with_the_break_even(own, today):
    site = site_facts(as_of=today)
    own_price = owned_price(own(), find_gpu(H100), site, quote_gpu(H100, as_of=today))

    usd = own_price.price.usd_per_gpu_h
    assert 1.5 < usd.low < usd.mid < usd.high < 4
    assert sum(own_price.items_usd_per_gpu_h.values()) == pytest.approx(usd.mid)
    assert own_price.rental_usd_per_gpu_h == 3.49
    assert 0.3 < own_price.break_even_utilisation_ratio < 0.6
    assert own_price.price.commitment == "owned"


def test_the_break_even_has_the_range_that_both_prices_leave(own, today):
    site, rented = site_facts(as_of=today), quote_gpu(H100, as_of=today)
    owned, server, _ = read_own(own(), find_gpu(H100))
    priced = owned_price(own(), find_gpu(H100), site, rented)

    def hour(utilisation_ratio, end):
        machines = replace(owned, server_usd_per_gpu=getattr(server, end), utilisation_ratio=utilisation_ratio)
        return usd_per_gpu_h(machines, getattr(site.pue, end), getattr(site.electricity_usd_per_kwh, end))

    assert hour(priced.break_even_low_ratio, "low") == pytest.approx(rented.usd_per_gpu_h.high)
    assert hour(priced.break_even_utilisation_ratio, "mid") == pytest.approx(rented.usd_per_gpu_h.mid)
    assert hour(priced.break_even_high_ratio, "high") == pytest.approx(rented.usd_per_gpu_h.low)
    short = owned_price(own("[capital]\nlife_years = 4\n"), find_gpu(H100), site, rented)
    assert (short.break_even_low_ratio or 0) > 0.2
    assert short.break_even_high_ratio is None  # even if they always work, they cost more than the cheapest rent
    assert (priced.rental_low_usd_per_gpu_h, priced.rental_high_usd_per_gpu_h) == (
        rented.usd_per_gpu_h.low, rented.usd_per_gpu_h.high,
    )  # fmt: skip


def test_the_break_even_of_exact_prices_is_exact(own, today):
    site = site_facts(pue=1.2, electricity_usd_per_kwh=0.09, as_of=today)
    text = "[capital]\nserver_usd_per_gpu = 36000\n"
    priced = owned_price(own(text), find_gpu(H100), site, quote_gpu(H100, price_usd_per_gpu_h=3.0, as_of=today))

    assert priced.break_even_low_ratio == priced.break_even_utilisation_ratio == priced.break_even_high_ratio
    assert priced.break_even_low_ratio is not None


def test_without_an_electricity_price_the_cost_is_a_lower_bound(own, today):
    own_price = owned_price(own(), find_gpu(H100), site_facts(region="DEU", as_of=today))

    assert own_price.price.usd_per_gpu_h.at_least
    assert own_price.price.gap.key == "place.electricity"
    assert own_price.break_even_utilisation_ratio is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[use]\nutilisation_ratio = 0\n", ":2: use.utilisation_ratio: expected a number from 0.01 to 1"),
        ("[use]\nutilisation_ratio = 80\n", ":2: use.utilisation_ratio: expected a number from 0.01 to 1"),
        ("[capital]\ndepreciation = 'fast'\n", ":2: capital.depreciation: expected one of straight-line, economic"),
        ("[capital]\nlife = 5\n", ":2: capital.life: unknown key"),
        ("[housing]\nkind = 'own'\n", "housing.facility_usd_per_kw: expected a number from 100"),
        (
            "[capital]\nnetwork_ratio = 0.6\nstorage_ratio = 0.9\n",
            ":3: capital.storage_ratio: expected a number from 0 to 0.3",
        ),
    ],
)
def test_a_wrong_key_is_named(own, text, problem):
    with pytest.raises(InputFileError) as caught:
        read_own(own(text), find_gpu(H100))

    assert problem in caught.value.message


@pytest.mark.parametrize("usd", [21_736, 24_000, 30_000, 33_333, 36_000])
def test_machines_that_always_work_and_need_no_staff_have_a_price_without_their_energy(own, today, usd):
    # Every part but the electricity of working hours is then exact: what is left has no range, whatever rounding does.
    text = f"[capital]\nserver_usd_per_gpu = {usd}\n[use]\nutilisation_ratio = 1.0\n[people]\nstaff_ratio = 0.0\n"
    rest = owned_price(own(text), find_gpu(H100), site_facts(as_of=today)).without_energy.usd_per_gpu_h

    assert rest.low == pytest.approx(rest.mid)
    assert rest.high == pytest.approx(rest.mid)


@pytest.mark.parametrize(
    ("capital", "warning"),
    [
        ("age_years = 6\nlife_years = 4", "are 6 years old and written off after 4, yet they are charged in full"),
        ("age_years = 5", "are 5 years old and written off after 5"),
        ("age_years = 2\nlife_years = 4", "`capital.age_years` = 2 in --own has no effect"),
    ],
)
def test_an_age_that_straight_line_depreciation_takes_no_notice_of_is_said(own, today, capital, warning):
    price = owned_price(own(f"[capital]\n{capital}\n"), find_gpu(H100), site_facts(as_of=today)).price

    assert warning in word(price.warnings[0])


@pytest.mark.parametrize("capital", ["life_years = 4", 'age_years = 6\nlife_years = 4\ndepreciation = "economic"'])
def test_an_age_that_counts_is_not_warned_of(own, today, capital):
    assert owned_price(own(f"[capital]\n{capital}\n"), find_gpu(H100), site_facts(as_of=today)).price.warnings == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("housing.facility_usd_per_kw = 9000", '`housing.facility_usd_per_kw` in --own has no effect: it counts only '
         'with `housing.kind = "own"`'),
        ('housing = { kind = "own", facility_usd_per_kw = 9000, colocation_usd_per_kw_month = 99 }',
         '`housing.colocation_usd_per_kw_month` in --own has no effect: it counts only with `housing.kind = '
         '"colocation"`'),
        ('capital = { depreciation = "economic", residual_ratio = 0.2 }', '`capital.residual_ratio` in --own has no '
         'effect: it counts only with `capital.depreciation = "straight-line"`'),
        ('housing = { kind = "own", facility_usd_per_kw = 9000 }', None),
        ("capital.residual_ratio = 0.2", None),
    ],
)  # fmt: skip
def test_a_stated_key_that_has_no_effect_is_named(own, today, text, told):
    price = owned_price(own(f"{text}\n"), find_gpu(H100), site_facts(as_of=today)).price

    assert [word(warning) for warning in price.warnings] == ([told] if told else [])

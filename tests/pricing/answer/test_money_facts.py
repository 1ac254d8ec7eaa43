"""What stands beside the plans: the prices used, other places, hours, power limits; and every document is sound."""

from __future__ import annotations

from functools import cache

import pytest

from mpplan.api.planned import planned
from planner.answer.document import to_document
from planner.evidence import Gap
from planner.question.asked import Ask
from planner.question.resolve import resolve
from planner.records.flat import nest
from pricing.answer.money_facts import money_facts, place_here
from pricing.answer.priced import price_question
from pricing.book.reading import shipped_book
from pricing.exports import EXPORTS
from pricing.exports.audit import audit
from pricing.exports.bill_table import billed_plans

H100 = "h100-sxm5-80gb"
OFFER = f"""vendor = "Acme"
gpu = "{H100}"
price_per_gpu_h = 2.1
minimum_term = "60d"
minimum_gpus = 16
setup_fee = 5000
"""
FILES = {
    "quote.toml": OFFER,
    "virginia.toml": OFFER + 'region = "us-east-1"\n',
    "nowhere.toml": OFFER + 'region = "Mars"\n',
    "own.toml": "[capital]\nfinancing_ratio = 0.06\n",
    "beside.toml": "[experiments]\nratio = 0.8\n[storage]\nusd_per_gb_month = 0.02\ncheckpoints_kept = 4\n",
    "tariff.toml": 'name = "nights"\n[[period]]\nfrom = 22\nto = 6\nusd_per_kwh = 0.05\n[[period]]\nfrom = 6\nto = 22\n'
    "usd_per_kwh = 0.2\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory, today):
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")

    def ask(**parts):
        files = {name: str(folder / value) for name, value in parts.items() if str(value) in FILES}
        return resolve(Ask(texts={"params": "7B", "gpus": "8", "as_of": today.isoformat()} | parts | files))

    return ask


@pytest.fixture(scope="module")
def answered(asked):
    """Each question is answered once: answers are frozen."""
    return cache(lambda **parts: planned(asked(**parts)))


@pytest.fixture
def facts(answered):
    return lambda **parts: answered(**parts).money


QUESTIONS = {
    "rented": {},
    "spot": {"commitment": "spot"},
    "reserved": {"commitment": "1y"},
    "a provider and its region": {"provider": "aws", "region": "us-east-1"},
    "an offer": {"quote": "quote.toml"},
    "own machines": {"own": "own.toml"},
    "own machines under a tariff with lines beside": {
        "own": "own.toml", "tariff": "tariff.toml", "beside": "beside.toml",
    },
    "an offer with lines beside": {"quote": "quote.toml", "beside": "beside.toml"},
    "electricity apart": {"electricity": "0.12"},
    "no contract but a green one": {"market_grid": "0", "embodied": "yes"},
    "a cap": {"params": "30B", "gpus": None, "power_cap": "200kW"},
    "two GPUs": {"gpu": f"{H100},a100-sxm4-80gb"},
    "no price known": {"as_of": "2019-01-01"},
}  # fmt: skip


@pytest.mark.parametrize("parts", QUESTIONS.values(), ids=QUESTIONS)
def test_every_document_is_sound_and_its_lines_sum_to_the_cent(answered, parts):
    document = to_document(answered(**parts))

    assert audit(document) == ()
    for plan in billed_plans(document):
        for column in ("usd_low", "usd_mid", "usd_high"):
            assert sum(getattr(row, column) for row in plan.leaves) == getattr(plan.total, column)


@pytest.mark.parametrize("export", [place for place in EXPORTS if not place.is_binary], ids=lambda place: place.name)
def test_a_real_answer_is_exported(answered, export):
    document = to_document(answered(own="own.toml", beside="beside.toml", embodied="yes", market_grid="10"))

    assert len(export.render(document).splitlines()) > 5


def test_the_price_used_names_its_rows(facts):
    (used,) = facts().prices

    assert (used.gpu, used.commitment, used.provider, used.stale) == (H100, "on-demand", None, False)
    assert used.usd_per_gpu_h.mid == 3.49
    assert len(used.evidence_ids) == 7


def test_places_are_cheaper_or_cleaner_by_rows_that_are_named(facts):
    facts = facts()

    assert facts.here == "USA"
    assert facts.elsewhere[0].provider == "verda"
    assert all((place.saved_usd or 0) > 0 or (place.saved_tco2e or 0) > 0 for place in facts.elsewhere)
    assert all(place.usd_here - place.usd == pytest.approx(place.saved_usd) for place in facts.elsewhere)
    assert all(place.source and place.date and place.evidence_id.startswith("price:") for place in facts.elsewhere)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, "USA"),
        ({"region": "us-east-1"}, "US-VA"),
        ({"grid": "DEU"}, "DEU"),
        ({"grid": "385"}, None),
        ({"grid": "live:DE"}, None),
    ],
)
def test_a_place_is_compared_only_where_the_scope_of_its_factor_is_known(asked, parts, expected):
    money = asked(**parts).money

    assert place_here(money, money.region) == expected


def test_the_place_of_an_offer_is_here_for_carbon_and_for_other_places(answered):
    offered, named = answered(quote="virginia.toml"), answered(quote="quote.toml", region="us-east-1")

    assert offered.money.here == named.money.here == "US-VA"
    (asked,) = (plan for plan in offered.plans if plan.precision == offered.money.elsewhere[0].precision)
    compared = [place for place in offered.money.elsewhere if place.saved_tco2e is not None]
    assert compared
    for place in compared:
        assert place.carbon_tco2e + place.saved_tco2e == pytest.approx(asked.carbon_tco2e.mid)


def test_an_offer_from_a_place_that_is_not_known_says_that_it_takes_an_average(answered):
    answer = answered(quote="nowhere.toml")

    assert Gap.of("place.grid", region="Mars") in answer.gaps
    assert answer.money.here is None
    assert Gap.of("place.grid", region="Mars") not in answered(quote="nowhere.toml", grid="USA").gaps


@pytest.mark.parametrize(
    ("parts", "replaced"),
    [
        ({"price": "2.2", "electricity": "0.3"}, ("gpu_rental", "electricity")),
        ({"own": "own.toml"}, ("gpu_owned", "electricity")),
        ({"quote": "quote.toml", "beside": "beside.toml"}, ("gpu_rental", "minimum_term", "setup_fee", "experiments")),
    ],
    ids=str,
)
def test_a_place_is_compared_with_the_lines_of_the_bill_that_its_rent_replaces(answered, parts, replaced):
    answer = answered(**parts)
    place = answer.money.elsewhere[0]
    (plan,) = (plan for plan in answer.plans if plan.precision == place.precision)
    lines = {line.id: line.usd.mid for line in plan.cost_lines if line.id in replaced}

    assert tuple(lines) == replaced
    assert place.usd_here == pytest.approx(sum(lines.values()))
    work = 1.8 if "beside" in parts else 1.0  # experiments are rented there as well
    per_gpu_h = place.usd / (plan.gpu_hours.mid * work)
    assert any(float(row.price_per_gpu_h) == pytest.approx(per_gpu_h) for row in shipped_book().rows if row.gpu == H100)


def test_a_place_that_is_cheaper_only_by_its_electricity_is_among_the_cheaper(answered):
    answer = answered(price="2.2", electricity="0.3")
    place = answer.money.elsewhere[0]
    rental = next(plan.cost_lines[0].usd.mid for plan in answer.plans if plan.precision == place.precision)

    assert place.provider == "verda"
    assert rental < place.usd < place.usd_here


def test_with_a_bare_factor_places_are_still_compared_by_price(facts):
    facts = facts(grid="385")

    assert facts.elsewhere
    assert all(place.carbon_tco2e is None for place in facts.elsewhere)


def test_owning_stands_beside_renting_with_its_break_even(facts):
    (own,) = facts(own="own.toml").owned

    assert sum(own.items_usd_per_gpu_h.values()) == pytest.approx(own.usd_per_gpu_h.mid)
    assert own.rental_usd_per_gpu_h == 3.49
    assert own.utilisation_ratio == 0.8
    assert 0.15 < own.break_even_low_ratio < 0.3 < own.break_even_utilisation_ratio < 0.6
    assert own.rental_low_usd_per_gpu_h < 3.49 < own.rental_high_usd_per_gpu_h


def test_an_offer_is_named_with_its_terms(facts):
    (offer,) = facts(quote="quote.toml").quotes

    assert (offer.vendor, offer.minimum_term_days, offer.minimum_gpus) == ("Acme", 60.0, 16)
    assert offer.setup_fee_usd == 5000.0


def test_a_tariff_says_when_to_start(facts):
    (hours,) = facts(own="own.toml", tariff="tariff.toml", tokens="1B").start_hours  # a run of about four hours

    assert hours.best_usd_per_kwh <= hours.mean_usd_per_kwh <= hours.dearest_usd_per_kwh
    assert hours.mean_usd_per_kwh == pytest.approx((8 * 0.05 + 16 * 0.2) / 24)
    assert hours.best_start.split()[1] in ("22:00", "23:00", "0:00", "1:00", "2:00", "3:00")
    assert hours.saved_usd > 0


def step(limit_w, seconds, power_w, **changes):
    """A whole training step that was measured under a power limit."""
    parts = {
        "suite_version": 1, "run_id": "r", "probe_id": "end_to_end/llama/bf16", "seq": 1, "status": "ok",
        "kind": "end_to_end", "precision": "bf16", "tokens": 4096, "time_median_s": seconds, "power_mean_w": power_w,
        "power_limit_w": limit_w, "device_kind": "cuda", "device_name": "NVIDIA H100 80GB HBM3",
        "memory_total_bytes": 85520809984.0,
    }  # fmt: skip
    return nest(parts | changes)


def test_power_limits_of_records_say_what_they_do_to_time_energy_and_money(asked):
    question = asked(power_cap="1MW")
    points = (step(700.0, 0.40, 650.0), step(500.0, 0.45, 480.0), step(700.0, 9.0, 650.0, kind="gemm"))
    answer = planned(question)

    priced = price_question([question.clusters[0].gpu], question.money)

    top, low = money_facts(answer, question, priced, points).power_limits

    assert (top.limit_w, top.time_ratio, top.energy_ratio) == (700.0, 1.0, 1.0)
    assert low.time_ratio == pytest.approx(0.45 / 0.40)
    assert low.energy_ratio == pytest.approx(0.45 * 480 / (0.40 * 650))
    assert low.usd_per_million_tokens == pytest.approx(3.49 / 3600 * 0.45 / 4096 * 1e6)
    assert low.gpus_under_cap > top.gpus_under_cap


def test_one_limit_alone_says_nothing(asked, answered):
    question = asked()
    priced = price_question([question.clusters[0].gpu], question.money)

    assert money_facts(answered(), question, priced, (step(700.0, 0.4, 650.0),)).power_limits == ()

"""Prices as the planner takes them: an own hour without its energy, and what a ledger adds to a bill."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.costs.prices import NO_LEDGER, EmbodiedRate, Ledger, OtherCosts, OwnedPrice, Quote
from planner.evidence import Estimate
from tests.planner.build import SAID, price, unknown_price

# An H100 of one's own (Cottier et al., arXiv 2405.21015): 0.82 server, 0.19 network, 0.32 housing and 0.11 of
# electricity, of which 0.10 in working hours: 1.275 kW x 0.76 x 1.25 x 0.0826 USD per kWh
OWNED = OwnedPrice(
    price=replace(price(low=1.2, mid=1.44, high=1.8), commitment="owned"),
    items_usd_per_gpu_h={"server": 0.82, "network": 0.19, "housing": 0.32, "electricity": 0.11},
    break_even_utilisation_ratio=0.45,
    rental_usd_per_gpu_h=3.2,
    busy_usd_per_gpu_h=Estimate(low=0.07, mid=0.1, high=0.15),
)


def test_the_electricity_of_working_hours_is_taken_out_at_each_end():
    price_left = OWNED.without_energy.usd_per_gpu_h
    assert price_left is not None

    assert (price_left.low, price_left.mid, price_left.high) == pytest.approx((1.13, 1.34, 1.65))
    assert not price_left.at_least
    assert OWNED.without_energy.commitment == "owned"


def test_where_electricity_alone_makes_the_range_rounding_does_not_put_its_ends_in_disorder():
    # 0.93 + 0.07, 0.1 and 0.15: 1.0 - 0.07 = 0.9299999999999999, 1.03 - 0.1 = 0.93, 1.08 - 0.15 = 0.93
    own = replace(OWNED, price=price(low=0.93 + 0.07, mid=0.93 + 0.1, high=0.93 + 0.15))
    exact = replace(OWNED, price=price(low=1.3, mid=1.3, high=1.3))

    for owned in (own, replace(own, busy_usd_per_gpu_h=Estimate(low=0.06, mid=0.11, high=0.1499)), exact):
        price_left = owned.without_energy.usd_per_gpu_h
        assert price_left is not None
        assert price_left.low <= price_left.mid <= price_left.high


def test_a_lower_bound_stays_one_without_its_energy():
    bound = replace(OWNED, price=replace(OWNED.price, usd_per_gpu_h=Estimate(low=1, mid=1.2, high=1.4, at_least=True)))
    price_left = bound.without_energy.usd_per_gpu_h
    assert price_left is not None

    assert price_left.at_least


def test_a_price_that_is_unknown_stays_unknown_without_its_energy():
    unknown = replace(OWNED, price=unknown_price())

    assert unknown.without_energy == unknown.price


def test_of_electricity_only_what_idle_hours_draw_stays_among_the_items():
    items = OWNED.idle_items_usd_per_gpu_h

    assert items["electricity"] == pytest.approx(0.01)
    assert sum(items.values()) == pytest.approx(sum(OWNED.items_usd_per_gpu_h.values()) - 0.1)
    # the draw of the machines that work may be more than what was planned for: no negative item
    assert replace(OWNED, busy_usd_per_gpu_h=Estimate.exactly(0.2)).idle_items_usd_per_gpu_h["electricity"] == 0
    assert replace(OWNED, items_usd_per_gpu_h={"server": 1.0}).idle_items_usd_per_gpu_h["electricity"] == 0


QUOTE = Quote(vendor="A", price=price(), minimum_term_h=2000, minimum_gpus=16, setup_fee_usd=7e3)
STATED = replace(SAID, id="beside:file")
MADE = EmbodiedRate(kg_co2e_per_gpu_h=Estimate.exactly(0.0084), evidence=replace(SAID, id="embodied:m008"))


@pytest.mark.parametrize(
    ("ledger", "more"),
    [
        (NO_LEDGER, False),
        (Ledger(quote=QUOTE), True),
        (Ledger(other_costs=OtherCosts(failed_ratio=0.1)), True),
        (Ledger(owned=OWNED), False),  # the price of an hour is another one, the lines are the same
        (Ledger(embodied=MADE), False),  # carbon, not money
    ],
)
def test_an_offer_and_lines_beside_the_gpus_make_a_bill_longer(ledger, more):
    assert ledger.has_lines is more


def test_a_ledger_rests_on_who_states_it_and_on_the_prices_it_compares_with():
    rented = replace(SAID, id="price:p085", used_in=("cost_usd",))
    ledger = Ledger(
        other_costs=OtherCosts(failed_ratio=0.1, evidence=STATED),
        embodied=MADE,
        owned=replace(OWNED, rental_evidence=(rented,)),
    )

    assert [source.id for source in ledger.evidence] == ["beside:file", "embodied:m008", "price:p085"]
    assert ledger.evidence[-1].used_in == ("rental_usd_per_gpu_h",)  # no figure of the plan's own cost
    assert Ledger(other_costs=OtherCosts(failed_ratio=0.1)).evidence == ()

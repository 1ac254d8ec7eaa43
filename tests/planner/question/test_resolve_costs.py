"""The money of a question as typed: every value with its source, contradictions refused."""

from __future__ import annotations

import pytest

from planner.errors import Message, UsageError
from tests.planner.build import make_question


def money(**asked):
    return make_question(**asked).money


def test_without_more_everything_is_left_to_the_pricing_room():
    inputs = money()

    assert inputs.commitment == "on-demand"
    assert {inputs.quote, inputs.own, inputs.beside, inputs.tariff, inputs.power_cap_w} == {None}
    assert (inputs.market_grid_g_per_kwh, inputs.embodied, inputs.pays_electricity) == (None, False, False)


@pytest.mark.parametrize(("text", "watts"), [("2MW", 2e6), ("800 kW", 8e5), ("1.2GW", 1.2e9), ("90000W", 9e4)])
def test_a_cap_is_read_with_its_unit(text, watts):
    assert money(power_cap=text).power_cap_w == pytest.approx(watts)


@pytest.mark.parametrize("text", ["2", "2 tons", "-1MW", "0kW", "MW"])
def test_a_cap_without_a_unit_is_refused_since_it_may_be_kw_or_mw(text):
    with pytest.raises(UsageError) as caught:
        money(power_cap=text)

    assert "--power-cap" in caught.value.message
    assert "2MW" in caught.value.hint


def test_a_market_based_factor_may_be_0_but_not_less():
    assert money(market_grid="0").market_grid_g_per_kwh == 0.0
    assert money(market_grid="120.5").market_grid_g_per_kwh == 120.5
    for text in ("-1", "green", "nan", "inf"):
        with pytest.raises(UsageError, match=r"--market-grid"):
            money(market_grid=text)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"price": "2", "own": "own.toml"}, "--price and --own each set"),
        ({"price": "2", "quote": "quote.toml"}, "--price and --quote"),
        ({"own": "own.toml", "quote": "quote.toml"}, "--quote and --own"),
        ({"price": "2", "price_like": "h100-sxm5-80gb"}, "--price prices every GPU, and --price-like"),
        ({"tariff": "t.toml", "electricity": "0.1"}, "--tariff and --electricity"),
        ({"quote": "quote.toml", "commitment": "1y"}, "--commitment"),
    ],
)
def test_two_flags_that_state_the_same_thing_are_refused(asked, message):
    with pytest.raises(UsageError, match=message):
        money(**asked)


def test_the_gpu_that_stands_in_for_a_price_is_one_of_the_catalogue():
    asked = make_question(price_like="H100 SXM5 80GB")

    assert asked.money.price_like == "h100-sxm5-80gb"
    short = make_question(price_like="h100")
    assert short.money.price_like == "h100-sxm5-80gb"
    assert short.inputs["price_like"].note.key == "note.usual"
    assert asked.inputs["price_like"].value == "h100-sxm5-80gb"
    with pytest.raises(UsageError, match="h1000"):
        money(price_like="h1000")


def test_own_machines_may_be_compared_with_a_commitment_of_choice():
    assert money(own="own.toml", commitment="3y").commitment == "3y"


@pytest.mark.parametrize(("text", "asked"), [("yes", True), ("no", False), ("true", True)])
def test_embodied_carbon_is_a_switch(text, asked):
    question = make_question(embodied=text)

    assert question.money.embodied is asked
    assert question.inputs["embodied"].value is asked


def test_electricity_is_paid_apart_where_its_price_is_given_in_either_way():
    assert money(electricity="0.1").pays_electricity
    assert money(tariff="t.toml").pays_electricity


def test_every_given_value_is_noted_with_its_unit_where_it_is_a_bare_number():
    inputs = make_question(grid="385", market_grid="0", power_cap="2MW", beside="b.toml").inputs

    assert (inputs["grid"].value, inputs["grid"].note) == ("385", Message.of("note.grid_given"))
    assert (inputs["market_grid"].value, inputs["market_grid"].note) == (0.0, Message.of("note.grid_market"))
    assert [inputs[name].source for name in ("power_cap", "beside")] == ["flag", "flag"]
    assert make_question(grid="DEU").inputs["grid"].note is None

"""What a price by commitment leaves out: interruptions, and how much the whole of a reserved term costs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from planner.costs.prices import Ledger, Quote
from planner.evidence import Estimate
from planner.planning.commitments import bills_the_rest, commitment_warnings, machine_warnings
from reports.text.messages import word
from tests.planner.build import price, unknown_price

H100, H200 = "h100-sxm5-80gb", "h200-sxm-141gb"


def priced(gpu, commitment, usd=2.0):
    return replace(price(gpu), commitment=commitment, usd_per_gpu_h=Estimate.exactly(usd))


def plan(gpu, gpus, fits=True, days=30.0):
    return SimpleNamespace(
        gpu=gpu,
        gpus=gpus,
        fits=fits,
        duration_days=Estimate.exactly(days),
        gpu_hours=Estimate.exactly(gpus * days * 24),
    )


def warning_texts(prices, plans=(), ledgers=None, lang="en"):
    return [word(message, lang) for message in dict.fromkeys(commitment_warnings(prices, ledgers or {}, plans))]


@pytest.mark.parametrize(
    ("commitment", "years", "usd"), [("1y", "one-year", "$8.97 million"), ("3y", "three-year", "$26.9 million")]
)
def test_a_reserved_price_says_what_the_whole_term_costs(commitment, years, usd):
    (warning,) = warning_texts([priced(H100, commitment)], [plan(H100, 512)])  # 512 x 8,760 h x $2 = $8,970,240 a year

    assert warning.startswith(f"this price requires a {years} commitment; the cost does not include the rest of ")
    assert warning.endswith(f"; the whole commitment costs about {usd} for 512 × H100 SXM5 80\u00a0GB")


@pytest.mark.parametrize(
    ("commitment", "days", "terms", "usd"),
    [("1y", 365.0, "", "$8.97 million"), ("1y", 366.0, "2", "$17.9 million"), ("3y", 2000.0, "2", "$53.8 million")],
)
def test_a_run_that_is_longer_than_a_term_needs_several(commitment, days, terms, usd):
    (warning,) = warning_texts([priced(H100, commitment)], [plan(H100, 512, days=days)])

    assert f"the whole commitment costs about {usd} for 512" in warning
    assert warning.endswith(f" ({terms} terms; the run is too long for fewer)" if terms else "80\u00a0GB")
    (chinese,) = warning_texts([priced(H100, commitment)], [plan(H100, 512, days=days)], lang="zh")
    assert (f"需 {terms} 个承诺期" in chinese) == bool(terms)


def test_the_whole_term_is_paid_for_the_gpus_that_the_offer_bills():
    yearly = priced(H100, "1y")
    ledger = Ledger(quote=Quote(vendor="A", price=yearly, minimum_term_h=0, minimum_gpus=512, setup_fee_usd=0))
    (fewer,), (more,) = (warning_texts([yearly], [plan(H100, gpus)], {H100: ledger}) for gpus in (64, 1024))

    assert fewer.endswith("about $8.97 million for 512 × H100 SXM5 80\u00a0GB")
    assert more.endswith("about $17.9 million for 1,024 × H100 SXM5 80\u00a0GB")


def test_gpus_with_the_same_commitment_share_a_warning_with_an_amount_each():
    prices = [priced(H100, "1y"), priced(H200, "1y", 3.0)]
    (warning,) = warning_texts(prices, [plan(H100, 512), plan(H200, 256)])

    assert warning.endswith(
        "about $8.97 million for 512 × H100 SXM5 80\u00a0GB and $6.73 million for 256 × H200 SXM 141\u00a0GB"
    )


def test_a_gpu_that_others_are_not_priced_like_is_named_with_its_own_amount():
    plans = [plan(H100, 512), plan(H200, 256)]
    (warning,) = warning_texts([priced(H100, "on-demand"), priced(H200, "1y", 3.0)], plans)

    assert "H200" in warning
    assert "$6.73 million for 256" in warning
    assert "512" not in warning


def test_without_a_plan_or_a_price_no_amount_is_told():
    (unfit,) = warning_texts([priced(H100, "1y")], [plan(H100, 512, fits=False)])
    (unknown,) = warning_texts([replace(unknown_price(), commitment="1y")], [plan(H100, 512)])

    assert unfit == unknown
    assert unfit.endswith("the rest of the year after this run")


def test_it_is_said_in_chinese():
    (warning,) = warning_texts([priced(H100, "1y")], [plan(H100, 512)], lang="zh")

    assert warning.endswith("；整个承诺期的费用约为 897 万美元（512 张 H100 SXM5 80\u00a0GB）")


def test_spot_leaves_out_interruptions_and_on_demand_nothing():
    assert warning_texts([priced(H100, "on-demand")], [plan(H100, 8)]) == []
    (warning,) = warning_texts([priced(H100, "spot")], [plan(H100, 8)])
    assert warning.startswith("spot instances can be reclaimed")


def test_an_offer_that_bills_its_term_leaves_nothing_out():
    yearly = priced(H100, "1y")
    billed = Ledger(quote=Quote(vendor="A", price=yearly, minimum_term_h=8760, minimum_gpus=1, setup_fee_usd=0))

    assert bills_the_rest(yearly, billed)
    assert not bills_the_rest(yearly, Ledger())
    assert warning_texts([yearly], [plan(H100, 8)], {H100: billed}) == []


@pytest.mark.parametrize(
    ("gpus", "machine", "told"),
    [
        (12, 8, "this price is for machines with 8 × H100 SXM5 80\u00a0GB: the 12 planned fill the last one only in "
         "part, and the rest of it costs about $5,760 more if machines are rented whole"),  # 4 x 720 h x $2
        (16, 8, None),
        (3, 1, None),
    ],
)  # fmt: skip
def test_machines_that_a_plan_fills_in_part_are_named_with_the_cost_of_the_rest(gpus, machine, told):
    prices = [replace(priced(H100, "on-demand"), machine_gpus=machine)]
    planned = plan(H100, gpus)

    assert [word(message) for message in machine_warnings(prices, [planned])] == ([told] if told else [])
    assert list(machine_warnings(prices, [plan(H100, gpus, fits=False)])) == []
